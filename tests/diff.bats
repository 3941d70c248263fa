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

@test "names of temporary files" {
	cat >p.c <<-'END'
		#include <fcntl.h>
		#include <stdlib.h>
		#include <unistd.h>
		int main(void)
		{
			char name[] = "/tmp/test-XXXXXX", dir[] = "/tmp/dir-XXXXXX";
			int fd = mkstemp(name);

			if (fd < 0 || !mkdtemp(dir) || access(name, R_OK) < 0)
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
