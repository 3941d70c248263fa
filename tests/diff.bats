#!/usr/bin/env bats
# trace-diff: differences made on purpose are found at the right event, and
# named; equal runs are equal; what comes from a pipe is compared as well.

load helpers

setup_file() {
	PATH=$(cd "${BUILD:-$BATS_TEST_DIRNAME/../build}" && pwd)/bin:$PATH
	cd "$BATS_FILE_TMPDIR" || return 1
	seq 40 >numbers
	# One after the other: who of several ends first is no part of a test.
	trace-record -o a sh -c 'cat numbers; sort -r numbers' >/dev/null
	trace-record -o b sh -c 'cat numbers; sort -r numbers' >/dev/null
}

# altered ACTION N...: the trace a with something altered is t.
altered() {
	rm -rf t
	"$BUILD/tests/alter" "$BATS_FILE_TMPDIR/a" t "$@"
	cp -r "$BATS_FILE_TMPDIR/a/files" t
	expect 0 trace-verify -q t
}

# first JQ: of the trace a.
first() {
	trace-dump -v "$BATS_FILE_TMPDIR/a" |
		jq -s "map(select($1)) | .[0].event"
}

# parts KIND LEFT RIGHT: where t leaves a.
parts() {
	expect 1 trace-diff "$BATS_FILE_TMPDIR/a" t
	valid_json "$BATS_TEST_TMPDIR/stdout"
	tail -n 1 "$BATS_TEST_TMPDIR/stdout" |
		jq -e --arg kind "$1" --argjson left "$2" --argjson right "$3" \
			'.identical == false and .first.kind == $kind and
			.first.left == $left and .first.right == $right' ||
		fail "expected $*: $(tail -n 1 "$BATS_TEST_TMPDIR/stdout")"
}

@test "two runs of one program are the same" {
	expect 0 trace-diff "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/b"
	jq -e '.identical and .compared > 100 and .first == null' \
		"$BATS_TEST_TMPDIR/stdout"
	expect 1 trace-diff -i none "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/b"
	expect 0 trace-diff -i none "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/a"
}

@test "a byte flipped in what was read" {
	n=$(first '.name == "read" and (.mem[0].size // 0) > 60 and
		(.mem[0].data | tostring | startswith("1\n2\n"))')
	altered flip "$n" 50
	parts data "$n" "$n"
	has "$output" 'data at byte 50 of read'
	# It is one event that differs: the program was not executed again.
	jq -e 'select(.type == "verdict") | .changed == 1 and .missing == 0 and
		.extra == 0' "$BATS_TEST_TMPDIR/stdout"
	expect 0 trace-diff -i pids,addresses,times,data \
		"$BATS_FILE_TMPDIR/a" t
}

@test "a result, an argument" {
	n=$(first '.name == "write" and .result > 20')
	altered result "$n" 7
	parts result "$n" "$n"
	altered rdi "$n" 17
	parts argument "$n" "$n"
	has "$output" 'fd of write: 1, 17'
	expect 1 trace-diff -i pids,addresses,times,fds "$BATS_FILE_TMPDIR/a" t
	n=$(first '.name == "close" and .args.fd > 2')
	altered rdi "$n" 17
	parts argument "$n" "$n"
	expect 0 trace-diff -i pids,addresses,times,fds "$BATS_FILE_TMPDIR/a" t
}

@test "an event dropped, an event twice" {
	n=$(first '.name == "openat" and .result > 0 and .task == 2')
	altered drop "$n"
	parts missing "$n" null
	jq -e 'select(.type == "verdict") | .missing == 1 and .extra == 0 and
		.changed == 0' "$BATS_TEST_TMPDIR/stdout"
	altered twice "$n"
	parts extra null $((n + 1))
	jq -e 'select(.type == "verdict") | .missing == 0 and .extra == 1 and
		.changed == 0' "$BATS_TEST_TMPDIR/stdout"
}

@test "many more events in the middle" {
	n=$(first '.name == "read" and .result > 60')
	altered copies "$n" 50000 0
	expect 1 trace-diff -n 5 "$BATS_FILE_TMPDIR/a" t
	valid_json "$BATS_TEST_TMPDIR/stdout"
	jq -e 'select(.type == "verdict") | .missing == 0 and .extra == 49999 and
		.changed == 0' "$BATS_TEST_TMPDIR/stdout"
	[ "$(grep -c '"type":"difference"' "$BATS_TEST_TMPDIR/stdout")" = 5 ]
}

@test "another file, another program" {
	mkdir one two
	seq 10 >one/file
	{ seq 9; echo eleven; } >two/file
	for d in one two; do
		(cd $d && trace-record -o ../t-$d cat file >/dev/null)
	done
	expect 1 trace-diff t-one t-two
	jq -e 'select(.type == "verdict") | .first.kind == "data" or
		.first.kind == "result"' "$BATS_TEST_TMPDIR/stdout"
	for v in 1 2; do
		printf '#include <unistd.h>\nint main(void)
			{ getppid(); %s write(1, "x\\n", 2); return 0; }\n' \
			"$([ $v = 1 ] || echo 'getuid();')" >p.c
		gcc -O1 -o p p.c
		trace-record -o p$v ./p >/dev/null
	done
	expect 1 trace-diff p1 p2
	jq -e 'select(.type == "verdict") | .extra == 1 and .missing == 0 and
		.changed == 0' "$BATS_TEST_TMPDIR/stdout"
	head -n 1 "$BATS_TEST_TMPDIR/stdout" | jq -e '.kind == "extra" and
		.right.name == "getuid"'
}

@test "what a mapped file held" {
	printf '#include <stdio.h>\nint main(void) { puts(TEXT); return 0; }\n' >p.c
	for i in 1 2 3; do
		gcc -O0 -DTEXT='"same"' -DV=$i -o p p.c
		[ $i = 1 ] || printf 'more' >>p
		trace-record -o t$i ./p >/dev/null
	done
	expect 0 trace-diff t1 t2
	expect 1 trace-diff -i pids,addresses,times t1 t2
	head -n 1 "$BATS_TEST_TMPDIR/stdout" | jq -e '.kind == "data" and
		.left.type == "image" and
		(.what | startswith("contents of a file of image: "))'
	expect 0 trace-diff -i pids,addresses,times t2 t3
}

@test "names of temporary files" {
	cat >p.c <<-'END'
		#include <fcntl.h>
		#include <stdio.h>
		#include <sys/stat.h>
		#include <unistd.h>
		int main(void)
		{
			char name[64], dir[64];

			/* Not mkstemp(3): how often it asks for random numbers
			 * depends on them. */
			sprintf(name, "/tmp/test-%d", (int)getpid());
			sprintf(dir, "/tmp/dir-%d", (int)getpid());
			if (open(name, O_RDWR | O_CREAT | O_EXCL, 0600) < 0 ||
			    mkdir(dir, 0700) < 0 || access(name, R_OK) < 0)
				return 1;
			chdir(dir);
			open("inside", O_RDONLY);
			return unlink(name) < 0 || rmdir(dir) < 0;
		}
	END
	gcc -O1 -o p p.c
	for i in 1 2; do
		trace-record -o t$i ./p
	done
	expect 1 trace-diff t1 t2
	jq -s -e 'map(.what) | any(tostring | contains("/tmp/test-"))' \
		"$BATS_TEST_TMPDIR/stdout"
	expect 0 trace-diff -i pids,addresses,times,names t1 t2
	jq -e '.identical and .compared > 20' "$BATS_TEST_TMPDIR/stdout"
	expect 1 trace-diff -i addresses,names,times "$BATS_FILE_TMPDIR/a" t1
}

@test "signals that come at another place" {
	cat >p.c <<-'END'
		#include <signal.h>
		#include <stdlib.h>
		#include <unistd.h>
		static void handler(int sig) { (void)sig; }
		int main(int argc, char **argv)
		{
			(void)argc;
			signal(SIGUSR1, handler);
			for (int i = 0; i < 50; i++)
				if (getppid(), i == atoi(argv[1]))
					raise(SIGUSR1);
			return 0;
		}
	END
	gcc -O1 -o p p.c
	trace-record -o t1 ./p 10
	trace-record -o t2 ./p 40
	expect 1 trace-diff -f text t1 t2
	grep -q '^-.*--- SIGUSR1' <<<"$output"
	grep -q '^+.*--- SIGUSR1' <<<"$output"
	expect 1 trace-diff -f text -i pids,addresses,times,signals t1 t2
	! grep -q -e '--- SIGUSR1' <<<"$output" || fail "$output"
}

@test "one child more moves no other" {
	trace-record -o t1 sh -c '/bin/echo a; (:); cat /dev/null; expr 1; :'
	trace-record -o t2 sh -c '/bin/true 1; /bin/echo a; (:); sh -c "expr 2; /bin/true 3"
		cat /dev/null; expr 1; :'
	expect 1 trace-diff t1 t2
	# No call of the children that both have has changed or is missing.
	jq -s -e '.[-1] | .changed == 0 and .missing == 0 and .extra > 0' \
		<<<"$output"
	expect 1 trace-diff t2 t1
	jq -s -e '.[-1] | .changed == 0 and .extra == 0' <<<"$output"
	# Other arguments: the only one between those that agree.
	trace-record -o t3 sh -c '/bin/echo b; (:); cat /dev/null; expr 1; :'
	expect 1 trace-diff t1 t3
	jq -s -e '.[-1] | .changed > 0 and .changed < 10 and .missing == 0' \
		<<<"$output"
}

@test "events from a pipe, on either side, and from a file" {
	a=$BATS_FILE_TMPDIR/a b=$BATS_FILE_TMPDIR/b
	trace-dump "$a" | trace-diff - "$b" >out
	jq -e .identical out
	trace-dump "$b" | trace-diff "$a" - >out
	jq -e .identical out
	trace-dump "$b" >b.json
	trace-dump "$a" | trace-diff b.json - >out
	jq -e .identical out
	n=$(first '.name == "write" and .result > 20')
	altered result "$n" 7
	status=0
	trace-dump t | trace-diff "$a" - >out || status=$?
	[ $status = 1 ]
	valid_json out
	jq -e --argjson n "$n" 'select(.type == "verdict") |
		.first.kind == "result" and .first.right == $n' out
	trace-dump t | trace-diff -f text "$a" - >out || status=$?
	grep -q '^@@ result of write: ' out
	grep -q '^-.*write(1, ' out
	grep -q '^+.*write{"fd":1,' out
}

@test "a pipe without events, or with something else, is trouble" {
	expect 2 trace-diff - - </dev/null
	one_error trace-diff
	for text in '' hello '{' '{"type":"exit","event":1}' '[1]' \
		'{"type":"exit","event":-1,"task":1}'; do
		printf '%s\n' "$text" >in
		expect 2 trace-diff "$BATS_FILE_TMPDIR/a" - <in
		one_error trace-diff
		# shellcheck disable=SC2154
		has "$stderr" 'standard input'
	done
}

@test "-n and -U; what is shown in text" {
	n=$(first '.name == "read" and .result > 60')
	altered flip "$n" 1
	expect 1 trace-diff -f text -U 2 "$BATS_FILE_TMPDIR/a" t
	[ "$(grep -c '^ ' <<<"$output")" = 4 ]
	[ "$(grep -c '^-  ' <<<"$output")" = 1 ]
	[ "$(grep -c '^+  ' <<<"$output")" = 1 ]
	expect 1 trace-diff -f text -U 0 "$BATS_FILE_TMPDIR/a" t
	[ "$(grep -c '^ ' <<<"$output")" = 0 ]
	has "$output" '1 changed, 0 missing, 0 extra; they part at'
	expect 2 trace-diff -i nonsense a b
	one_error trace-diff
}

# Two programs that put another number into one variable.
two_programs() {
	cat >p.c <<-'END'
		#include <sys/syscall.h>
		static int here = 1;
		int changed, unused[3000];
		int main(void)
		{
			long result = SYS_write;
			changed = VALUE;
			__asm__ volatile("syscall" : "+a"(result)
				: "D"(1), "S"(&changed), "d"(here)
				: "rcx", "r11", "memory");
			return unused[10];
		}
	END
	gcc -g -O0 -DVALUE=0x11223344 -o p p.c
	trace-record -o p1 ./p >/dev/null
	gcc -g -O0 -DVALUE=0x55667788 -o p p.c
	trace-record -o p2 ./p >/dev/null
}

@test "--memory: registers, bytes, mapping, symbol, source line" {
	two_programs
	expect 1 trace-diff --memory p1 p2
	valid_json "$BATS_TEST_TMPDIR/stdout"
	cp "$BATS_TEST_TMPDIR/stdout" out
	tail -n 1 out | jq -e '.first.kind == "argument"'
	jq -s -e 'map(select(.type == "place")) | length == 2 and
		all(.symbol | startswith("main+")) and
		all(.source | endswith("p.c:8") or endswith("p.c:7"))' out
	jq -s -e 'map(select(.type == "memory" and
		((.symbol // "") | startswith("changed")))) |
		length == 1 and .[0].left == "44332211" and
		.[0].right == "88776655" and (.[0].mapping | endswith("/p"))' out
	jq -s -e 'map(select(.type == "layout")) == []' out
	jq -s -e 'map(select(.type == "states")) | .[0].bytes >= 4' out
	expect 1 trace-diff -f text -m p1 p2
	has "$output" 'changed+0x0 in '
	has "$output" ' 44 33 22 11 '
	# Where the same trace is replayed twice, nothing differs.
	n=$(tail -n 1 out | jq .first.left)
	trace-replay -q -g "$n" --contents p1 >s1
	trace-replay -q -g "$n" --contents p1 | cmp - s1
	valid_json s1
	expect 2 trace-diff -m p1 - </dev/null
	one_error trace-diff
}

@test "trace-replay --goto: to the event that trace-diff tells" {
	two_programs
	n=$(trace-diff p1 p2 | jq 'select(.type == "verdict").first.right')
	trace-diff p1 p2 | trace-replay -f json -g - p2 >out ||
		fail "not reached"
	valid_json out
	jq -e --argjson n "$n" 'select(.type == "verdict") |
		.result == "reached" and .events == $n' out
	trace-dump -s write p2 | tail -n 1 | trace-replay -g - --state p2 >out
	valid_json out
	jq -s -e '.[0].type == "registers" and (.[0].rip | length) > 2 and
		any(.type == "page") and all(has("data") | not)' out
	expect 2 trace-replay -g 100000 p2
	one_error trace-replay
	has "$stderr" 'no event 100000'
	for bad in 0 x 1x '' -1; do
		expect 2 trace-replay -g "$bad" p2
		one_error trace-replay
	done
	expect 2 trace-replay --state p2
	one_error trace-replay
	expect 2 trace-replay -g - p2 </dev/null
	one_error trace-replay
	# Behind the end of a task there is no state.
	last=$(trace-dump -T exit p2 | tail -n 1 | jq .event)
	expect 2 trace-replay -q -g "$last" --state p2
	has "$stderr" 'not there any more'
}

@test "--memory where a trace cannot be replayed so far is trouble" {
	two_programs
	cp -r p1 broken
	file=$(trace-dump --files broken |
		jq -r 'select(.path | tostring | endswith("/p")) | .file')
	chmod u+w "broken/files/$file"
	truncate -s 100 "broken/files/$file"
	expect 2 trace-diff -m broken p2
	has "$stderr" 'trace-'
}

@test "states from a replay: a byte flipped shows in mapping and page" {
	cat >p.c <<-'END'
		#include <unistd.h>
		static char buffer[8192] __attribute__((aligned(4096)));
		int main(void)
		{
			if (read(0, buffer + 4096, 5) != 5)
				return 1;
			getppid();
			return 0;
		}
	END
	gcc -O0 -o p p.c
	echo hell | trace-record --digest=syscall -o t1 ./p
	trace-replay --digests -q t1 | trace-diff t1 - >out
	jq -e '.identical and .compared > 10' out
	n=$(trace-dump -s read t1 | jq -s 'map(select(.args.count == 5))[0].event')
	page=$(trace-dump -v -e "$n" t1 | tail -n 1 | jq -r .regs.rsi)
	"$BUILD/tests/alter" t1 t2 flip "$n" 2
	cp -r t1/files t2
	trace-replay --digests -q t2 >states || true
	valid_json states
	status=0
	trace-diff t1 - <states >out || status=$?
	[ $status = 1 ]
	valid_json out
	# The state right behind the read is the first, its page is named.
	head -n 1 out | jq -e --argjson n "$n" --arg page "$page" \
		'.kind == "state" and .left.event == $n + 1 and
		(.what | contains("; page " + $page))'
	head -n 1 out | jq -e '.what | contains("/p; page") or contains("; mapping")'
	# The same from the recorded states of both.
	expect 0 trace-diff --digests t1 t2
	expect 2 trace-diff --digests t1 /dev/null
}
