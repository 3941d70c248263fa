#!/usr/bin/env bats
# Every program of tests/workloads, each of which tries one mechanism and
# verifies itself, is recorded and replayed: one test a program.
#
# What cannot be replayed is recorded unharmed, and both tools say so.

load helpers

# once NAME [OPTION...]: record it with these options, replay it, compare what
# can be seen.
once() {
	local got=0
	rm -rf t
	(in_session 60 trace-record -o t "${@:2}" "$BUILD/workloads/$1" \
		>rec.out 2>rec.err </dev/null) || got=$?
	[ $got = 0 ] || fail "recorded: status $got" "$(tail rec.out rec.err)"
	[ "$(tail -n 1 rec.out)" = "$(last_line "$1")" ] ||
		fail "recorded: $(tail rec.out)"
	replays 0
	cmp rec.out rep.out || fail "stdout differs in the replay"
	cmp rec.err rep.err || fail "stderr differs in the replay"
}

# What a program says when all was well: older ones say other things.
last_line() {
	if grep -q -E '("|\\n)ok("|\\n)' \
		"$BATS_TEST_DIRNAME/workloads/${1%-O?}.c"; then
		echo ok
	else
		tail -n 1 rec.out
	fi
}

# Programs in which something depends on the moment come many times: where
# threads take turns, or where signals and shared memory do less than that.
times() {
	local source=$BATS_TEST_DIRNAME/workloads/$1.c
	if grep -q 'sys/ptrace.h' "$source"; then
		echo $(((${REPEAT:-20} + 1) / 2))
	elif grep -q pthread_create "$source"; then
		echo "${REPEAT:-20}"
	elif grep -q -E 'SA_RESTART|setitimer|MAP_SHARED' "$source"; then
		echo $(((${REPEAT:-20} + 3) / 4))
	else
		echo 2
	fi
}

# The first time is an audit of the model: the kernel writes what the tables
# say and nothing else.  Of the others every third is without code in the
# program.
workload() {
	local n
	n=$(times "$1")
	echo "time 1 of $n, audited"
	once "$1" --audit=found
	[ ! -s found ] || fail "not as the model says:" "$(head found)"
	for i in $(seq 2 "$n"); do
		echo "time $i of $n"
		if [ $((i % 3)) = 0 ]; then
			once "$1" --no-intercept
		else
			once "$1"
		fi
	done
	expect 0 trace-verify t
}

# stops WORDS NAME: the program runs as it should, the recorder says in one
# line that its trace cannot be replayed to its end, and why, in these words;
# the replay stops there with the same words.  The trace is whole.
stops() {
	local got=0
	(in_session 60 trace-record -o t "$BUILD/workloads/$2" \
		>rec.out 2>rec.err </dev/null) || got=$?
	[ $got = 0 ] || fail "recorded: status $got" "$(tail rec.out rec.err)"
	[ "$(cat rec.out)" = ok ] || fail "recorded: $(tail rec.out)"
	[ "$(wc -l <rec.err)" = 1 ] || fail "not one line: $(cat rec.err)"
	grep -q "^trace-record: t: the trace cannot be replayed to its end: .*$1" \
		rec.err || fail "$(cat rec.err)"
	expect 0 trace-verify t
	got=0
	(in_session 60 trace-replay t >rep.out 2>rep.err </dev/null) || got=$?
	[ $got = 1 ] || fail "replay: status $got" "$(tail rep.err)"
	[ ! -s rep.out ] || fail "replayed past the end: $(cat rep.out)"
	grep -q "^trace-replay: stopped: .* event [0-9]*, task [0-9]*: .*$1" \
		rep.err || fail "$(tail rep.err)"
}

# lucky NAME: it does not fail natively, but it does when threads take other
# turns, and then in its replay as well.
lucky() {
	local got seed
	for seed in $(seq 60); do
		got=0
		rm -rf t
		(in_session 60 trace-record --chaos --seed="$seed" -o t \
			"$BUILD/workloads/$1" >rec.out 2>rec.err </dev/null) ||
			got=$?
		[ $got != 3 ] || break
		[ $got = 0 ] || fail "seed $seed: status $got" "$(cat rec.*)"
	done
	[ $got = 3 ] || fail "$seed seeds, and it did not fail"
	for _ in 1 2 3; do
		replays 3
		cmp rec.out rep.out
	done
	for _ in $(seq 20); do
		"$BUILD/workloads/$1" >nat.out || got=0
	done
	[ $got = 3 ] || echo 'it fails natively, too: a busy machine'
}

# The state is recorded at every interruption, memory included, and must be the
# same in the replay: nothing comes at a wrong place.
@test "computations of all kinds are interrupted at random moments" {
	for seed in 1 2 3 4; do
		rm -rf t
		(in_session 60 trace-record --chaos --seed="$seed" --slice=1 \
			-o t "$BUILD/workloads/async_loops" >rec.out)
		replays 0
		cmp rec.out rep.out
		[ "$(trace-dump -f json -T async t |
			grep -c '"type":"async"')" -ge 10 ]
	done
}

@test "computations compiled with less and more optimisation" {
	for _ in 1 2 3; do
		once async_loops-O0
		once async_loops-O3
	done
}

@test "waiting loops compiled with less and more optimisation" {
	for _ in 1 2 3; do
		once spins-O0
		once spins-O3
	done
}

# points REASON: how many there are in the trace.
points() {
	trace-dump -f json -T async t | grep -c "\"reason\":\"$1\"" || true
}

# Only loops that may be either are taken for it, and not for long: 7 times in
# each thread.
@test "a thread that waits in a loop ends its turn, one that computes does not" {
	once spins
	[ "$(points spin)" -ge 30 ]
	[ "$(points spin)" -gt $((4 * $(points preempt))) ]
	once sums
	[ "$(points spin)" -le 14 ]
}

@test "every workload has its test here" {
	for source in "$BATS_TEST_DIRNAME"/workloads/*.c; do
		name=$(basename "$source" .c)
		grep -q -E "{ (REPEAT=[0-9]* workload|workload|lucky|stops .*) $name; }\$" \
			"$BATS_TEST_FILENAME" ||
			fail "no test of $name"
	done
}

@test "workload: advice" { workload advice; }
@test "workload: async cancel" { workload async_cancel; }
@test "workload: async exec" { workload async_exec; }
@test "workload: async exit" { workload async_exit; }
@test "workload: async loops" { workload async_loops; }
@test "workload: async jit" { workload async_jit; }
@test "workload: async longjmp" { workload async_longjmp; }
@test "workload: async nested" { workload async_nested; }
@test "workload: async pingpong" { workload async_pingpong; }
@test "workload: async race" { workload async_race; }
@test "workload: async spin" { workload async_spin; }
@test "workload: async timers" { workload async_timers; }
@test "workload: barriers" { workload barriers; }
@test "workload: blocked traps" { workload blocked_traps; }
@test "workload: brk" { workload brk; }
@test "workload: cancellation" { workload cancellation; }
@test "workload: clocks" { workload clocks; }
@test "workload: compute timer" { workload compute_timer; }
@test "workload: conditions" { workload conditions; }
@test "workload: deadly threads" { workload deadly_threads; }
@test "workload: descriptors" { workload descriptors; }
@test "workload: detached" { workload detached; }
@test "workload: early reader" { lucky early_reader; }
@test "workload: event files" { workload event_files; }
@test "workload: exec args" { workload exec_args; }
@test "workload: exit others" { workload exit_others; }
@test "workload: file maps" { workload file_maps; }
@test "workload: foreign memory" { workload foreign_memory; }
@test "workload: fair turns" { REPEAT=4 workload fair_turns; }
@test "workload: extensions" { workload extensions; }
@test "workload: growing file" { workload growing_file; }
@test "workload: identity" { workload identity; }
@test "workload: long turns" { workload long_turns; }
@test "workload: inside" { workload inside; }
@test "workload: instructions" { workload instructions; }
@test "workload: longjmp" { workload longjmp; }
@test "workload: many children" { workload many_children; }
@test "workload: map files" { workload map_files; }
@test "workload: mappings" { workload mappings; }
@test "workload: memory calls" { workload memory_calls; }
@test "workload: memfd" { workload memfd; }
@test "workload: sparse_memfd" { workload sparse_memfd; }
@test "workload: outputs" { workload outputs; }
@test "workload: pingpong" { workload pingpong; }
@test "workload: pipes" { workload pipes; }
@test "workload: polling" { workload polling; }
@test "workload: process groups" { workload process_groups; }
@test "workload: proc self" { workload proc_self; }
@test "workload: races" { workload races; }
@test "workload: robust mutex" { workload robust_mutex; }
@test "workload: rwlocks" { workload rwlocks; }
@test "workload: seccomp filter" { workload seccomp_filter; }
@test "workload: self mem" { workload self_mem; }
@test "workload: shm file" { workload shm_file; }
@test "workload: shm halt" { workload shm_halt; }
@test "workload: shm join" { workload shm_join; }
@test "workload: shm late" { workload shm_late; }
@test "workload: shm mutex" { workload shm_mutex; }
@test "workload: shm sysv" { workload shm_sysv; }
@test "workload: signal storm" { workload signal_storm; }
@test "workload: signals" { workload signals; }
@test "workload: sigwaits" { workload sigwaits; }
@test "workload: sockets" { workload sockets; }
@test "workload: spawn" { workload spawn; }
@test "workload: spin" { workload spin; }
@test "workload: spins" { workload spins; }
@test "workload: stack" { workload stack; }
@test "workload: stop continue" { workload stop_continue; }
@test "workload: sudden ends" { workload sudden_ends; }
@test "workload: sums" { REPEAT=4 workload sums; }
@test "workload: thread exec" { workload thread_exec; }
@test "workload: thread signals" { workload thread_signals; }
@test "workload: thread storage" { workload thread_storage; }
@test "workload: threads" { workload threads; }
@test "workload: timers" { workload timers; }
@test "workload: tracer attach" { workload tracer_attach; }
@test "workload: tracer computing" { workload tracer_computing; }
@test "workload: tracer follow" { workload tracer_follow; }
@test "workload: tracer steps" { workload tracer_steps; }
@test "workload: tracer threads" { workload tracer_threads; }
@test "workload: tracer world" { workload tracer_world; }
@test "workload: undisturbed" { workload undisturbed; }
@test "workload: unknown calls" { workload unknown_calls; }
@test "workload: watched buffers" { workload watched_buffers; }
@test "workload: xsavec" { workload xsavec; }
