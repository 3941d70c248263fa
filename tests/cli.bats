#!/usr/bin/env bats
# What all tools have in common: options, messages, exit statuses.

load helpers

trouble() {
	if [ "$1" = trace-record ]; then echo 125; else echo 2; fi
}

@test "every tool: --help and -h print the same help with every option" {
	for t in $TOOLS; do
		expect 0 "$t" --help
		help=$output
		[ -z "$stderr" ]
		has "$help" "Usage: $t "
		expect 0 "$t" -h
		[ "$output" = "$help" ]
		for long in $("$t" --dump-options |
			jq -r 'select(.type == "option").long'); do
			has "$help" "--$long"
		done
	done
}

@test "every tool: --version is its name and one number" {
	for t in $TOOLS; do
		expect 0 "$t" --version
		[[ $output =~ ^$t\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	done
	[ "$(for t in $TOOLS; do "$t" --version; done |
		cut -d ' ' -f 2 | sort -u | wc -l)" = 1 ]
}

@test "every tool: unknown options give one line and the status of trouble" {
	for t in $TOOLS; do
		for option in --no-such-option -Z --no-such-option=1; do
			expect "$(trouble "$t")" "$t" $option
			one_error "$t"
			has "$stderr" "${option%=1}"
			[ -z "$output" ]
		done
	done
}

@test "every tool: an option's argument is needed, a flag takes none" {
	for t in $TOOLS; do
		long=$("$t" --dump-options |
			jq -r 'select(.type == "option" and .arg != "").long' | head -1)
		expect "$(trouble "$t")" "$t" "--$long"
		one_error "$t"
		has "$stderr" "needs an argument"
		expect "$(trouble "$t")" "$t" --help=yes
		one_error "$t"
		has "$stderr" "takes no argument"
	done
}

@test "every tool: help that cannot be written is trouble" {
	for t in $TOOLS; do
		status=0
		"$t" --help >/dev/full 2>err || status=$?
		[ $status = "$(trouble "$t")" ]
		grep -q "^$t: .*No space left" err
		status=0
		"$t" --help >&- 2>err || status=$?
		[ $status = "$(trouble "$t")" ]
		[ "$(wc -l <err)" = 1 ]
	done
}

@test "every tool: a reader that has gone is no news" {
	for t in $TOOLS; do
		(
			trap '' PIPE
			sleep 0.2 # until true has ended
			"$t" --help 2>"$t.err" || echo $? >"$t.status"
		) | true
		[ "$(cat "$t.status")" = "$(trouble "$t")" ]
		[ ! -s "$t.err" ]
	done
}

@test "--format: only what is listed" {
	for t in trace-replay trace-dump trace-verify trace-pack trace-diff; do
		expect 2 "$t" --format=xml
		one_error "$t"
		has "$stderr" "is not auto, text"
		expect 2 "$t" -f ''
		one_error "$t"
	done
}

@test "a path that does not exist is trouble" {
	for t in trace-replay trace-dump trace-verify; do
		expect 2 "$t" no/such/trace
		one_error "$t"
		has "$stderr" "no/such/trace"
	done
	expect 2 trace-diff no/such/trace no/such/trace
	one_error trace-diff
	expect 2 trace-pack -o out no/such/trace
	one_error trace-pack
	[ ! -e out ]
	expect 2 trace-pack -x no/such/archive
	one_error trace-pack
}

@test "a directory that is no trace is refused with one line" {
	mkdir empty
	for t in trace-replay trace-dump; do
		expect 2 "$t" empty
		one_error "$t"
		has "$stderr" empty
	done
	expect 2 trace-diff empty empty
	one_error trace-diff
	expect 2 trace-pack -o out empty
	one_error trace-pack
	[ -z "$(ls out* 2>/dev/null)" ]
	expect 1 trace-verify -f text empty
}

@test "a file that is no trace is refused with one line" {
	echo hello >file
	for t in trace-replay trace-dump; do
		expect 2 "$t" file
		one_error "$t"
	done
	expect 2 trace-pack -x file -C out
	one_error trace-pack
	[ -z "$(ls out 2>/dev/null)" ]
}

@test "a manifest that is no manifest is refused" {
	mkdir t
	for text in '' '{' '[]' '{}' 'null' '{"version":1}' '{"version":"x"}'; do
		printf '%s' "$text" >t/manifest.json
		for t in trace-replay trace-dump; do
			expect 2 "$t" t
			one_error "$t"
		done
		expect 1 trace-verify -f json t
		valid_json "$BATS_TEST_TMPDIR/stdout"
	done
}

@test "a newline in a name does not make two lines" {
	for t in trace-replay trace-dump trace-verify; do
		expect 2 "$t" $'no\nsuch'
		one_error "$t"
	done
}

@test "no permission is trouble, also for trace-verify" {
	[ "$(id -u)" = 0 ] || skip "needs root to become somebody else"
	chmod 755 "$BATS_TEST_TMPDIR"
	as_nobody true || skip "cannot become nobody"
	mkdir -m 700 mine
	echo '{}' >mine/manifest.json
	cp -r "$BUILD/bin" tools
	chmod -R a+rX tools
	as_nobody ./tools/trace-dump --version || skip "nobody cannot come here"
	for t in trace-replay trace-dump trace-verify; do
		expect 2 as_nobody ./tools/"$t" mine
		one_error "$t"
		has "$stderr" "Permission denied"
	done
}

@test "no operand and no recording: says where it looked" {
	for t in trace-replay trace-dump trace-verify; do
		expect 2 "$t"
		one_error "$t"
		has "$stderr" "$HOME/.local/share/trace"
	done
	expect 2 env -u HOME trace-dump
	one_error trace-dump
}

@test "too many operands are refused" {
	for t in trace-replay trace-dump trace-verify; do
		expect 2 "$t" a b
		one_error "$t"
		has "$stderr" "'b'"
	done
	expect 2 trace-diff a
	one_error trace-diff
	expect 2 trace-diff a b c
	one_error trace-diff
}

@test "trace-record: needs a command; labels are KEY=VALUE" {
	expect 125 trace-record
	one_error trace-record
	for label in x =x 'a b=c'; do
		expect 125 trace-record -o t --label "$label" true
		one_error trace-record
		[ ! -e t ]
	done
}

@test "trace-record: no such command is 127, one that cannot run is 126" {
	expect 127 trace-record -o t no-such-command-here
	one_error trace-record
	[ ! -e t ]
	expect 127 trace-record -o t ./no/such/command
	one_error trace-record
	echo 'exit 1' >plain
	chmod 644 plain
	expect 126 trace-record -o t ./plain
	one_error trace-record
	expect 126 trace-record -o t "$BATS_TEST_TMPDIR"
	one_error trace-record
	[ ! -e t ]
}

@test "trace-record: does not touch a directory that exists" {
	mkdir t
	expect 125 trace-record -o t true
	one_error trace-record
	has "$stderr" t
	[ -z "$(ls t)" ]
	expect 125 trace-record -o no/such/place true
	one_error trace-record
}

@test "trace-pack: wants one thing to do, and no archive on a terminal" {
	expect 2 trace-pack # there is no latest
	one_error trace-pack
	for wrong in '-o a -x b' '-x a b' '-o a -C b' '-t a b' '-x a --have' \
		'--force t' '--compress=zstd t' '-o a --max-size=3 t' \
		'--files-from=l t' '-x - --have-from -' \
		'-o a --exclude-have - --files-from - t'; do
		# shellcheck disable=SC2086
		expect 2 trace-pack $wrong
		one_error trace-pack
	done
	mkdir t
	expect 2 script -qec 'trace-pack -o - t' /dev/null
	has "$output$stderr" "terminal"
}

@test "trace-pack: does not touch an archive that exists" {
	echo precious >a
	mkdir t
	expect 2 trace-pack -o a t
	one_error trace-pack
	has "$stderr" "--force"
	[ "$(cat a)" = precious ]
	expect 2 trace-pack --force -o a t
	[ "$(cat a)" = precious ]
	[ "$(echo a*)" = a ]
	expect 2 trace-pack -o "$BATS_TEST_TMPDIR" t
	one_error trace-pack
	expect 2 trace-pack -o no/such/place/a t
	one_error trace-pack
}

@test "trace-dump: ranges, types and system calls are checked" {
	for bad in --events=x --events=.. --events=3..2 --events=0 \
		--events=1..2..3 --events=99999999999999999999 --task=x --task= \
		--type=nonsense '--type=syscall,' --syscall=no_such_call; do
		expect 2 trace-dump $bad t
		one_error trace-dump
		has "$stderr" "${bad%%=*}"
	done
}

@test "trace-diff: -U takes a sane number" {
	for n in x -1 99999999999 ''; do
		expect 2 trace-diff -U "$n" a b
		one_error trace-diff
	done
}
