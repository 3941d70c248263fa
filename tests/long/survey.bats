#!/usr/bin/env bats
# As tests/survey.bats, with more arguments.

load ../helpers

@test "many calls with good, odd and bad arguments" {
	survey "${REPEAT:-5}" 4
}
