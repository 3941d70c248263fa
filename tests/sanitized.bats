#!/usr/bin/env bats
# The engine itself under AddressSanitizer, LeakSanitizer and UBSan: a build of
# the tools in $BUILD/asan records and replays.

load helpers

sanitized() {
	local tools=$BUILD/asan/bin want=$1
	shift
	[ -x "$tools/trace-record" ] || fail "no sanitized tools in $tools"
	expect "$want" setsid -w "$tools/trace-record" --digest=20 -o t "$@"
	clean
	words=$output
	expect 0 "$tools/trace-replay" t
	clean
	# shellcheck disable=SC2154 # expect sets it
	has "$stderr" identical
	[ "$output" = "$words" ] || fail "replayed: $output"
	for tool in dump verify; do
		expect 0 "$tools/trace-$tool" t
		clean
	done
}

clean() {
	[[ $stderr != *Sanitizer* && $stderr != *'runtime error'* ]] ||
		fail "$stderr"
}

@test "a pipeline" {
	sanitized 0 sh -c 'ls / | sort | tail -n 3; date'
}

@test "signals" {
	sanitized 0 "$BUILD/workloads/signals"
}

@test "threads" {
	sanitized 0 "$BUILD/workloads/threads"
}

@test "shared memory" {
	sanitized 0 "$BUILD/workloads/shm_sysv"
	rm -rf t
	sanitized 0 "$BUILD/workloads/shm_mutex"
}

@test "a filter of its own, unknown calls" {
	sanitized 0 "$BUILD/workloads/seccomp_filter"
	rm -rf t
	sanitized 0 "$BUILD/workloads/unknown_calls"
}

@test "python with processes" {
	sanitized 0 python3 -c \
		'import subprocess; print(subprocess.check_output(["uname"]))'
}
