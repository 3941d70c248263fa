#!/usr/bin/env bats
# Compilers and the tools that run many of them.

load ../helpers

# A project of some C files in the directory src.
c_project() {
	mkdir src
	for i in 1 2 3 4 5 6; do
		cat >src/f$i.c <<-END
			#include <stdio.h>
			#include <string.h>
			static int twice(int x) { return x + x; }
			int f$i(int x);
			int f$i(int x) { printf("f$i %d\n", twice(x)); return x + $i; }
		END
	done
	cat >src/main.c <<-'END'
		int f1(int), f2(int), f3(int), f4(int), f5(int), f6(int);
		int main(void) { return f6(f5(f4(f3(f2(f1(0)))))) - 21; }
	END
}

@test "gcc -flto -j2: link-time optimisation by several compilers" {
	c_project
	# shellcheck disable=SC2016
	limit=120 repeat 5 same 0 sh -c 'gcc -O2 -flto=2 -flto-partition=max \
		-o p ../src/*.c && ./p'
	grep -q '^f6 30$' rep.out
	trace-dump --tasks t | jq -r .exe | grep -c '/lto1$'
}

@test "clang -flto with two threads of lld" {
	need clang ld.lld
	c_project
	# shellcheck disable=SC2016
	limit=120 repeat 20 same 0 sh -c 'clang -O2 -flto=thin -fuse-ld=lld \
		-Wl,--threads=2 -o p ../src/*.c && ./p'
	# shellcheck disable=SC2016
	limit=120 repeat 2 same 0 sh -c 'clang -O2 -flto -fuse-ld=lld \
		-o p ../src/*.c && ./p'
	grep -q '^f6 30$' rep.out
}

@test "cmake and ninja" {
	need cmake ninja
	c_project
	cat >src/CMakeLists.txt <<-'END'
		cmake_minimum_required(VERSION 3.10)
		project(p C)
		file(GLOB files *.c)
		add_executable(p ${files})
	END
	limit=150 varies=1 repeat 3 same 0 sh -c 'cmake -G Ninja -S ../src -B b &&
		ninja -j2 -C b && b/p'
	grep -q '^f6 30$' rep.out
}

@test "make -j4" {
	c_project
	cat >src/Makefile <<-'END'
		.RECIPEPREFIX = >
		vpath %.c ../src
		objects := $(patsubst ../src/%.c,%.o,$(wildcard ../src/*.c))
		p: $(objects)
		> gcc -o $@ $^
		> ./$@
		%.o: %.c
		> gcc -O1 -c -o $@ $<
	END
	limit=120 varies=1 repeat 3 same 0 make -j4 -f ../src/Makefile
	grep -q '^f6 30$' rep.out
}

@test "cargo build" {
	need cargo rustc
	mkdir -p c/src
	printf '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n' >c/Cargo.toml
	cat >c/src/main.rs <<-'END'
		fn main() {
		    let t: Vec<_> = (0..3).map(|n| std::thread::spawn(move || n * n)).collect();
		    let sum: i32 = t.into_iter().map(|t| t.join().unwrap()).sum();
		    println!("sum {}", sum);
		}
	END
	limit=200 varies=1 repeat 2 same 0 sh -c 'cp -r ../c . && cd c &&
		cargo run --offline -j2 -q'
	grep -q '^sum 5$' rep.out
}

@test "npm scripts" {
	need npm node
	mkdir n
	cat >n/package.json <<-'END'
		{ "name": "n", "version": "1.0.0", "scripts": {
		  "prego": "echo before", "go": "node -p 6*7 && echo child" } }
	END
	limit=120 varies=1 repeat 2 same 0 sh -c 'cd ../n && npm --offline run go'
	grep -q '^42$' rep.out
}

@test "git gc, repack with threads, bundle, bisect" {
	need git
	cat >g.sh <<-'END'
		set -e
		export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
		export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
		export GIT_CONFIG_NOSYSTEM=1
		git init -q -b main one
		cd one
		for i in 1 2 3 4 5 6 7 8; do
			seq "$i" 3000 >f
			git add .
			git commit -q -m "commit $i"
		done
		git -c pack.threads=2 repack -q -a -d -f --window=20
		git -c gc.auto=1 gc -q --aggressive --prune=now
		git bundle create -q ../b HEAD main
		git clone -q ../b ../two
		git bisect start HEAD HEAD~7 >start
		git bisect run sh -c '[ "$(head -n 1 f)" -lt 5 ]' | grep first
		git fsck
		git count-objects -v
	END
	limit=120 varies=1 repeat 3 same 0 sh ../g.sh
	grep -q '^packs: ' rep.out
}
