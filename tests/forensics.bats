#!/usr/bin/env bats
# Questions about an execution, answered by the scripts of trace-forensics(7):
# each is asked of a recording whose answer is known.

load helpers

setup_file() {
	PATH=$(cd "${BUILD:-$BATS_TEST_DIRNAME/../build}" && pwd)/bin:$PATH
	cd "$BATS_FILE_TMPDIR" || return 1
	seq 500 >in
	printf 'a\303\251\342\202\254\360\237\230\200\200\0z' >binary
	cat >two.sh <<-'END'
		trap 'echo caught' USR1
		head -c 5000 in >out
		cat binary | wc -c >/dev/null
		sh -c 'kill -USR1 $PPID; sleep 0.2'
		exit 5
	END
	trace-record -o t sh two.sh >/dev/null || [ $? = 5 ]
}

# ask SCRIPT JQ-ARGUMENT...: of what is on standard input.
ask() {
	local script=$SOURCE/tests/forensics/$1.jq
	shift
	jq -n -r "$@" -f "$script"
}

t() {
	trace-dump "$@" "$BATS_FILE_TMPDIR/t"
}

# The task that executed the program, the first of that name.
task_of() {
	t --tasks | jq -s --arg exe "/$1" \
		'map(select(.exe | tostring | endswith($exe)))[0].task'
}

@test "files read and written, by process" {
	t | ask files >out
	head=$(task_of head)
	size=$(wc -c <"$BATS_FILE_TMPDIR/in")
	grep -q -x "$head	read	$size	$BATS_FILE_TMPDIR/in" out
	grep -q -x "$head	write	$size	$BATS_FILE_TMPDIR/out" out
	grep -q "^1	read	.*	$BATS_FILE_TMPDIR/two.sh\$" out
	! grep -q "^$head	read	.*two.sh" out || fail "$(cat out)"
	# Both ends of the pipe.
	[ "$(grep -c -P '\t13\tpipe:\[\d+\]$' out)" = 2 ] || fail "$(cat out)"
}

@test "bytes by system call" {
	t | ask bytes >out
	t -s write >writes
	n=$(jq -s 'map(select(.type == "syscall" and .result > 0)) | length' writes)
	b=$(jq -s 'map(select(.result > 0).result) | add' writes)
	grep -q -x "write	$n	$b" out
	[ "$b" -ge 1900 ]
}

@test "who sent a signal to whom" {
	t | ask signals >out
	killer=$(t --tasks | jq -s 'map(select(.task > 1 and .parent == 1)) |
		.[-1].task')
	[ "$(grep -P -c "^\d+\tSIGUSR1\t$killer\t1\thandler\$" out)" = 1 ] ||
		fail "$killer: $(cat out)"
	[ "$(grep -c SIGCHLD out)" -ge 3 ]
}

@test "the tree of processes" {
	t --tasks | ask tree >out
	[ "$(head -n 1 out)" = "1 $(readlink -f "$(command -v sh)") 5" ]
	[ "$(grep -c '^  [0-9]' out)" -ge 4 ]
	[ "$(grep -c '^    [0-9]* .*/sleep 0$' out)" = 1 ]
}

@test "time spent in system calls" {
	t -T syscall | ask times >out
	sleeper=$(task_of sleep)
	# The sleep of 200 ms, and the shells that waited for it.
	awk -F '\t' -v task="$sleeper" '$3 == task && $4 ~ /nanosleep/ &&
		$1 >= 200000000 && $2 == 1 { found = 1 } END { exit !found }' out
	[ "$(head -n 1 out | cut -f 1)" -ge 200000000 ]
	sort -c -r -n out
}

@test "which mappings changed between two events" {
	cat >p.c <<-'END'
		#include <unistd.h>
		int first[4096], second[4096];
		int main(void)
		{
			getppid();
			for (int i = 0; i < 4096; i += 1024)
				second[i] = 1;
			getpgrp();
			return 0;
		}
	END
	gcc -O0 -static -o p p.c
	trace-record -o t ./p
	a=$(trace-dump -s getppid t | tail -n 1 | jq .event)
	b=$(trace-dump -s getpgrp t | tail -n 1 | jq .event)
	{
		trace-replay -q -g "$a" --state t
		trace-replay -q -g "$b" --state t
	} | ask changed >out
	# Four pages, or five where the variable is not at a page's start; and
	# perhaps the stack.
	[ "$(grep -v -c stack out)" = 1 ] || fail "$(cat out)"
	[[ "$(grep -v stack out)" =~ ^[45]$'\t'0x.*\ rw-p ]] || fail "$(cat out)"
}

@test "the first event at which run B left run A" {
	n=$(t -s write | jq -s 'map(select(.result > 1000))[0].event')
	"$BUILD/tests/alter" "$BATS_FILE_TMPDIR/t" other result "$n" 7
	trace-diff "$BATS_FILE_TMPDIR/t" other >out || [ $? = 1 ]
	jq -r -f "$SOURCE/tests/forensics/parting.jq" out >line
	[[ "$(cat line)" == "result	$n	$n	result of write: "* ]]
	[ "$(wc -l <line)" = 1 ]
}

@test "all data from a descriptor" {
	head=$(task_of head)
	fd=$(t -t "$head" -s openat | jq -s --arg f "$BATS_FILE_TMPDIR/in" \
		'map(select(.path == $f))[0].result')
	# The loader had the same descriptor for libraries before.
	t -v | ask data --argjson task "$head" --argjson fd "$fd" \
		--arg path "$BATS_FILE_TMPDIR/in" |
		basenc -d --base16 -i | cmp - "$BATS_FILE_TMPDIR/in"
	wc=$(task_of wc)
	t -v | ask data --argjson task "$wc" --argjson fd 0 --arg path '' |
		basenc -d --base16 -i | cmp - "$BATS_FILE_TMPDIR/binary"
}

@test "data that fills several records" {
	head -c 1000000 /dev/urandom >large
	trace-record -o t dd if=large of=/dev/null bs=1000000 2>/dev/null
	trace-dump -v t |
		ask data --argjson task 1 --argjson fd 0 --arg path '' |
		basenc -d --base16 -i | cmp - large
}

@test "descriptors: dup, fork, exec, pipes, close, openat below one" {
	mkdir -p d
	echo x >d/f
	cat >p.c <<-'END'
		#define _GNU_SOURCE
		#include <fcntl.h>
		#include <sys/wait.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			char c;

			if (argc == 3) {
				read(50, &c, 1);
				read(51, &c, 1);
				return 0;
			}
			int dir = open("d", O_RDONLY | O_DIRECTORY);
			int f = openat(dir, "f", O_RDONLY);
			dup2(f, 50);
			fcntl(f, F_DUPFD_CLOEXEC, 51);
			fchdir(dir);
			close(f);
			int g = open("f", O_RDONLY);
			read(g, &c, 1);
			close(g);
			if (fork() == 0)
				execl(argv[0], argv[0], "child", "x", (char *)0);
			close(50);
			wait(NULL);
			read(50, &c, 1);
			return 0;
		}
	END
	gcc -O0 -o p p.c
	trace-record -o t "$PWD/p"
	trace-dump -s read t |
		jq -c 'select(.args.count == 1) | [.args.fd, .path]' >out
	f=$PWD/d/f
	[ "$(sort out | uniq | grep -c -F "\"$f\"")" = 2 ] || fail "$(cat out)"
	grep -q -F "[50,\"$f\"]" out
	grep -q -F '[51,null]' out
	grep -q -F '[50,null]' out
}

# What a viewer relies on, of the file on standard input.
structure='
import collections, json, sys
trace = json.load(sys.stdin)
events = trace["traceEvents"]
depth, names, starts, ends = collections.Counter(), set(), {}, {}
inner = {}
for e in events:
    where = (e["pid"], e["tid"])
    assert isinstance(e["pid"], int) and e["pid"] > 0, e
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name"), e
        assert isinstance(e["args"]["name"], str)
        names.add((e["name"],) + where)
        continue
    assert e["ts"] >= 0, e
    if e["ph"] == "B":
        depth[where] += 1
        assert depth[where] == 1
        since = e["ts"]
        inner[where] = since
    elif e["ph"] == "E":
        depth[where] -= 1
        assert depth[where] == 0
    elif e["ph"] == "X":
        assert e["dur"] >= 0 and e["name"] and e["cat"] == "syscall", e
        assert depth[where] == 1, e
        # Calls of a thread come one after the other.
        assert e["ts"] >= inner[where] - 0.002, (e, inner[where])
        inner[where] = e["ts"] + e["dur"]
    elif e["ph"] == "s":
        starts[e["id"]] = e["ts"]
    elif e["ph"] == "f":
        assert e["bp"] == "e"
        ends[e["id"]] = e["ts"]
    else:
        assert e["ph"] == "i" and e["s"] == "t", e
assert not any(depth.values()), depth
assert starts.keys() == ends.keys()
assert all(starts[i] <= ends[i] for i in starts)
assert all(("thread_name",) + w in names for w in depth)
assert all(("process_name", p, p) in names for p, _ in depth)
'

@test "--format=chrome: a timeline that viewers can read" {
	t -f chrome >out
	jq -e '.traceEvents | length > 100' out
	python3 -c "$structure" <out
	[ "$(jq '[.traceEvents[] | select(.ph == "X")] | length' out)" -ge \
		"$(t -T syscall | jq -c 'select(.type == "syscall")' | wc -l)" ]
	[ "$(jq '[.traceEvents[] | select(.ph == "f")] | length' out)" = \
		"$(t -T start | jq -c 'select(.type == "start")' | wc -l)" ]
	jq -e '[.traceEvents[] | select(.ph == "i" and .name == "SIGUSR1")] |
		length == 1' out
	jq -e '[.traceEvents[] | select(.ph == "i" and
		.name == "exit status 5")] | length == 1' out
	jq -e '[.traceEvents[] | select(.ph == "X" and (.name | test("nanosleep"))
		and .dur > 200000)] | length == 1' out
	# A selection, threads, and a trace that was cut short.
	t -f chrome -s write -e 50.. | python3 -c "$structure"
	trace-record -o threads "$BUILD/workloads/threads"
	trace-dump -f chrome threads | python3 -c "$structure"
	cp -r --no-preserve=mode "$BATS_FILE_TMPDIR/t" cut
	rm cut/index
	truncate -s -3000 cut/chunks/000000
	trace-dump -f chrome cut >out || true
	jq -e '.traceEvents | length > 10' out
	expect 2 trace-dump -f chrome --tasks "$BATS_FILE_TMPDIR/t"
	one_error trace-dump
}

@test "the manual shows the scripts that are tested here" {
	mandoc -T ascii "$SOURCE/man/trace-forensics.7" |
		perl -pe 's/.\x08//g; s/^\s+//' >page
	for script in "$SOURCE"/tests/forensics/*.jq; do
		grep -v '^#' "$script" | sed 's/^[[:space:]]*//' |
			while IFS= read -r line; do
				grep -q -x -F -e "$line" page ||
					fail "${script##*/}: not in the page: $line"
			done
	done
}
