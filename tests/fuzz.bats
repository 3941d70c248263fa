#!/usr/bin/env bats
# The fuzzers' inputs, those that once were findings among them, read by the
# same code in the plain and the sanitized build.

load helpers

# all NAME: no input may end the program, nor take long.
all() {
	local place
	for place in "$BUILD" "$BUILD/asan"; do
		[ -x "$place/tests/fuzz_$1" ] || continue
		expect 0 timeout 30 "$place/tests/fuzz_$1" \
			"$BATS_TEST_DIRNAME/fuzz/corpus/$1"/*
	done
	[ -x "$BUILD/tests/fuzz_$1" ]
}

@test "archives" {
	all unpack
}

@test "traces" {
	all reader
}
