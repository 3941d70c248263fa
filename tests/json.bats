#!/usr/bin/env bats
# What the tools print as JSON is valid by the schemas in formats/, and what
# they print in a pipe is JSON.

load helpers

setup_file() {
	BUILD=${BUILD:-$BATS_TEST_DIRNAME/../build}
	"$BUILD/bin/trace-record" -l ci=17 -o "$BATS_FILE_TMPDIR/a" \
		sh -c 'echo out; echo err >&2; ls -l / | cat; exit 3' \
		>"$BATS_FILE_TMPDIR/out" 2>"$BATS_FILE_TMPDIR/err" || [ $? = 3 ]
	"$BUILD/bin/trace-record" -o "$BATS_FILE_TMPDIR/b" \
		sh -c 'echo out; echo other >&2; kill -SEGV $$' \
		>"$BATS_FILE_TMPDIR/out" 2>"$BATS_FILE_TMPDIR/err" || [ $? = 139 ]
}

# types FILE: the types of its objects, each once, in a line.
types() {
	jq -r .type "$1" | sort -u | paste -sd ' '
}

@test "trace-dump: header and events" {
	for t in a b; do
		trace-dump "$BATS_FILE_TMPDIR/$t" >out
		valid_json out
		[ "$(head -n 1 out | jq -r .type)" = header ]
		trace-dump -v "$BATS_FILE_TMPDIR/$t" >verbose
		valid_json verbose
		[ "$(wc -l <verbose)" -ge "$(wc -l <out)" ]
	done
	[ "$(head -n 1 verbose | jq 'has("env")')" = true ]
}

@test "trace-dump: the header tells what was recorded" {
	trace-dump --header "$BATS_FILE_TMPDIR/a" >out
	[ "$(wc -l <out)" = 1 ]
	jq -e '.argv[0] == "sh" and .labels.ci == "17" and .complete and
		.exit_code == 3 and .tasks >= 3' out
	trace-dump --header "$BATS_FILE_TMPDIR/b" >out
	jq -e '.signal == "SIGSEGV" and (has("exit_code") | not)' out
}

@test "trace-dump: tasks, files, maps, stats" {
	for view in tasks files maps stats; do
		trace-dump --$view "$BATS_FILE_TMPDIR/a" >out
		valid_json out
		[ "$(types out)" = "${view%s}" ] || [ "$(types out)" = "$view" ]
	done
	trace-dump --tasks --files --maps --stats --header \
		"$BATS_FILE_TMPDIR/a" >out
	valid_json out
	[ "$(types out)" = "file header map stats task" ]
}

@test "trace-dump --tasks agrees with the header and the events" {
	trace-dump --tasks "$BATS_FILE_TMPDIR/a" >out
	[ "$(wc -l <out)" = "$(trace-dump --header "$BATS_FILE_TMPDIR/a" |
		jq .tasks)" ]
	jq -s -e '.[0].parent == 0 and .[0].exit_code == 3 and
		all(.[1:][]; .parent >= 1) and
		any(.[]; .exe | tostring | endswith("/ls"))' out
}

@test "trace-dump --files: digests are those of the files" {
	trace-dump --files "$BATS_FILE_TMPDIR/a" >out
	[ "$(jq -r .sha256 out | grep -c -v '^[0-9a-f]\{64\}$')" = 0 ]
	jq -r '"\(.sha256)  files/\(.file)"' out >sums
	[ -s sums ]
	(cd "$BATS_FILE_TMPDIR/a" && sha256sum --quiet -c) <sums
}

@test "trace-dump --stats: the counts are those of the events" {
	trace-dump --stats "$BATS_FILE_TMPDIR/a" >stats
	trace-dump "$BATS_FILE_TMPDIR/a" | tail -n +2 >events
	[ "$(jq .events stats)" = "$(wc -l <events)" ]
	[ "$(jq '[.syscalls[].count] | add' stats)" = \
		"$(jq -c 'select(.type == "syscall")' events | wc -l)" ]
	[ "$(jq '.total.stored_bytes' stats)" -gt 0 ]
	[ "$(jq '.total.records' stats)" = \
		"$(trace-dump -v "$BATS_FILE_TMPDIR/a" | tail -n +2 | wc -l)" ]
}

# Those of instructions, from the events: no stop where it was told that the
# code was changed.
@test "trace-dump --stats: stops where code could not be changed" {
	for how in --intercept --no-intercept; do
		[ $how = --intercept ] && how=
		trace-record -o "t$how" $how sh -c 'true; /bin/true; /bin/true'
		trace-dump --stats "t$how" | jq '[.stops[] |
			select(.at | test("cpuid|rdtsc")) | .count] | add' >told
		trace-dump -v "t$how" | jq -s '[.[] | select(.type == "insn" and
			(.insn | test("cpuid|rdtsc")) and .origin == null)] |
			group_by(.regs.rip) |
			map(select(any(.value) | not) | length) | add' >counted
		cmp told counted
		[ "$(cat told)" -gt 0 ]
	done
	trace-dump -f text --stats t--no-intercept | grep '^cpuid .*/ld-linux'
}

@test "trace-dump: filters choose exactly the events asked for" {
	t=$BATS_FILE_TMPDIR/a
	trace-dump "$t" | tail -n +2 >all
	trace-dump --events 5..9 "$t" | tail -n +2 >out
	jq -c 'select(.event >= 5 and .event <= 9)' all >want
	jq -c . out | cmp - want
	[ -s want ]
	trace-dump --type exit,signal "$t" | tail -n +2 | jq -c . >out
	jq -c 'select(.type == "exit" or .type == "signal")' all | cmp - out
	[ -s out ]
	trace-dump --task 2 "$t" | tail -n +2 | jq -c . >out
	jq -c 'select(.task == 2)' all | cmp - out
	[ -s out ]
	trace-dump -s openat,write "$t" | tail -n +2 >out
	[ "$(jq -r .name out | sort -u | paste -sd ' ')" = "openat write" ]
	[ "$(wc -l <out)" = "$(jq -c 'select(.name == "openat" or
		.name == "write")' all | wc -l)" ]
	trace-dump -e 1.. "$t" | tail -n +2 | cmp - all
}

@test "trace-dump: text and JSON have the same events" {
	t=$BATS_FILE_TMPDIR/a
	trace-dump --format=text "$t" >text
	n=$(trace-dump "$t" | tail -n +2 | wc -l)
	[ "$(grep -c -E '^ *[0-9]+ +[0-9]+ +[0-9]+\.[0-9]{6}  ' text)" = "$n" ]
}

@test "trace-replay: output, verdict" {
	[ "$(trace-dump --header "$BATS_FILE_TMPDIR/a" | jq .complete)" = true ]
	trace-replay --format=json "$BATS_FILE_TMPDIR/a" >out
	valid_json out
	[ "$(types out)" = "output verdict" ]
	jq -e 'select(.type == "verdict") | .identical and .exit_code == 3' out
	[ "$(jq -r -j 'select(.fd == 2) | .data' out)" = err ]
	trace-replay --format=json -n "$BATS_FILE_TMPDIR/b" >out
	[ "$(types out)" = verdict ]
	jq -e '.signal == "SIGSEGV"' out
}

@test "trace-verify: verdict, problems" {
	trace-verify "$BATS_FILE_TMPDIR/a" >out
	valid_json out
	jq -e '.type == "verdict" and .valid and .problems == 0' out
	cp -r "$BATS_FILE_TMPDIR/a" broken
	f=$(find broken/chunks -type f -size +0 | sort | head -n 1)
	printf '\377' | dd of="$f" bs=1 seek=100 conv=notrunc 2>/dev/null
	expect 1 trace-verify broken
	valid_json "$BATS_TEST_TMPDIR/stdout"
	[ "$(types "$BATS_TEST_TMPDIR/stdout")" = "problem verdict" ]
	tail -n 1 "$BATS_TEST_TMPDIR/stdout" | jq -e '.valid == false'
	expect 1 trace-verify -q broken
	[ -z "$output$stderr" ]
	expect 1 trace-verify -f text broken
	has "$output" "chunks/"
	has "$output" "not valid"
}

@test "trace-diff: difference, verdict" {
	expect 0 trace-diff "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/a"
	valid_json "$BATS_TEST_TMPDIR/stdout"
	has "$output" '"identical":true'
	expect 1 trace-diff "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/b"
	valid_json "$BATS_TEST_TMPDIR/stdout"
	[ "$(types "$BATS_TEST_TMPDIR/stdout")" = "difference verdict" ]
	expect 1 trace-diff -f text "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/b"
	[ "$(grep -c '^---' <<<"$output")" = 1 ]
	[ "$(grep -c '^+++' <<<"$output")" = 1 ]
	[ "$(grep -c '^@@' <<<"$output")" -ge 1 ]
	expect 1 trace-diff -q "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/b"
	[ -z "$output$stderr" ]
	expect 0 trace-diff -f text "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/a"
	[ -z "$output$stderr" ]
}

@test "trace-pack: summary" {
	trace-pack -o packed "$BATS_FILE_TMPDIR/a" "$BATS_FILE_TMPDIR/b" >out
	valid_json out
	jq -e '.operation == "packed" and .traces == 2 and
		.shared_bytes > 0' out
	trace-pack -x packed -C there >out
	valid_json out
	jq -e '.operation == "unpacked" and (.names | length) == 2' out
	trace-verify -q there/a
	trace-verify -q there/b
}

@test "results that cannot be written are trouble" {
	for command in "trace-dump $BATS_FILE_TMPDIR/a" \
		"trace-dump --stats $BATS_FILE_TMPDIR/a" \
		"trace-verify $BATS_FILE_TMPDIR/a" \
		"trace-replay -f json $BATS_FILE_TMPDIR/a" \
		"trace-replay -q $BATS_FILE_TMPDIR/a" \
		"trace-pack -o - $BATS_FILE_TMPDIR/a" \
		"trace-diff $BATS_FILE_TMPDIR/a $BATS_FILE_TMPDIR/b"; do
		status=0
		$command >/dev/full 2>err || status=$?
		[ $status = 2 ] || fail "$command: $status"
		grep -q '^trace-.*No space left' err || fail "$command: $(cat err)"
		status=0
		$command >&- 2>err || status=$?
		[ $status = 2 ] || fail "$command >&-: $status"
	done
}

@test "file(1) knows the files of a trace" {
	cd "$BATS_FILE_TMPDIR/a"
	magic=$SOURCE/formats/magic
	[[ $(file -b -m "$magic" chunks/000000) == "trace chunks, version 1, "* ]]
	[[ $(file -b -m "$magic" index) == "trace index" ]]
}

@test "trace-dump --stats: data that is read again is stored once" {
	local size
	head -c 300000 /dev/urandom >data
	trace-record -o t sh -c 'cat data; cat data data' >rec.out
	trace-replay t >rep.out
	cmp rec.out rep.out
	trace-dump --stats t >stats
	size=$(jq .blocks.stored_bytes stats)
	[ "$size" -ge 300000 ] && [ "$size" -lt 600000 ] || fail "$size"
	[ "$(jq .total.stored_bytes stats)" -lt 700000 ]
}
