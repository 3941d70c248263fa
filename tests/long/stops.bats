#!/usr/bin/env bats
# What the default set records with code in the program that makes most of its
# calls, is recorded with a stop at every call.

load ../helpers

stops() {
	RECORD_OPTIONS=--no-intercept BATS_TEST_TIMEOUT=180 bats "$SOURCE/$1" ||
		fail "$1"
}

@test "programs, without code in the program" { stops tests/programs.bats; }
@test "signals, without code in the program" { stops tests/signals.bats; }
@test "tracers, without code in the program" { stops tests/tracers.bats; }
