#!/usr/bin/env bats
# The recorder is killed, or its disk is full: what was recorded until then
# can be used, nothing is left running, and nothing claims to be whole.

load helpers

# Nothing of the recorded tree, which has a word in its environment, lives.
all_gone() {
	for _ in $(seq 100); do
		grep -l -s "MARK=$1" /proc/[0-9]*/environ >left || return 0
		sleep 0.05
	done
	fail "still there: $(cat left)"
}

# Record a command for SECONDS and kill the recorder.
killed_after() {
	local seconds=$1 mark=$BATS_TEST_NUMBER-$$-$RANDOM
	shift
	rm -rf t
	MARK=$mark setsid trace-record -o t "$@" >rec.out 2>rec.err </dev/null &
	job=$!
	sleep "$seconds"
	kill -KILL $job || fail "it ended before"
	wait $job || true
	all_gone "$mark"
}

# The trace t says that it ends early, and is usable up to there.
usable() {
	local got=0
	if [ ! -e t/manifest.json ]; then
		# Killed before there was one: that is no trace.
		for tool in dump verify replay; do
			(in_session 60 trace-$tool t >/dev/null 2>err) || got=$?
			[ $got = 1 ] || [ $got = 2 ]
		done
		return
	fi
	expect 1 trace-verify t
	has "$output" incomplete
	codes=$(jq -r 'select(.type == "problem").code' stdout | sort -u)
	problem=$(grep -v '"incomplete"' stdout | head -n 1)
	expect 0 trace-dump --header t
	has "$output" '"complete":false'
	(in_session 60 trace-dump t >events 2>err) || fail "dump: $(cat err)"
	(in_session 60 trace-replay t >rep.out 2>rep.err </dev/null) || got=$?
	[ $got = 1 ] || fail "replay: status $got" "$(tail -n 20 rep.err)"
	grep -q '^trace-replay: stopped: .*incomplete' rep.err ||
		fail "$(tail -n 20 rep.err)"
	[ "$(head -c "$(wc -c <rep.out)" rec.out | cksum)" = "$(cksum <rep.out)" ] ||
		fail "what is replayed is not the beginning of what was recorded"
	[ "$codes" = incomplete ] || fail "not only incomplete: $problem"
}

@test "kill -9 at twenty moments of a loop of short processes" {
	for i in $(seq 0 19); do
		# shellcheck disable=SC2016
		killed_after "$(printf '0.%03d' $((i * i * 2 + 5)))" sh -c '
			n=0; while :; do n=$((n + 1)); echo "$n"; /bin/true; done'
		usable
	done
}

@test "kill -9 of a long run: most of it is there" {
	# shellcheck disable=SC2016
	killed_after 3 sh -c 'n=0; while :; do n=$((n + 1)); echo "$n"; /bin/true; done'
	usable
	[ "$(wc -l <events)" -gt 100 ]
	[ "$(wc -l <rep.out)" -gt 10 ]
}

@test "kill -9 while the program computes" {
	# shellcheck disable=SC2016
	killed_after 2 sh -c 'echo before; n=0; while :; do n=$((n + 1)); done'
	usable
	[ "$(cat rep.out)" = before ]
}

@test "kill -9 while threads run" {
	cat >p.py <<-'END'
		import threading
		def f():
		    while True:
		        threading.Event().wait(0.001)
		for _ in range(3):
		    threading.Thread(target=f).start()
	END
	killed_after 2 /usr/bin/python3 p.py
	usable
}

# lost FAULT: recording goes on unharmed, says one line, and what it leaves
# is incomplete.  The message is in the file lost.
lost() {
	local got=0 text='the output of a program'
	rm -rf t
	# shellcheck disable=SC2016
	TRACE_FAULT=$1 trace-record -o t sh -c '
		n=0; while [ $n -lt 60 ]; do n=$((n + 1)); /bin/true; done
		echo "the output of a program"; exit 7' >rec.out 2>lost || got=$?
	[ $got = 7 ] || fail "$1: status $got: $(cat lost)"
	[ "$(cat rec.out)" = "$text" ] || fail "$1: $(cat rec.out)"
	[ "$(wc -l <lost)" = 1 ] || fail "$1: not one line: $(cat lost)"
	grep -q -E "^trace-record: .*(${2:-incomplete})" lost ||
		fail "$1: $(cat lost)"
}

@test "a disk that is full when chunks are written" {
	for n in 1 2 3; do
		lost chunk-write=enospc@$n
		grep -q 'No space left' lost || fail "$(cat lost)"
		usable
	done
	lost chunk-write=eio@2
	grep -q 'Input/output error' lost || fail "$(cat lost)"
	usable
}

@test "a disk that is full when the index is written" {
	lost index-write=enospc
	grep -q 'No space left' lost || fail "$(cat lost)"
	usable
}

@test "files that cannot be stored" {
	lost store-link=exdev,store-clone=eopnotsupp,store-write=enospc \
		'incomplete|cannot be replayed to its end'
	grep -q 'No space left' lost || fail "$(cat lost)"
	expect 1 trace-replay t
	# shellcheck disable=SC2154
	has "$stderr" 'trace-replay: stopped: '
}

@test "every way to store a file gives the same trace" {
	for fault in store-link=exdev store-clone=eopnotsupp \
		store-link=exdev,store-clone=eopnotsupp \
		store-link=exdev,store-clone=eopnotsupp,store-copy-range=exdev; do
		rm -rf t
		TRACE_FAULT=$fault trace-record -o t sh -c 'echo x | cat' >rec.out
		expect 0 trace-verify t
		replays 0
		cmp rec.out rep.out
	done
}

@test "a manifest that cannot be replaced at the end" {
	lost replace-file=enospc@2
	usable
}

@test "a manifest that cannot be written at the start: nothing runs" {
	status=0
	TRACE_FAULT=replace-file=enospc trace-record -o t touch made 2>err || status=$?
	[ $status = 125 ]
	[ "$(wc -l <err)" = 1 ]
	[ ! -e made ]
	[ ! -e t ]
}

@test "kill at the moment a chunk or the manifest is written" {
	for fault in chunk-write=kill@1 chunk-write=kill@4 index-write=kill \
		replace-file=kill@2; do
		rm -rf t
		mark=$BATS_TEST_NUMBER-$$-$RANDOM
		status=0
		# shellcheck disable=SC2016
		MARK=$mark TRACE_FAULT=$fault setsid -w trace-record -o t sh -c '
			n=0; while [ $n -lt 60 ]; do n=$((n + 1)); /bin/true; echo $n
			done' >rec.out 2>rec.err || status=$?
		[ $status != 0 ] || fail "$fault: not killed"
		all_gone "$mark"
		usable
	done
}
