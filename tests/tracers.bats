#!/usr/bin/env bats
# Programs that trace others: recorded, replayed, and the same in everything
# that can be seen of them.

load helpers

need() {
	command -v "$1" >/dev/null || skip "no $1 here"
}

# A program that calls itself and then dies of a bad address.
crasher() {
	cat >crash.c <<-'END'
		#include <stdio.h>
		int depth;
		int f(int n)
		{
			depth++;
			if (n == 0)
				*(volatile int *)16 = 1;
			return f(n - 1) + 1;
		}
		int main(void)
		{
			puts("before");
			fflush(stdout);
			return f(3);
		}
	END
	gcc -g -O0 -o crash crash.c
}

# debug PROGRAM COMMAND...: gdb's own threads would only take turns.
debug() {
	varies=1 same 0 gdb -nx -batch -iex 'maint set worker-threads 0' \
		"${@:2}" "$1"
}

@test "strace of one program" {
	need strace
	varies=1 same 3 strace sh -c 'exit 3'
	grep -q '^exit_group(3) ' rep.err
	grep -q '^+++ exited with 3 +++$' rep.err
}

@test "strace -f of a pipeline, with signals" {
	need strace
	varies=1 same 0 strace -f sh -c '
		trap "echo got" USR1; kill -USR1 $$; /bin/true; echo x | cat'
	grep -q -- '--- SIGUSR1 {' rep.err
	grep -q 'execve("/bin/true"' rep.err
	[ "$(cat rep.out)" = "got
x" ]
}

@test "strace -c, -y and injected results" {
	need strace
	varies=1 same 0 strace -c -f sh -c '/bin/true; /bin/true'
	grep -q ' total$' rep.err
	varies=1 same 0 strace --seccomp-bpf -f -e trace=exit_group \
		sh -c '/bin/true; exit'
	[ "$(grep -c 'exit_group(0)' rep.err)" = 2 ]
	[ "$(trace-dump -s ptrace t | grep -c PTRACE_SYSCALL)" -lt 40 ] ||
		fail "strace did not use its filter"
	varies=1 same 0 strace -y -e trace=openat,read cat /dev/null
	varies=1 same 1 strace -e inject=write:error=ENOSPC cat /etc/passwd
	grep -q 'No space left on device' rep.err
	[ ! -s rep.out ]
}

@test "gdb: breakpoints, backtraces, the crash" {
	need gdb
	crasher
	debug ../crash -ex 'break f if n == 1' -ex run -ex bt \
		-ex 'print depth' -ex 'set var depth = 70' -ex 'finish' \
		-ex 'print depth' -ex bt -ex kill
	grep -q 'in main () at' rep.out
	grep -q '^\$1 = 2$' rep.out
	grep -q 'Program received signal SIGSEGV' rep.out
	grep -q '^\$2 = 72$' rep.out
}

@test "gdb: steps, calls into the program, watchpoints" {
	need gdb
	crasher
	debug ../crash -ex 'break main' -ex run -ex next -ex step -ex stepi \
		-ex stepi -ex 'info registers rip' -ex 'tbreak f' \
		-ex continue -ex 'print f == 0' -ex 'print abs(-5)' \
		-ex 'set can-use-hw-watchpoints 0' -ex 'watch depth' \
		-ex continue -ex continue -ex delete -ex continue
	grep -q '^Old value = 0$' rep.out
	grep -q '^New value = 2$' rep.out
	grep -q '^\$2 = 5$' rep.out
	grep -q 'Program received signal SIGSEGV' rep.out
}

@test "gdb: attach to a running program and detach" {
	need gdb
	cat >sleeper.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		volatile int value = 5;
		int main(void)
		{
			char byte;
			while (read(0, &byte, 1) == 1)
				;
			printf("value %d\n", value);
			return 0;
		}
	END
	gcc -g -o sleeper sleeper.c
	varies=1 same 0 sh -c 'mkfifo pipe; ../sleeper <pipe & p=$!; exec 3>pipe
		sleep 0.2
		gdb -nx -batch -p $p -ex bt -ex "set var value = 9" -ex detach
		exec 3>&-; wait $p'
	grep -q '^value 9$' rep.out
	grep -q 'in main () at' rep.out
}

@test "gdb: attach to a program that computes and change a variable" {
	need gdb
	cat >busy.c <<-'END'
		#include <stdio.h>
		volatile int value;
		volatile long n;
		int main(void)
		{
			puts("begins");
			fflush(stdout);
			while (!value)
				n++;
			printf("value %d, %ld\n", value, n);
			return 0;
		}
	END
	gcc -g -o busy busy.c
	varies=1 same 0 sh -c 'mkfifo pipe; ../busy >pipe & p=$!; exec 3<pipe
		read begun <&3
		gdb -nx -batch -p $p -ex "print n > 0" \
			-ex "set var value = 9" -ex detach
		read line <&3; echo "$line"; wait $p'
	grep -q '^\$1 = 1$' rep.out
	grep -q '^value 9, [1-9]' rep.out
}

@test "leak checkers stop the world" {
	cat >leak.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>
		static void *sleeper(void *arg) { sleep(100); return arg; }
		int main(int argc, char **argv)
		{
			pthread_t t;
			static char *volatile p;
			(void)argv;
			p = malloc(77);
			*p = 1;
			if (argc > 1)
				p = NULL;
			pthread_create(&t, NULL, sleeper, NULL);
			pthread_create(&t, NULL, sleeper, NULL);
			puts("done");
			return 0;
		}
	END
	for kind in address leak; do
		gcc -g -fsanitize=$kind -o leak leak.c -pthread
		varies=1 same 0 ../leak
		[ ! -s rep.err ] || fail "$(cat rep.err)"
		status=1
		[ $kind = address ] || status=23
		varies=1 same $status ../leak leak
		grep -q '77 byte(s) leaked in 1 allocation(s)' rep.err ||
			fail "$(cat rep.err)"
	done
}

@test "what cannot be served is refused, and the trace says so" {
	cat >refuse.c <<-'END'
		#include <errno.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/ptrace.h>
		int main(int argc, char **argv)
		{
			(void)argc;
			if (ptrace(PTRACE_ATTACH, atoi(argv[1]), 0, 0) < 0)
				printf("%d\n", errno);
			return 0;
		}
	END
	gcc -o refuse refuse.c
	sleep 100 &
	outside=$!
	expect 0 trace-record -o t ./refuse $outside
	[ "$output" = 1 ] # EPERM
	one_error trace-record
	has "$stderr" "refused: process "
	has "$stderr" ": process $outside is not part of the recording"
	expect 0 trace-record -q -o quiet ./refuse $outside
	[ -z "$stderr" ]
	kill $outside
	expect 0 trace-dump -f text t
	has "$output" "process $outside is not part of the recording"
	expect 0 trace-replay t
}
