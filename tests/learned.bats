#!/usr/bin/env bats
# What one recording learns of the code of programs and libraries, later ones
# know: fewer stops, the same events, and never anything of a file that has
# changed.

load helpers

setup_file() {
	# The tests are about what code in the program does.
	unset RECORD_OPTIONS
}

# The sites of a file, by its name, that the trace's recording knew.
known() {
	trace-dump --type file "$1" |
		jq -s "map(select((.text // \"\") | endswith(\"$2\")) | .known // 0) | add"
}

# Instructions and calls that stopped the program to be patched.
first_stops() {
	trace-dump "$1" | jq -s 'map(select(.value and .type != "file")) | length'
}

cache() {
	echo "$HOME/.cache/trace/code"
}

@test "the second recording knows what the first has learned" {
	expect 0 trace-record -o a ls /
	[ "$(known a /ls)" = 0 ]
	[ "$(known a .so.2)" = 0 ]
	[ "$(first_stops a)" -gt 40 ]
	expect 0 trace-record -o b ls /
	[ "$(known b .so.2)" -gt 20 ]
	[ "$(known b /libc.so.6)" -gt 5 ]
	[ "$(first_stops b)" = 0 ]
	for t in a b; do
		expect 0 trace-replay "$t"
		has "$stderr" identical
		expect 0 trace-verify --replay "$t"
	done
	expect 0 trace-diff a b
	# An archive has it all.
	expect 0 trace-pack -o b.tar b
	expect 0 env XDG_CACHE_HOME="$PWD/other" trace-replay b.tar
	# Nothing new was learned: nothing was written.
	find "$(cache)" -type f -printf '%f %T@\n' | sort >before
	expect 0 trace-record -o c ls /
	find "$(cache)" -type f -printf '%f %T@\n' | sort >after
	cmp before after
}

@test "what is known is told in JSON and in text" {
	trace-record -o a true
	trace-record -o b true
	has "$(trace-dump -f text --type file b)" "known sites"
	trace-dump -v --type file b >json
	valid_json json
	jq -s -e 'map(select(.known_sites) | .known == (.known_sites | length) and
		(.known_sites | all(.offset > 0 and .value > 0))) | length > 0 and all' \
		json
	jq -s -e '[.[].known_sites // [] | .[].insn] |
		(contains(["syscall"]) and contains(["cpuid"]))' json
}

# A static program: its own code makes system calls.
static_program() {
	need ldconfig
	cat "$(command -v ldconfig)" >"$1"
	chmod +x "$1"
}

@test "a file that has changed is another one" {
	static_program prog
	sleep 0.3
	trace-record -o a ./prog --version
	trace-record -o b ./prog --version
	[ "$(known b /prog)" -gt 5 ]
	# The same inode and size, and the time that a program can set.
	touch -r prog stamp
	printf x | dd of=prog bs=1 seek="$(($(stat -c %s prog) - 1))" \
		conv=notrunc status=none
	touch -r stamp prog
	sleep 0.3
	trace-record -o c ./prog --version
	[ "$(known c /prog)" = 0 ]
	expect 0 trace-replay c
	trace-record -o d ./prog --version
	[ "$(known d /prog)" -gt 5 ]
	expect 0 trace-replay d
}

# Nanoseconds from the last change of prog until the trace's recording stored it.
delay() {
	trace-dump --type file "$1" | jq -s \
		"(.[0].start + (map(select((.text // \"\") | endswith(\"/prog\"))) |
		.[0].time)) - $(stat -c %.9Z prog | tr -d .)"
}

@test "what has just been written is not relied upon" {
	for i in $(seq 20); do
		rm -rf t u
		static_program prog
		trace-record -o t ./prog --version
		[ "$(known t /prog)" = 0 ]
		[ "$(delay t)" -lt 90000000 ] || continue
		# It is old enough now, but was not when it was looked at.
		sleep 0.3
		trace-record -o u ./prog --version
		[ "$(known u /prog)" = 0 ]
		expect 0 trace-replay u
		return
	done
	skip "no recording began within 90 ms"
}

# Every entry changed by a command that is given its name.
spoiled() {
	local f
	for f in "$(cache)"/*; do
		"$@" "$f"
	done
	rm -rf t
	expect 0 trace-record -o t ls /
	[ "$(known t .so.2)" = 0 ]
	expect 0 trace-replay t
	has "$stderr" identical
	# It was replaced.
	rm -rf t
	trace-record -o t ls / >/dev/null
	[ "$(known t .so.2)" -gt 20 ]
}

flip() {
	local n
	n=$(stat -c %s "$1")
	printf '\xff\xff\xff' |
		dd of="$1" bs=1 seek=$((RANDOM % (n - 3))) conv=notrunc status=none
}

longer() {
	echo more >>"$1"
}

@test "damaged entries count for nothing" {
	trace-record -o a ls / >/dev/null
	spoiled flip
	spoiled truncate -s 0
	spoiled truncate -s 20
	spoiled truncate -s -1
	spoiled longer
	spoiled cp /etc/passwd
}

@test "where nothing can be kept, recordings are the same" {
	for base in "$PWD/file/below" /proc/nowhere relative; do
		: >file
		rm -rf t
		expect 0 env XDG_CACHE_HOME="$base" HOME= trace-record -o t true
		[ -z "$stderr" ] || fail "$stderr"
		expect 0 trace-replay t
	done
	[ ! -e relative ]
	[ "$(id -u)" = 0 ] || skip "not root: no other user"
	# Somebody else's: neither read nor written.
	trace-record -o a true
	chmod -R a+rwX "$HOME"
	chmod a+rwx .
	rm -rf t
	expect 0 as_nobody trace-record -o t true
	[ "$(known t .so.2)" = 0 ]
	[ -z "$(find "$(cache)" -uid 65534)" ]
	# Nor does root begin one for somebody.
	mkdir theirs
	chown 65534 theirs
	expect 0 env HOME="$PWD/theirs" trace-record -o u true
	[ -z "$(ls -A theirs)" ]
}

@test "a recording that leaves sites out neither uses nor loses them" {
	trace-record -o a ls / >/dev/null
	trace-record -o b ls / >/dev/null
	n=$(known b .so.2)
	expect 0 trace-record --no-intercept -o c ls /
	[ "$(known c .so.2)" = 0 ]
	expect 0 trace-replay c
	expect 0 trace-record --portable -o d ls /
	trace-dump -v --type file d |
		jq -s -e 'all(.known_sites // [] | all(.insn != "cpuid"))'
	expect 0 trace-replay d
	trace-record -o e ls / >/dev/null
	[ "$(known e .so.2)" = "$n" ]
}

@test "recordings side by side" {
	local recorders=()
	for i in $(seq 12); do
		trace-record -o "t$i" sh -c 'ls / | sort | head -2; date' \
			>"out$i" 2>&1 &
		recorders+=($!)
	done
	wait "${recorders[@]}"
	for i in $(seq 12); do
		expect 0 trace-replay "t$i"
		has "$stderr" identical
	done
	trace-record -o last sh -c 'ls / | sort | head -2; date' >/dev/null
	[ "$(known last .so.2)" -gt 20 ]
	expect 0 trace-replay last
}

@test "what is kept does not grow without end" {
	trace-record -o a true
	(cd "$(cache)" && seq 5000 | xargs touch)
	static_program prog
	sleep 0.3
	trace-record -o b ./prog --version
	[ "$(find "$(cache)" -type f | wc -l)" -lt 100 ]
}
