# shellcheck shell=bash
# What the bats files share.  `load helpers` at the top of each.
#
# BUILD is where the tools were built; tests run in a directory of their own
# with a home of their own, so that nothing of the user's is read or written.

# SOURCE and TOOLS are for the tests.
# shellcheck disable=SC2034
SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${BUILD:=$SOURCE/build}"
BUILD=$(cd "$BUILD" && pwd)
# shellcheck disable=SC2034
TOOLS='trace-record trace-replay trace-dump trace-diff trace-verify trace-pack'
# The system's programs before those of version managers in a user's home.
PATH=$BUILD/bin:/usr/bin:/usr/sbin:$PATH

setup() {
	# A run with a time limit begins no test after it.
	[ -z "${DEADLINE:-}" ] || [ "$(date +%s)" -lt "$DEADLINE" ] ||
		skip "no time left in this run"
	export HOME=$BATS_TEST_TMPDIR/home XDG_DATA_HOME= XDG_CACHE_HOME=
	export LC_ALL=C.UTF-8 TZ=UTC
	unset TRACE_FAULT POSIXLY_CORRECT
	mkdir -p "$HOME"
	[ -z "${RECORD_OPTIONS:-}" ] || record_with
	cd "$BATS_TEST_TMPDIR" || return 1
}

# RECORD_OPTIONS, e.g. --no-intercept, are given to every trace-record.
record_with() {
	mkdir "$BATS_TEST_TMPDIR/with"
	printf '#!/bin/sh\nexec %s "$@"\n' \
		"'$BUILD/bin/trace-record' $RECORD_OPTIONS" \
		>"$BATS_TEST_TMPDIR/with/trace-record"
	chmod +x "$BATS_TEST_TMPDIR/with/trace-record"
	PATH=$BATS_TEST_TMPDIR/with:$PATH
}

fail() {
	printf '%s\n' "$@" >&2
	return 1
}

# need PROGRAM...: skip the test where one is not installed.
need() {
	local program
	for program; do
		command -v "$program" >/dev/null || skip "no $program here"
	done
}

# expect STATUS COMMAND...: run it and require the exit status.  What it
# printed is in $output and $stderr afterwards.
expect() {
	local want=$1 got=0
	shift
	"$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" || got=$?
	output=$(tr -d '\0' <"$BATS_TEST_TMPDIR/stdout")
	stderr=$(tr -d '\0' <"$BATS_TEST_TMPDIR/stderr")
	[ "$got" = "$want" ] || fail "$*" "exit status $got, expected $want" \
		"stdout: $output" "stderr: $stderr"
}

# one_error TOOL: the command before said one line, with the tool's name.
one_error() {
	[ "$(wc -l <"$BATS_TEST_TMPDIR/stderr")" = 1 ] ||
		fail "not one line on stderr: $stderr"
	[[ $stderr == "$1: "* ]] || fail "does not begin with $1: $stderr"
}

# Whether $1 holds the text $2.
has() {
	[[ $1 == *"$2"* ]] || fail "'$2' is not in: $1"
}

# A small trace of a program that writes to both outputs and makes a child.
make_trace() {
	trace-record -o "$1" sh -c 'echo out; echo err >&2; /bin/true; exit 3' \
		>/dev/null 2>&1 || [ $? = 3 ] || fail "cannot record"
}

# Every line of the file is valid by its schema.
valid_json() {
	(cd "$SOURCE" && /usr/bin/python3 tests/schemas.py formats) <"$1" ||
		fail "not valid: $1"
}

# Run as a user who owns nothing.
as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# in_session SECONDS COMMAND...: a session of its own, and a time limit, so
# that what goes wrong there cannot reach the tests.  It becomes the command:
# call it in a subshell, which then says nothing of its own about signals.
in_session() {
	exec timeout -k 5 "$1" setsid -w "${@:2}"
}

# status_of STATUS: what a shell sees of "3" or of "SIGSEGV".
status_of() {
	case $1 in
	SIG*) echo $((128 + $(kill -l "${1#SIG}"))) ;;
	*) echo "$1" ;;
	esac
}

# words_of STATUS: how the tools say it.
words_of() {
	case $1 in
	SIG*) echo "killed by $1" ;;
	*) echo "exit status $1" ;;
	esac
}

# replays STATUS: replay the trace t into rep.out and rep.err, in an empty
# directory, and require the verdict, which is taken off rep.err.
replays() {
	local got=0 verdict
	rm -rf run
	mkdir run
	(cd run && in_session "${limit:-60}" trace-replay ../t \
		>../rep.out 2>../rep.err </dev/null) || got=$?
	verdict=$(tail -n 1 rep.err | tr -d '\0' |
		grep -o 'trace-replay: identical: .*$') || true
	if [ $got != 0 ] || [[ $verdict != *", $(words_of "$1")" ]]; then
		fail "replay of $(trace-dump --header t | jq -c .argv):" \
			"status $got, expected: $(words_of "$1")" \
			"$(tail -n 45 rep.err | cut -c 1-300)"
		return 1
	fi
	head -c -$((${#verdict} + 1)) rep.err >rep.err.text
	mv rep.err.text rep.err
	[ -z "$(ls -A run)" ] || fail "the replay made files: $(ls -A run)"
}

# same STATUS COMMAND...: run the command, record it, replay it: both outputs
# and the status are the same three times (with varies=1 the native run is
# left out), and the trace is valid.  `from` is the file it reads, `limit` the
# seconds each may take.  It runs in the empty directory run.
same() {
	local want code got=0 input=/dev/null
	[ -z "${from:-}" ] || input=$PWD/$from
	want=$1 code=$(status_of "$1")
	shift
	rm -rf t run
	if [ -z "${varies:-}" ]; then
		mkdir run
		(cd run && in_session "${limit:-60}" "$@" <"$input" \
			>../nat.out 2>../nat.err) || got=$?
		[ $got = "$code" ] || fail "$*" "natively: status $got" \
			"$(tail nat.err)"
		rm -rf run
	fi
	mkdir run
	got=0
	(cd run && in_session "${limit:-60}" trace-record -o ../t "$@" \
		<"$input" >../rec.out 2>../rec.err) || got=$?
	[ $got = "$code" ] || fail "$*" "recorded: status $got, not $code" \
		"$(tail rec.err)"
	rm -rf run
	if [ -z "${varies:-}" ]; then
		cmp nat.out rec.out || fail "$*: recording changed stdout"
		cmp nat.err rec.err || fail "$*: recording changed stderr" \
			"$(head rec.err)"
	fi
	replays "$want"
	cmp rec.out rep.out || fail "$*: stdout differs in the replay"
	cmp rec.err rep.err || fail "$*: stderr differs in the replay" \
		"$(diff rec.err rep.err | head)"
	expect 0 trace-verify t
}

# survey SEEDS VARIANTS: record tests/survey/survey.c in namespaces of its own,
# with other arguments for every seed; replay it.
survey() {
	local seed
	[ "$(id -u)" = 0 ] || skip "not root"
	unshare -n -i -u -m true || skip "no namespaces here"
	awk -f "$SOURCE/tests/survey/calls.awk" "$SOURCE"/formats/flags.tbl \
		"$SOURCE"/formats/ioctls.tbl "$SOURCE"/formats/syscalls.tbl \
		>calls.h
	gcc -static -O1 -D_GNU_SOURCE -I. -o survey "$SOURCE/tests/survey/survey.c"
	for seed in $(seq "$1"); do
		echo "seed $seed"
		rm -rf t run
		mkdir -p run/pts
		(cd run && in_session 300 unshare -n -i -u -m sh -c 'mount \
			-t devpts -o newinstance,ptmxmode=0666 none pts &&
			exec "$@"' sh trace-record --audit=../found -o ../t \
			../survey "$2" "$seed" >../rec.out 2>../rec.err) ||
			fail "recorded: status $?" "$(tail rec.err)"
		[ "$(cat rec.out rec.err)" = ok ] || fail "$(cat rec.out rec.err)"
		[ ! -s found ] || fail "not as the tables say:" "$(head found)"
		limit=300 replays 0
		[ "$(trace-dump -T syscall -f json t | wc -l)" -gt 2000 ]
	done
}

# repeat TIMES same ...: for what depends on the moment.  With REPEAT, so
# often instead.
repeat() {
	local n=${REPEAT:-$1}
	shift
	for i in $(seq "$n"); do
		echo "time $i of $n"
		"$@"
	done
}
