#!/bin/sh
# Run every test against what is built in $BUILD and end with one line:
#
#   N passed, N failed, N skipped
#
# Suites, each of which speaks TAP: the C unit tests, the same with ASan and
# UBSan, the lint, and the bats files (in parallel, one process a file): those
# of tests/ are `bats`, those of tests/long/, which take long, are `long`.
# `stops` are those of tests/ that record once more, with every recording made
# with --no-intercept.  Arguments name suites to run, or single bats files; without
# any, all but `long` and `stops` are run.  With DEADLINE, in seconds since the
# epoch, bats tests that have not begun by then are skipped.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build}
BUILD=$(mkdir -p "$BUILD" && cd "$BUILD" && pwd) || exit 2
export BUILD
logs=$BUILD/test-logs
[ "${1:-}" = --file ] || rm -rf "$logs"
mkdir -p "$logs"

unit_seconds=${UNIT_SECONDS:-300}  # watchdog of one C unit test
test_seconds=${TEST_SECONDS:-180}  # of one bats test
file_seconds=${FILE_SECONDS:-1800} # of one bats file
long_seconds=${LONG_SECONDS:-600}  # of one bats test of the long set

# One C test program: its own TAP, or one result from its exit status.
run_unit() {
	name=$(basename "$1")
	out=$logs/$2-$name
	timeout -k 5 "$unit_seconds" "$1" >"$out.out" 2>&1
	status=$?
	if [ $status = 77 ]; then
		echo "ok 1 - $2 $name # skip"
	elif grep -q '^not ok ' "$out.out" || [ $status = 0 ]; then
		if grep -q -E '^(not )?ok ' "$out.out"; then
			cat "$out.out"
		else
			echo "ok 1 - $2 $name"
		fi
	else
		grep -E '^ok ' "$out.out"
		echo "not ok 1 - $2 $name (exit status $status)"
		sed 's/^/# /' "$out.out" | tail -n 40
	fi >"$out.tap"
}

run_units() {
	for test in "$1"/tests/test_*; do
		[ -f "$test" ] && [ -x "$test" ] && run_unit "$test" "$2"
	done
}

run_lint() {
	timeout -k 5 300 tests/lint.sh >"$logs/lint.tap" 2>"$logs/lint.err" ||
		[ -s "$logs/lint.tap" ] ||
		echo "not ok 1 - lint did not run" >>"$logs/lint.tap"
}

# bats makes a test that takes too long fail; timeout ends a stuck file.
run_bats_file() {
	file=${1#stops:}
	log=$logs/bats-$(echo "${1#tests/}" | tr /: --).tap
	seconds=$test_seconds most=$file_seconds
	case $1 in
	tests/long/*) seconds=$long_seconds most=$((10 * long_seconds)) ;;
	stops:*) export RECORD_OPTIONS=--no-intercept ;;
	esac
	BATS_TEST_TIMEOUT=$seconds timeout -k 10 "$most" \
		bats --formatter tap "$file" >"$log" 2>&1
	case $? in
	0 | 1) ;;
	*) echo "not ok - $1 was ended" >>"$log" ;;
	esac
}

# Several at once: each worker takes the next file when it is done with one.
run_bats() {
	printf '%s\n' "$@" | xargs -P "$jobs" -I FILE "$0" --file FILE
}

# Sum up: a test that a plan promised and that never reported has failed.
summary() {
	cat >"$logs/sum.awk" <<'AWK'
	function close_file() {
		if (plan > seen)
			failed += plan - seen
		plan = seen = 0
	}
	FNR == 1 { close_file() }
	/^1\.\.[0-9]+/ { plan = substr($1, 4) + 0 }
	/^(not )?ok( |$)/ { seen++ }
	/^not ok( |$)/ { failed++; next }
	/^ok .*# *[Ss][Kk][Ii][Pp]/ { skipped++; next }
	/^ok( |$)/ { passed++ }
	END {
		close_file()
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
		exit failed > 0 || passed + skipped == 0
	}
AWK
	awk -f "$logs/sum.awk" "$@"
}

# The longest first: nothing runs beside the last one.
bats_files() {
	echo tests/workloads.bats
	for file in tests/*.bats; do
		[ "$file" = tests/workloads.bats ] || echo "$file"
	done
}

# Those that are other tools' tests, or run other builds, record nothing.
recording_files() {
	bats_files | grep -v -x -E \
		'tests/(fuzz|install|names|sanitized)\.bats'
}

if [ "${1:-}" = --file ]; then
	run_bats_file "$2"
	exit
fi
jobs=$(nproc 2>/dev/null || echo 2)
[ $# -gt 0 ] || set -- unit sanitized lint bats
files=
for suite; do
	case $suite in
	unit) run_units "$BUILD" unit ;;
	sanitized) run_units "$BUILD/asan" sanitized ;;
	lint) run_lint ;;
	bats) files="$files $(bats_files)" ;;
	long) files="$files $(echo tests/long/*.bats)" ;;
	stops) files="$files $(recording_files | sed 's/^/stops:/')" ;;
	*) files="$files $suite" ;;
	esac
done
# shellcheck disable=SC2086
[ -z "$files" ] || run_bats $files

for log in "$logs"/*.tap; do
	# What failed, and why: bats says that after the result, C tests before.
	awk '/^(not )?ok( |$)/ {
		show = /^not/ ? 20 : 0
		if (show)
			print held $0
		held = ""
		next
	}
	show > 0 { print; show--; next }
	{ held = held $0 "\n" }' "$log"
	grep -h -i '^ok .*# *skip' "$log"
done
summary "$logs"/*.tap
