#!/usr/bin/env bats
# Options of trace-record that change how it records.

load helpers

@test "--digest: states are recorded, and replay compares them" {
	expect 0 trace-record --digest=syscall -o t sh -c 'echo a | cat'
	n=$(trace-dump -f json -T state t | jq -c 'select(.event)' | wc -l)
	[ "$n" -gt 50 ] || fail "$n states"
	expect 0 trace-replay t
	# shellcheck disable=SC2154 # expect sets it
	has "$stderr" identical
	expect 0 trace-record --digest=exit -o e true
	[ "$(trace-dump -f json -T state e | jq -c 'select(.event)' | wc -l)" = 2 ]
	expect 0 trace-record --digest=off -o o true
	[ "$(trace-dump -f json -T state o | jq -c 'select(.event)' | wc -l)" = 0 ]
	expect 125 trace-record --digest=often -o x true
	one_error trace-record
}

@test "--digest: threads agree, too" {
	for i in 1 2 3 4 5; do
		expect 0 trace-record --digest=5 -o "t$i" "$BUILD/workloads/threads"
		expect 0 trace-replay "t$i"
		has "$stderr" identical
	done
}

# A replay that computes on other bytes than the recording: the program's own
# text is changed in the store, where it holds a constant that it prints.
@test "--digest: a changed program is found at the first state that differs" {
	printf '%s\n' '#include <unistd.h>' 'volatile int x = 1111;' \
		'int main(void) { for (int i = 0; i < 3; i++) getppid();' \
		'x = 0x31323334; getuid(); return 0; }' >p.c
	gcc -O0 -o p p.c
	expect 0 trace-record --digest=syscall -o t ./p
	expect 0 trace-replay t
	file=$(trace-dump -f json --files t |
		jq -r 'select(.path? // "" | tostring | endswith("/p")) | .file')
	chmod u+w "t/files/$file"
	LC_ALL=C sed -i 's/4321/4322/' "t/files/$file"
	expect 1 trace-replay t
	has "$stderr" 'digest of the memory differs'
	first=$(trace-dump -f json -T state t | jq -s 'map(select(.event))[0].event')
	has "$stderr" "event $first,"
	expect 1 trace-verify -f text t
	has "$output" "files/$file"
}

@test "--no-wait: the status comes with the first process" {
	expect 4 trace-record --no-wait -o t sh -c \
		'(sleep 2; echo late >late) >/dev/null 2>&1 & exit 4'
	[ ! -e late ]
	expect 1 trace-verify t
	for i in $(seq 100); do
		trace-verify -q t && break
		sleep 0.1
	done
	expect 0 trace-verify -f text t
	has "$(cat late)" late
	expect 0 trace-replay t
	has "$stderr" 'exit status 4'
}

@test "--digest=syscall: of threads that wait in calls" {
	expect 0 trace-record --digest=syscall -o t \
		"$BUILD/workloads/watched_buffers"
	expect 0 trace-replay t
	# Every call of a thread is followed by its digest: nothing is put off.
	calls=$(trace-dump -f json t | jq -s '[.[] | select(.type == "syscall")] |
		length')
	states=$(trace-dump -f json t | jq -s '[.[] | select(.type == "state")] |
		length')
	((states * 10 > calls * 9)) || fail "$calls calls, $states digests"
	expect 0 trace-dump -f json --stats t
	jq -e '.syscalls[] | select(.name == "recvmsg" or .name == "poll" or
		.name == "read" or .name == "waitid") | .exposed == 0' \
		<<<"$output" >/dev/null || fail "$output"
}

@test "--no-wait: output has its end with the first process" {
	out=$(timeout 20 trace-record --no-wait -o t sh -c \
		'echo now; sleep 3 >/dev/null 2>&1 &')
	[ "$out" = now ]
}

@test "--no-wait: failures have their own status" {
	expect 127 trace-record --no-wait -o t /nonexistent/program
	one_error trace-record
	[ ! -e t ]
}

@test "--chaos: threads take other turns and replay as recorded" {
	for seed in 1 2 3 4 5; do
		expect 0 trace-record --chaos --seed=$seed -o "t$seed" \
			"$BUILD/workloads/threads"
		words=$output
		expect 0 trace-replay "t$seed"
		[ "$output" = "$words" ]
	done
}

@test "System V memory without privilege" {
	[ "$(id -u)" = 0 ] || skip 'needs root to become somebody else'
	chmod 755 "$BATS_TEST_TMPDIR"
	as_nobody true || skip 'cannot become nobody'
	cp -r "$BUILD/bin" tools
	cp "$BUILD/workloads/shm_sysv" tools
	chmod -R a+rX tools
	mkdir -m 777 place
	as_nobody tools/trace-dump --version || skip 'nobody cannot come here'
	HOME=$PWD/place expect 0 as_nobody tools/trace-record -o place/t \
		tools/shm_sysv
	words=$output
	[ -z "$stderr" ] || fail "$stderr"
	HOME=$PWD/place expect 0 as_nobody tools/trace-replay place/t
	[ "$output" = "$words" ]
}

@test "--audit: the model agrees with the kernel" {
	for program in 'ls -l /etc' 'sh -c "date | cat"' \
		'python3 -c "import json, subprocess; subprocess.run([\"true\"])"' \
		"$BUILD/workloads/signals" "$BUILD/workloads/sockets" \
		"$BUILD/workloads/polling" "$BUILD/workloads/event_files" \
		"$BUILD/workloads/mappings" "$BUILD/workloads/identity"; do
		rm -rf t
		eval "setsid -w trace-record --audit=found.json -o t $program" \
			>/dev/null || fail "$program"
		[ ! -s found.json ] || fail "$program" "$(head -n 3 found.json)"
	done
}

@test "--audit: what the model does not say is reported" {
	# The model is right: a fault point makes the audit disbelieve it.
	TRACE_FAULT=audit-blind=eio@1 expect 0 trace-record \
		--audit=found.json -o t uname -a
	jq -e -s 'length > 0 and all(.[]; .type == "audit" and .length > 0)' \
		found.json >/dev/null || fail "$(cat found.json)"
}

@test "calls that the model does not know are captured" {
	expect 0 trace-record -o t "$BUILD/workloads/unknown_calls"
	words=$output
	[ "${words%% *}" -lt 7 ] # the kernel has written
	[ "$(trace-dump -f json -s ioctl t |
		jq -r 'select(.origin?) | .origin')" = captured ]
	expect 0 trace-replay t
	[ "$output" = "$words" ]
	expect 0 trace-dump -f json --stats t
	has "$output" captured
}

@test "latest points to a recording that still runs" {
	export XDG_DATA_HOME=$PWD/data
	trace-record sh -c 'touch running; sleep 30' &
	recorder=$!
	for i in $(seq 100); do
		[ -e running ] && break
		sleep 0.1
	done
	[ -d data/trace/latest/chunks ] || fail "$(ls -lR data)"
	kill -9 "$recorder"
	wait "$recorder" || true
}

# How many calls of the trace code in the program made by itself.
buffered() {
	trace-dump -f json -T syscall "$1" |
		jq -s 'map(select(.origin == "buffered")) | length'
}

# What XSAVEC writes varies by itself: its sites are changed in any case.
@test "XSAVEC gives the same without other code in the program" {
	local how
	for how in --no-intercept --chaos --audit=found; do
		rm -rf t
		expect 0 trace-record "$how" -o t "$BUILD/workloads/xsavec"
		trace-dump -T insn t | jq -s -e \
			'map(select(.insn == "xsavec" and .value)) | length > 0'
		[ "$(buffered t)" = 0 ]
		expect 0 trace-replay t
	done
}

# Whatever options other tests are run with, this recorder has none but those given.
plain() {
	PATH=$BUILD/bin:$PATH
}

@test "memory is got and given back inside the program" {
	plain
	local name n
	expect 0 trace-record -o t "$BUILD/workloads/memory_calls"
	for name in mmap munmap mprotect brk madvise; do
		n=$(trace-dump -s $name t | jq -s \
			'map(select(.origin == "buffered")) | length')
		[ "$n" -gt 100 ] || fail "$name: $n"
	done
	expect 0 trace-replay t
	expect 0 trace-record --no-intercept -o n "$BUILD/workloads/memory_calls"
	[ "$(buffered n)" = 0 ]
}

@test "files are mapped inside the program, and terminals asked" {
	local n
	plain
	expect 0 trace-record -o t "$BUILD/workloads/file_maps"
	n=$(trace-dump -s mmap t | jq -s 'map(select(.origin == "buffered" and
		.args.fd >= 0)) | length')
	[ "$n" -gt 500 ] || fail "$n mappings"
	expect 0 trace-replay t
	# Code, too: it is changed before it runs.
	expect 0 trace-record -o c sh -c '/bin/true; /bin/true'
	trace-dump -s mmap c | jq -s -e 'map(select(.origin == "buffered" and
		.changed)) | length > 0'
	expect 0 trace-replay c
	expect 0 trace-record -o i sh -c 'for i in 1 2 3 4 5 6; do [ -t 0 ]; done; :'
	n=$(trace-dump -s ioctl i |
		jq -s 'map(select(.origin == "buffered")) | length')
	[ "$n" -ge 5 ] || fail "$n questions"
	expect 0 trace-replay i
}

@test "frequent calls are made inside the program, or not" {
	plain
	run_dd() {
		expect 0 trace-record "$@" dd status=none if=/dev/zero of=copy \
			bs=64 count=1000
	}
	run_dd -o t
	[ "$(buffered t)" -gt 1900 ] || fail "$(buffered t) calls"
	run_dd --no-intercept -o n
	[ "$(buffered n)" = 0 ]
	for t in t n; do
		rm copy
		expect 0 trace-replay "$t"
		[ ! -e copy ]
		has "$stderr" identical
		expect 0 trace-verify "$t"
		: >copy
	done
	expect 0 trace-diff t n
}

@test "a kill of the recorder loses little of what was done inside" {
	mkfifo go
	trace-record -o t sh -c 'for i in 1 2 3 4 5 6 7 8 9; do
		test -e /nowhere/$i; done; echo go >go; while :; do :; done' &
	cat go
	sleep 1
	kill -9 $!
	wait $! || true
	has "$(trace-dump t)" /nowhere/9
}

# ru_maxrss of the largest process waited for, recorder or replayer or recorded.
peak_mb() {
	/usr/bin/python3 -c 'import resource, subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
open(sys.argv[1], "w").write(str(peak))
sys.exit(status)' peak "$@"
}

@test "a program that writes 2 GB is recorded and replayed in little memory" {
	expect 0 peak_mb trace-record -o t \
		dd if=/dev/zero of=/dev/null bs=64k count=32768
	[ "$(cat peak)" -lt 100 ] || fail "recording: $(cat peak) MB"
	expect 0 peak_mb trace-replay t
	[ "$(cat peak)" -lt 100 ] || fail "replaying: $(cat peak) MB"
	# What does not compress, and is no block that was there before.
	expect 0 peak_mb trace-record -o u \
		dd if=/dev/urandom of=/dev/null bs=64k count=4000
	[ "$(cat peak)" -lt 100 ] || fail "recording: $(cat peak) MB"
	expect 0 peak_mb trace-replay u
	[ "$(cat peak)" -lt 100 ] || fail "replaying: $(cat peak) MB"
}
