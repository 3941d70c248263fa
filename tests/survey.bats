#!/usr/bin/env bats
# Every call that the tables know, with good, odd and bad arguments: the kernel
# writes what the tables say and nothing else, and the replay is identical.

load helpers

@test "calls with good, odd and bad arguments: the tables agree with the kernel" {
	survey 1 1
}
