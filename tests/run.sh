#!/bin/sh
# Run every test against what is built in $BUILD and end with one line:
#
#   N passed, N failed, N skipped
#
# Suites, each of which speaks TAP: the C unit tests, the same with ASan and
# UBSan, the lint, and the bats files (in parallel, one process a file).
# Arguments name suites to run: unit, sanitized, lint, or bats files.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build}
BUILD=$(mkdir -p "$BUILD" && cd "$BUILD" && pwd) || exit 2
export BUILD
logs=$BUILD/test-logs
rm -rf "$logs"
mkdir -p "$logs"

unit_seconds=${UNIT_SECONDS:-120}  # watchdog of one C unit test
test_seconds=${TEST_SECONDS:-180}  # of one bats test
file_seconds=${FILE_SECONDS:-1200} # of one bats file

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
run_bats() {
	# shellcheck disable=SC2016
	printf '%s\n' "$@" | BATS_TEST_TIMEOUT=$test_seconds xargs -P "$jobs" \
		-I FILE sh -c '
		log=$1/bats-$(basename "$2" .bats).tap
		timeout -k 10 "$3" bats --formatter tap "$2" >"$log" 2>&1
		case $? in
		0 | 1) ;;
		*) echo "not ok - $2 was ended" >>"$log" ;;
		esac' run "$logs" FILE "$file_seconds"
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
		exit failed > 0 || passed == 0
	}
AWK
	awk -f "$logs/sum.awk" "$@"
}

jobs=$(nproc 2>/dev/null || echo 2)
if [ $# = 0 ]; then
	# The longest first: nothing runs beside the last one.
	set -- unit sanitized lint tests/workloads.bats
	for file in tests/*.bats; do
		[ "$file" = tests/workloads.bats ] || set -- "$@" "$file"
	done
fi
files=
for suite; do
	case $suite in
	unit) run_units "$BUILD" unit ;;
	sanitized) run_units "$BUILD/asan" sanitized ;;
	lint) run_lint ;;
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
