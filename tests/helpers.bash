# shellcheck shell=bash
# What the bats files share.  `load helpers` at the top of each.
#
# BUILD is where the tools were built; tests run in a directory of their own
# with a home of their own, so that nothing of the user's is read or written.

: "${BUILD:=$BATS_TEST_DIRNAME/../build}"
BUILD=$(cd "$BUILD" && pwd)
# SOURCE and TOOLS are for the tests.
# shellcheck disable=SC2034
SOURCE=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
# shellcheck disable=SC2034
TOOLS='trace-record trace-replay trace-dump trace-diff trace-verify trace-pack'
PATH=$BUILD/bin:$PATH

setup() {
	export HOME=$BATS_TEST_TMPDIR/home XDG_DATA_HOME=
	export LC_ALL=C.UTF-8 TZ=UTC
	unset TRACE_FAULT POSIXLY_CORRECT
	mkdir -p "$HOME"
	cd "$BATS_TEST_TMPDIR" || return 1
}

fail() {
	printf '%s\n' "$@" >&2
	return 1
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
