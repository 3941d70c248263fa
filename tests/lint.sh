#!/bin/sh
# Checks of the sources that a compiler does not make, as TAP.
#
# Uses what is built in $BUILD for the checks of options and symbols.
set -u
cd "$(dirname "$0")/.." || exit 2
BUILD=${BUILD:-build}
tools='trace-record trace-replay trace-dump trace-diff trace-verify trace-pack'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
count=0
failures=0

# check NAME COMMAND...: ok when the command succeeds and prints nothing.
check() {
	name=$1
	shift
	count=$((count + 1))
	if "$@" >"$scratch/out" 2>&1 && [ ! -s "$scratch/out" ]; then
		echo "ok $count - lint: $name"
	else
		failures=$((failures + 1))
		echo "not ok $count - lint: $name"
		sed 's/^/# /' "$scratch/out" | head -n 40
	fi
}

shell_scripts() {
	for f in tests/*.sh tests/*/*.sh .ci/run tests/bench/run; do
		[ -f "$f" ] && printf '%s\n' "$f"
	done
}

shell_lint() {
	# shellcheck disable=SC2046
	shellcheck $(shell_scripts)
}

# Scripts in single quotes are for the programs recorded; helpers read
# variables that tests set.
bats_lint() {
	for f in tests/*.bats tests/long/*.bats; do
		[ ! -f "$f" ] || shellcheck -x -P tests -s bats -e SC2016,SC2034 "$f" || return 1
	done
}

manual_lint() {
	mandoc -T lint -W warning man/*.[1-9] | grep -v 'outdated mandoc.db'
	return 0
}

# The order of layers: a file includes its own layer or lower ones.  The
# injected code knows nothing of the tracer, which knows the code's interface.
layers() {
	cat <<'LAYERS'
base 0
format 1
store 2
state 3
model 4
intercept 5
tracee 6
record 7
replay 7
pager 8
gdb 8
LAYERS
}

include_direction() {
	layers >"$scratch/layers"
	grep -n '#include "' libtrace/*/*.[chS] | awk -v layers="$scratch/layers" '
	BEGIN {
		while ((getline line < layers) > 0) {
			split(line, f, " ")
			rank[f[1]] = f[2]
		}
	}
	{
		match($0, /"[^"]*"/)
		header = substr($0, RSTART + 1, RLENGTH - 2)
		split($0, where, "/")
		n = split(header, to, "/")
		if (to[1] != "libtrace" || n != 3 || !(to[2] in rank)) {
			if (header !~ /^libtrace\//)
				print "not below libtrace: " $0
			else
				print "unknown layer: " $0
		} else if (!(where[2] in rank)) {
			print "file in an unknown layer: " $0
		} else if (rank[to[2]] > rank[where[2]] ||
			   (rank[to[2]] == rank[where[2]] && to[2] != where[2])) {
			print "upward: " $0
		}
	}'
}

# The mains see the public interface and the command-line helpers only.
main_includes() {
	grep -n '#include "' cmd/trace-*.c |
		grep -v -E '"(libtrace/trace\.h|cmd/cli/[a-z_]+\.h)"'
	return 0
}

# library NAME PATTERN: the header is included in exactly one file.
one_user() {
	users=$(grep -l -E "#include <($2)>" libtrace/*/*.[ch] cmd/*.c cmd/cli/*.[ch])
	[ "$(printf '%s\n' "$users" | grep -c .)" = 1 ] ||
		printf '%s is included in: %s\n' "$1" "$(echo "$users" | tr '\n' ' ')"
}

ptrace_users() {
	grep -n -E '(^|[^A-Za-z0-9_])ptrace\([^0-9]' libtrace/*/*.c cmd/*.c cmd/cli/*.c |
		grep -v '^libtrace/tracee/'
	return 0
}

# Tools that only read traces have no engine in them.
no_engine() {
	for t in dump diff verify pack; do
		nm -u "$BUILD/bin/trace-$t" | grep -E '\bptrace(@|$)' &&
			echo "trace-$t calls ptrace"
	done
	return 0
}

table() {
	"$BUILD/bin/$1" --dump-options | jq -r 'select(.type == "option") | '"$2"
}

# Options of a tool as the table has them: one -x or --long a line.
table_options() {
	table "$1" '"--" + .long, (select(.short != "") | "-" + .short)' | sort -u
}

# Options as the manual's list documents them (.It Fl x , Fl Fl long ...).
manual_options() {
	awk '/^\.It Fl / {
		for (i = 2; i <= NF; i++) {
			if ($i == "Fl" && $(i + 1) == "Fl") {
				print "--" $(i + 2)
				i += 2
			} else if ($i == "Fl") {
				print "-" $(i + 1)
				i++
			}
		}
	}' "man/$1.1" | sed 's/=.*//' | sort -u
}

options_in_manuals() {
	for t in $tools; do
		table_options "$t" >"$scratch/table"
		manual_options "$t" >"$scratch/manual"
		diff -u --label "options of $t" --label "man/$t.1" \
			"$scratch/table" "$scratch/manual"
	done
	return 0
}

# One word a line, without the brackets.
synopsis_words() {
	tr -d '[]|' | awk '{
		for (i = 1; i <= NF; i++) {
			sub(/\.\.\.$/, "", $i)
			if ($i !~ /^(-?-?|trace-[a-z]+)$/)
				print $i
		}
	}' | sort
}

# The synopsis of help and manual agree but for the manual's markup.
synopsis_in_manuals() {
	for t in $tools; do
		"$BUILD/bin/$t" --dump-options |
			jq -r 'select(.type == "tool") | .synopsis' |
			synopsis_words >"$scratch/table"
		mandoc -T ascii "man/$t.1" | sed "s/.$(printf '\b')//g" |
			awk '/^SYNOPSIS/ { on = 1; next } /^[A-Z]/ { on = 0 } on' |
			synopsis_words >"$scratch/manual"
		diff -u --label "synopsis of $t" --label "man/$t.1" \
			"$scratch/table" "$scratch/manual"
	done
	return 0
}

options_in_completions() {
	for t in $tools; do
		for long in $(table "$t" .long); do
			for f in "bash/$t" "zsh/_$t" "fish/$t.fish"; do
				grep -q -E -e "(--|-l )$long\b" \
					"$BUILD/completions/$f" ||
					echo "completions/$f lacks --$long"
			done
		done
	done
	return 0
}

completion_syntax() {
	for t in $tools; do
		bash -n "$BUILD/completions/bash/$t"
		shellcheck -s bash "$BUILD/completions/bash/$t"
		command -v zsh >/dev/null && zsh -n "$BUILD/completions/zsh/_$t"
		command -v fish >/dev/null && fish -n "$BUILD/completions/fish/$t.fish"
	done
	return 0
}

# Every event type and JSON type has a schema, and schemas are well formed.
schemas() {
	/usr/bin/python3 tests/schemas.py --check formats
}

tracked_products() {
	git ls-files 2>/dev/null | grep -E '\.(o|a|so|d|img|gch)$|^build/'
	return 0
}

unfinished() {
	grep -n -w -E 'TODO|FIXME|XXX' -r libtrace cmd man formats completions
	return 0
}

# tests/programs.md has a row for each test of a real program, and no other.
programs_table() {
	for f in programs.bats long/builds.bats long/runtimes.bats \
		long/servers.bats long/tools.bats long/tracers.bats; do
		sed -n "s|^@test \"\(.*\)\" {|\1 - $f|p" "tests/$f"
	done | sort >"$scratch/tests"
	awk -F ' [|] ' '/^[|] .*bats [|]/ { print substr($1, 3) " - " $2 }' \
		tests/programs.md | sort >"$scratch/rows"
	diff -u --label tests --label tests/programs.md \
		"$scratch/tests" "$scratch/rows"
	return 0
}

check 'shell scripts (shellcheck)' shell_lint
check 'bats files (shellcheck)' bats_lint
check 'manuals (mandoc)' manual_lint
check 'includes go down the layers' include_direction
check 'mains use the public interface' main_includes
check 'jansson has one user' one_user jansson 'jansson\.h'
check 'libarchive has one user' one_user libarchive 'archive(_entry)?\.h'
check 'zlib and libdeflate have one user' one_user deflate '(zlib|libdeflate)\.h'
check 'libdw has one user' one_user libdw '(elfutils|dwarf)[^>]*'
check 'only the tracee layer calls ptrace' ptrace_users
check 'reading tools have no engine' no_engine
check 'options agree with manuals' options_in_manuals
check 'synopses agree with manuals' synopsis_in_manuals
check 'options are in completions' options_in_completions
check 'completions are well formed' completion_syntax
check 'schemas are well formed' schemas
check 'no build product is tracked' tracked_products
check 'nothing is marked unfinished' unfinished
check 'the table of programs is that of the tests' programs_table
echo "1..$count"
[ $failures = 0 ]
