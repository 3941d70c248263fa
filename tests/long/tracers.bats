#!/usr/bin/env bats
# Programs that look into other programs, or that instrument them: debuggers,
# tracers, sanitizers, valgrind.

load ../helpers

# A program with threads, a function to stop at, and a fault on demand.
c_program() {
	cat >p.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		static int total;
		static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
		__attribute__((noinline)) void stop_here(int n)
		{
			total += n;
		}
		static void *work(void *arg)
		{
			int *p = malloc(4096);

			for (int i = 0; i < 50; i++) {
				pthread_mutex_lock(&lock);
				stop_here(*(int *)arg);
				pthread_mutex_unlock(&lock);
				p[i] = i;
			}
			free(p);
			return NULL;
		}
		int main(int argc, char **argv)
		{
			pthread_t t[4];
			int n[4] = {1, 2, 3, 4};

			for (int i = 0; i < 4; i++)
				pthread_create(&t[i], NULL, work, &n[i]);
			for (int i = 0; i < 4; i++)
				pthread_join(t[i], NULL);
			printf("total %d\n", total);
			fflush(stdout);
			if (argc > 1 && strcmp(argv[1], "overflow") == 0)
				((volatile char *)malloc(10))[argc + 8] = 1;
			if (argc > 1 && strcmp(argv[1], "leak") == 0)
				*(volatile long *)malloc(10) = 1;
			if (argc > 1 && strcmp(argv[1], "race") == 0) {
				pthread_create(&t[0], NULL, work, &n[0]);
				total++;
				pthread_join(t[0], NULL);
			}
			return 5;
		}
	END
}

@test "strace: a program, its children, threads" {
	need strace
	c_program
	gcc -g -pthread -o p p.c
	varies=1 repeat 3 same 0 strace true
	grep -q 'exited with 0' rep.err
	varies=1 repeat 3 same 3 strace -f -o log sh -c '/bin/echo child; exit 3'
	varies=1 repeat 5 same 5 strace -f -e trace=futex,clone,exit_group ../p
	varies=1 repeat 2 same 0 strace -c -f ls
}

@test "gdb -batch: run, breakpoints, watchpoints, memory" {
	need gdb
	cat >q.c <<-'END'
		#include <stdio.h>
		static int total;
		__attribute__((noinline)) void stop_here(int n)
		{
			total += n;
		}
		int main(void)
		{
			for (int i = 0; i < 5; i++)
				stop_here(i);
			printf("total %d\n", total);
			fflush(stdout);
			return *(volatile int *)8;
		}
	END
	gcc -g -o q q.c
	limit=120 varies=1 repeat 3 same 0 gdb -nx -batch -ex run --args true
	limit=120 varies=1 repeat 5 same 0 gdb -nx -batch \
		-ex 'break stop_here if n == 3' -ex run -ex bt -ex 'info registers' \
		-ex 'set var total = 1000' \
		-ex 'set can-use-hw-watchpoints 0' -ex 'watch total' -ex continue \
		-ex 'x/4i $pc' -ex delete -ex finish -ex continue -ex bt ../q
	grep -q '^total 1007' rep.out
	grep -q 'received signal SIGSEGV' rep.out
}

# gdb puts breakpoints in and takes them out while threads run.
@test "gdb -batch: threads" {
	need gdb
	c_program
	gcc -g -pthread -o p p.c
	limit=120 varies=1 repeat 10 same 0 gdb -nx -batch \
		-ex 'break stop_here if n == 3' -ex run -ex bt \
		-ex 'info threads' -ex 'set var total = 1000' -ex delete \
		-ex continue ../p
	# It may come within a line of gdb's.
	grep -q 'total 1[0-9][0-9][0-9]$' rep.out
}

@test "gcc -fsanitize=address: sound, an overflow, a leak" {
	c_program
	gcc -g -pthread -fsanitize=address -o p p.c
	repeat 20 same 5 ../p
	# Where the heap is is in the report, and the process's number.
	varies=1 repeat 3 same 1 ../p overflow
	grep -q 'heap-buffer-overflow' rep.err
	varies=1 repeat 3 same 23 env LSAN_OPTIONS=exitcode=23 ../p leak
	grep -q 'LeakSanitizer: detected memory leaks' rep.err
}

@test "clang -fsanitize=address and memory" {
	need clang
	c_program
	clang -g -pthread -fsanitize=address -o p p.c
	repeat 5 same 5 ../p
	clang -g -pthread -fsanitize=memory -o p p.c
	repeat 5 same 5 ../p
}

@test "gcc -fsanitize=thread: sound, a race" {
	c_program
	gcc -g -pthread -fsanitize=thread -o p p.c
	repeat 20 same 5 ../p
	varies=1 repeat 3 same 66 ../p race
	grep -q 'data race' rep.err
}

@test "gcc -fsanitize=undefined" {
	printf 'int main(int c, char **v) { (void)v; return c << (30 + c * 2); }' >u.c
	gcc -fsanitize=undefined -o u u.c
	same 1 ../u
	grep -q 'shift exponent' rep.err
}

# It executes translations of the code that it reads.
@test "valgrind: memcheck, helgrind, callgrind, none" {
	need valgrind
	c_program
	gcc -g -pthread -o p p.c
	limit=120 varies=1 repeat 3 same 0 valgrind true
	limit=120 varies=1 repeat 3 same 5 valgrind -q ../p
	limit=120 varies=1 same 9 valgrind -q --error-exitcode=9 ../p overflow
	grep -q 'Invalid write of size 1' rep.err
	limit=120 varies=1 same 9 valgrind -q --error-exitcode=9 --tool=helgrind \
		../p race
	grep -q 'data race' rep.err
	limit=120 varies=1 same 0 valgrind -q --tool=callgrind ls
	limit=120 varies=1 same 3 valgrind -q --tool=none --trace-children=yes \
		sh -c '/bin/echo child; exit 3'
}
