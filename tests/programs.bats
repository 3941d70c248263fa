#!/usr/bin/env bats
# Programs that people use: recorded, replayed, and the same in everything
# that can be seen of them.

load helpers

# A file of N lines that differ between the lines, not between runs.
lines() {
	awk -v n="$1" 'BEGIN {
		for (i = 1; i <= n; i++)
			printf "%d %d the line of number %d\n", (i * 7919) % 1000003, i % 17, i
	}'
}

@test "ls -lR of a large tree" {
	same 0 ls -lR /usr/share/doc
	[ "$(wc -l <rep.out)" -gt 1000 ]
}

@test "cat: a file to a file and to a pipe" {
	lines 200000 >big
	same 0 cat ../big
	cmp big rep.out
	same 0 sh -c 'cat ../big | cat | tail -c 100000'
	[ "$(wc -c <rep.out)" = 100000 ]
}

@test "cat without an end of line, and bytes that are no text" {
	printf 'no end' >a
	head -c 5000 /dev/zero | tr '\0' '\377' >b
	head -c 70000 "$BUILD/bin/trace-record" >c
	same 0 cat ../a ../b ../c ../a
	cat a b c a | cmp - rep.out
}

@test "cp and dd: copies made by the kernel and by hand" {
	lines 100000 >big
	same 0 sh -c 'cp ../big x; dd if=x of=y bs=64k status=none; cmp x y &&
		cmp y ../big && stat -c %s y'
}

@test "sort of a large file" {
	lines 300000 >big
	same 0 sort ../big
	sort -c rep.out
	same 0 sort --parallel=2 -S 4M -n -r ../big
}

@test "grep -r" {
	same 0 grep -r -n -E 'define (EAGAIN|SIG[A-Z]+)\b' /usr/include/asm-generic /usr/include/linux /usr/include/x86_64-linux-gnu
	same 1 grep -r 'no such text anywhere' /usr/include/asm-generic
}

@test "tar, gzip, tar in a pipeline" {
	same 0 sh -c 'tar cf - -C /usr/include linux asm-generic 2>/dev/null |
		gzip -1 | tar tzvf -'
	[ "$(wc -l <rep.out)" -gt 300 ]
}

@test "sh: loops and command substitution" {
	# shellcheck disable=SC2016
	same 5 sh -c 'n=0
		for i in 1 2 3 4 5 6 7 8 9 10; do
			n=$((n + $(expr "$i" \* 3)))
			echo "$i: $n $(echo a | tr a-z A-Z)"
			echo "error $i" >&2
		done
		while read -r a b; do echo "$b-$a"; done <<-END
			1 2
			3 4
		END
		(exit 4) || echo "sub $?"
		exit 5'
}

@test "bash: jobs, traps, wait, process substitution" {
	# The order in which the jobs write varies.
	# shellcheck disable=SC2016
	varies=1 repeat 1 same 3 bash -c '
		trap "echo usr1" USR1
		trap "echo bye" EXIT
		trap "echo chld >>chld" CHLD
		set -m
		for i in 1 2 3 4 5; do (sleep 0.0$i; exit $i) & done
		for p in $(jobs -p); do wait $p; echo "got $?"; done
		kill -USR1 $$
		diff <(seq 5) <(seq 6)
		sleep 5 &
		# Before it is sleep, it is a bash that catches SIGTERM.
		until read -r c </proc/$!/comm && [ "$c" = sleep ]; do
			sleep 0.01
		done
		kill %%; wait $!; echo "killed $?"
		coproc cat; echo hello >&"${COPROC[1]}"
		read -r line <&"${COPROC[0]}"; echo "$line"
		kill "$COPROC_PID"
		exit 3'
	grep -q '^bye$' rep.out
	grep -q '^hello$' rep.out
	grep -q '^killed 143$' rep.out
}

@test "programs of a user without rights, one of which lets nobody look at it" {
	[ "$(id -u)" = 0 ] || skip "not root"
	local dir
	dir=$(mktemp -d /tmp/trace-test-XXXXXX)
	cp "$BUILD"/bin/trace-* "$BUILD/workloads/extensions" "$dir"
	chown -R 65534:65534 "$dir"
	cd "$dir"
	as_nobody ./trace-record -o t ./extensions >rec.out
	as_nobody ./trace-replay t >rep.out 2>rep.err || fail "$(cat rep.err)"
	cmp rec.out rep.out
	as_nobody ./trace-record -o u unshare -U -r sh -c 'id -u; cat /proc/self/status' >rec.out
	as_nobody ./trace-replay u >rep.out 2>rep.err || fail "$(cat rep.err)"
	cmp rec.out rep.out
	cd /
	rm -r "$dir"
}

# A project of N files and a Makefile in the directory $1.
c_project() {
	mkdir "$1"
	for i in 1 2 3 4; do
		cat >"$1/f$i.c" <<-END
			#include <stdio.h>
			#include <string.h>
			int f$i(int x);
			int f$i(int x) { printf("f$i %d\n", x); return x + $i; }
		END
	done
	cat >"$1/main.c" <<-'END'
		int f1(int), f2(int), f3(int), f4(int);
		int main(void) { return f4(f3(f2(f1(0)))) != 10; }
	END
	cat >"$1/Makefile" <<-'END'
		.RECIPEPREFIX = >
		vpath %.c ../src
		prog: main.o f1.o f2.o f3.o f4.o
		> gcc -o $@ $^
		> ./$@
		%.o: %.c
		> gcc -O1 -g -c -o $@ $<
	END
}

@test "make -j2 of a C project" {
	c_project src
	varies=1 same 0 make -j2 -f ../src/Makefile
	grep -q '^f4 6$' rep.out
	trace-dump --tasks t | jq -r .exe >exes
	grep -q '/cc1$' exes
	grep -q 'ld' exes
}

@test "gcc reports errors as ever" {
	echo 'int main(void) { return undeclared; }' >bad.c
	same 1 gcc -c -o x.o ../bad.c
	grep -q undeclared rep.err
}

@test "python3: json, re, hashlib, subprocess, files" {
	cat >p.py <<-'END'
		import hashlib, json, os, random, re, subprocess, sys, tempfile, time
		data = {str(i): [i, i / 3, "x" * i] for i in range(200)}
		text = json.dumps(data, sort_keys=True)
		assert json.loads(text) == data
		print(hashlib.sha256(text.encode()).hexdigest())
		print(len(re.findall(r"x+", text)), random.random(), time.time())
		print({object() for _ in range(3)}, os.getpid(), id(data))
		with tempfile.NamedTemporaryFile("w+") as f:
		    f.write(text); f.flush()
		    print(os.stat(f.name).st_size, f.name)
		p = subprocess.run(["tr", "a-z", "A-Z"], input="some text",
		                   capture_output=True, text=True)
		print(p.stdout, p.returncode)
		try:
		    subprocess.run(["/no/such/program"])
		except FileNotFoundError as e:
		    print(e)
		print("to stderr", file=sys.stderr)
		raise SystemExit(7)
	END
	varies=1 same 7 /usr/bin/python3 ../p.py
	grep -q 'SOME TEXT 0' rep.out
}

@test "python3: threading" {
	cat >p.py <<-'END'
		import queue, threading, time
		from concurrent.futures import ThreadPoolExecutor
		q, out, lock = queue.Queue(), [], threading.Lock()
		def worker(n):
		    while (item := q.get()) is not None:
		        with lock:
		            out.append((n, item))
		        time.sleep(0.001)
		threads = [threading.Thread(target=worker, args=(n,)) for n in range(4)]
		for t in threads: t.start()
		for i in range(100): q.put(i)
		for t in threads: q.put(None)
		for t in threads: t.join()
		assert sorted(i for _, i in out) == list(range(100))
		print(out)
		total = 0
		def spin(n):
		    global total
		    for i in range(n):
		        total += 1
		threads = [threading.Thread(target=spin, args=(100000,)) for _ in range(2)]
		for t in threads: t.start()
		for t in threads: t.join()
		print(total)
		with ThreadPoolExecutor(3) as pool:
		    print(list(pool.map(lambda x: x * x, range(20))))
	END
	varies=1 repeat 1 same 0 /usr/bin/python3 ../p.py
}

@test "python3: multiprocessing" {
	cat >p.py <<-'END'
		import multiprocessing as mp, os
		def f(x):
		    return x * x, os.getpid()
		def add(v, n):
		    for _ in range(n):
		        with v.get_lock():
		            v.value += 1
		if __name__ == "__main__":
		    with mp.Pool(3) as pool:
		        print(pool.map(f, range(20)))
		    v = mp.Value("i", 0)
		    ps = [mp.Process(target=add, args=(v, 50)) for _ in range(3)]
		    for p in ps: p.start()
		    for p in ps: p.join()
		    assert v.value == 150
		    a, b = mp.Pipe()
		    p = mp.Process(target=b.send, args=({"x": [1, 2]},))
		    p.start(); print(a.recv()); p.join()
	END
	varies=1 repeat 1 same 0 /usr/bin/python3 ../p.py
}

@test "python3: asyncio" {
	cat >p.py <<-'END'
		import asyncio, time
		async def serve(reader, writer):
		    writer.write((await reader.readline()).upper())
		    await writer.drain()
		    writer.close()
		async def client(port, n):
		    r, w = await asyncio.open_connection("127.0.0.1", port)
		    w.write(b"hello %d\n" % n)
		    line = await r.read()
		    w.close()
		    return line
		async def main():
		    server = await asyncio.start_server(serve, "127.0.0.1", 0)
		    port = server.sockets[0].getsockname()[1]
		    print(await asyncio.gather(*(client(port, i) for i in range(10))))
		    p = await asyncio.create_subprocess_exec(
		        "sh", "-c", "echo child; exit 3", stdout=asyncio.subprocess.PIPE)
		    print((await p.communicate())[0], p.returncode)
		    try:
		        await asyncio.wait_for(asyncio.sleep(10), 0.05)
		    except asyncio.TimeoutError:
		        print("timeout")
		    print(await asyncio.to_thread(sum, range(100)), time.monotonic())
		asyncio.run(main())
	END
	varies=1 repeat 1 same 0 /usr/bin/python3 ../p.py
	grep -q '^timeout$' rep.out
}

@test "node: worker threads" {
	need node
	cat >n.js <<-'END'
		const { Worker, isMainThread, parentPort, workerData } =
			require('worker_threads');
		if (isMainThread) {
			let left = 3;
			for (let n = 1; n <= 3; n++) {
				const w = new Worker(__filename, { workerData: n });
				w.on('message', m => console.log(n, m));
				w.on('exit', c => {
					if (--left === 0)
						console.log('all', Math.random(), Date.now());
				});
			}
		} else {
			let x = 0;
			for (let i = 0; i < 1e5 * workerData; i++)
				x = (x * 31 + i) % 1000003;
			parentPort.postMessage(x);
		}
	END
	varies=1 repeat 1 same 0 node ../n.js
	grep -q '^all' rep.out
}

@test "perl" {
	cat >p.pl <<-'END'
		my %h = map { $_ => $_ ** 2 } 1 .. 100;
		print join(",", map { "$_=$h{$_}" } keys %h), "\n"; # random order
		open(my $p, "-|", "echo from a child; exit 2") or die;
		print while <$p>;
		close $p;
		print $? >> 8, "\n";
		local $SIG{ALRM} = sub { die "alarm\n" };
		eval { alarm 1; select(undef, undef, undef, 0.01) while 1; };
		print STDERR "caught $@";
		my $pid = fork;
		exit 9 if !$pid;
		waitpid $pid, 0;
		print $? >> 8, " ", rand, "\n";
		warn "at the end\n";
		exit 8;
	END
	varies=1 same 8 perl ../p.pl
	grep -q '^at the end' rep.err
}

@test "awk" {
	lines 100000 >in
	# shellcheck disable=SC2016
	from=in same 0 awk '
		{ n[$2] += $1 }
		END { for (k in n) print k, n[k]; "echo sub" | getline x; print x
		      print "sorted" | "sort"; close("sort"); system("exit 3") }'
}

@test "sqlite3" {
	need sqlite3
	same 0 sqlite3 x.db '
		pragma journal_mode = wal;
		create table t(a integer primary key, b text, c real);
		with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
			insert into t select i, hex(i * 7919), i / 3.0 from n;
		create index i on t(b);
		begin; update t set b = b || "x" where a % 3 = 0; rollback;
		select count(*), sum(c), max(b) from t where b like "3%";
		vacuum; pragma integrity_check;'
	grep -q '^ok$' rep.out
}

@test "git: init, commit, clone, log, diff, gc" {
	need git
	cat >g.sh <<-'END'
		set -e
		export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
		export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
		export GIT_CONFIG_NOSYSTEM=1
		git init -q -b main one
		cd one
		for i in 1 2 3; do
			seq "$i" 1000 >f
			echo "$i" >"g$i"
			git add .
			git commit -q -m "commit $i"
		done
		cd ..
		git clone -q one two
		cd two
		git log --stat
		git diff HEAD~2 -- f
		git gc -q
		git fsck
		git status --short
	END
	varies=1 same 0 sh ../g.sh
	grep -q 'commit 3' rep.out
}

@test "xz and zstd with threads" {
	need xz zstd
	lines 100000 >in
	repeat 1 same 0 sh -c 'xz -T2 --block-size=1MiB -1 -c ../in | xz -T2 -dc | cksum'
	repeat 1 same 0 sh -c 'zstd -q -T2 -3 -c ../in | zstd -q -dc | cksum'
}

@test "a static program" {
	cat >s.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <time.h>
		int main(void)
		{
			struct timespec t;
			clock_gettime(CLOCK_REALTIME, &t);
			printf("%p %ld\n", malloc(1000), t.tv_nsec);
			return 6;
		}
	END
	gcc -static -o s s.c
	varies=1 same 6 ../s
}

@test "death by SIGSEGV, by abort, by a signal of one's own" {
	cat >d.c <<-'END'
		#include <signal.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			(void)argc;
			puts("before");
			fflush(stdout);
			if (strcmp(argv[1], "segv") == 0)
				*(volatile int *)16 = 1;
			if (strcmp(argv[1], "abort") == 0)
				abort();
			if (strcmp(argv[1], "fpe") == 0)
				return 100 / (volatile int){argc - 2};
			if (strcmp(argv[1], "ill") == 0)
				__asm__ volatile("ud2");
			if (strcmp(argv[1], "trap") == 0)
				__asm__ volatile("int3");
			kill(getpid(), atoi(argv[1]));
			return 0;
		}
	END
	gcc -o d d.c
	same SIGSEGV ../d segv
	same SIGABRT ../d abort
	same SIGFPE ../d fpe
	same SIGILL ../d ill
	same SIGTRAP ../d trap
	same SIGTERM ../d 15
	same SIGKILL ../d 9
	same SIGPIPE ../d 13
	same 0 ../d 17
	[ "$(cat rep.out)" = before ]
}

@test "processes of the tree kill each other" {
	# Whether the shell says "Killed" depends on whether it already waited.
	# shellcheck disable=SC2016
	repeat 1 same 137 sh -c 'exec 2>/dev/null
		sleep 30 & kill -9 $!; wait $!; echo "$?"; exit 137'
	# shellcheck disable=SC2016
	repeat 1 same SIGUSR1 sh -c '(sleep 0.1; kill -USR1 $$) & while :; do sleep 0.01; done'
	# shellcheck disable=SC2016
	repeat 1 same SIGKILL sh -c '(sleep 0.1; kill -9 $$) & while :; do :; done'
}

@test "every exit status is passed on" {
	# A shell is quicker than 256 calls of same; the limits and some alone.
	for n in 1 125 127 139 255; do
		same $n sh -c "exit $n"
	done
	# shellcheck disable=SC2016
	same 0 sh -c 'n=0; while [ $n -le 255 ]; do
		(exit $n); echo $?; n=$((n + 1)); done'
	[ "$(seq 0 255)" = "$(cat rep.out)" ]
}

@test "input from a pipe, a file, and none at all" {
	lines 20000 >in
	(sleep 0.1; cat in; sleep 0.1; echo last) | trace-record -o t wc >rec.out
	replays 0
	cmp rec.out rep.out
	# shellcheck disable=SC2016
	from=in same 0 sh -c 'read -r a; echo "$a"; cat | cksum'
	rm -r t
	trace-record -o t sh -c 'read -r x; echo "status $?"' <&- >rec.out 2>rec.err
	replays 0
	cmp rec.out rep.out
	cmp rec.err rep.err
}

@test "both outputs to one file keep their order" {
	cat >o.sh <<-'END'
		for i in 1 2 3 4 5 6 7 8 9; do
			echo "out $i"
			echo "err $i" >&2
			/bin/echo "child out $i"
			/bin/echo "child err $i" >&2
		done
	END
	trace-record -o t sh o.sh >rec 2>&1
	trace-replay -q t >rep 2>&1
	cmp rec rep
	[ "$(wc -l <rec)" = 36 ]
	trace-record -o u sh -c 'exec 3>&1; sh o.sh >&2 2>&3' >rec.out 2>rec.err
	trace-replay -q u >rep.out 2>rep.err
	cmp rec.out rep.out
	cmp rec.err rep.err
}

@test "processes side by side: their outputs keep their order" {
	need perl
	# shellcheck disable=SC2016
	varies=1 repeat 3 same 0 perl -e '
		$| = 1;
		select STDERR; $| = 1; select STDOUT;
		for my $i (1 .. 4) {
			next if fork;
			for my $j (1 .. 300) {
				print "$i "; print "$j\n";
				print STDERR "$i\n" if $j % 7 == 0;
			}
			exit;
		}
		1 while wait > 0;'
	[ "$(wc -l <rep.out)" = 1200 ]
}

@test "a closed output" {
	status=0
	trace-record -o t sh -c 'echo x; echo y >&2' >&- 2>rec.err || status=$?
	trace-replay -q t >rep.out 2>rep.err
	[ ! -s rep.out ]
	cmp rec.err rep.err
}

@test "outputs elsewhere are not replayed, only what went to the recorder's" {
	same 0 sh -c 'echo kept; echo lost >file; exec >file2; echo lost too'
	[ "$(cat rep.out)" = kept ]
}
