#!/usr/bin/env bats
# Where traces go when nobody says, and which one is the latest.

load helpers

@test "the trace goes below HOME, named by the command and a number" {
	expect 0 trace-record /bin/true
	[ -z "$output$stderr" ]
	base=$HOME/.local/share/trace
	[ -f "$base/true-0/manifest.json" ]
	[ "$(stat -c %a "$base/true-0")" = 700 ]
	[ "$(readlink "$base/latest")" = true-0 ]
	expect 1 trace-record false
	[ "$(readlink "$base/latest")" = false-0 ]
	expect 0 trace-record true
	[ "$(readlink "$base/latest")" = true-1 ]
	rm -r "$base/true-0"
	expect 0 trace-record true
	[ "$(readlink "$base/latest")" = true-0 ]
	[ "$(cd "$base" && echo *)" = "false-0 latest true-0 true-1" ]
}

@test "XDG_DATA_HOME is used when it is an absolute path" {
	XDG_DATA_HOME=$PWD/data expect 0 trace-record true
	[ -d data/trace/true-0 ]
	XDG_DATA_HOME=relative expect 0 trace-record true
	[ ! -e relative ]
	[ -d "$HOME/.local/share/trace/true-0" ]
}

@test "tools without an operand use the latest recording" {
	expect 7 trace-record sh -c 'echo hello; exit 7'
	expect 0 trace-dump --header
	has "$output" hello
	expect 0 trace-verify
	expect 0 trace-replay
	[ "$output" = hello ]
	expect 0 trace-pack -o packed
	has "$output" '"traces":1'
}

@test "-o leaves the default place alone" {
	expect 0 trace-record -o t true
	[ ! -e "$HOME/.local" ]
}

@test "a failed start leaves nothing behind" {
	expect 127 trace-record no-such-command-here
	[ -z "$(find "$HOME/.local/share/trace" -mindepth 1)" ]
	expect 2 trace-dump
	has "$stderr" "none recorded"
}

@test "recorders that start together get different names" {
	local pids=()
	for i in 1 2 3 4 5 6; do
		trace-record true &
		pids+=($!)
	done
	# Not a bare wait: bats has a child of its own.
	wait "${pids[@]}"
	for i in 0 1 2 3 4 5; do
		trace-verify -q "$HOME/.local/share/trace/true-$i"
	done
}
