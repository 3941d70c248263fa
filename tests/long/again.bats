#!/usr/bin/env bats
# What the default set runs once, as often as races need.

load ../helpers

@test "threads, processes and signals of programs.bats, 20 times" {
	REPEAT=${REPEAT:-20} bats -f 'threading|multiprocessing|asyncio|worker threads|with threads|bash: jobs|kill each other' \
		"$SOURCE/tests/programs.bats"
}
