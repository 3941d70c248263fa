#!/usr/bin/env bats
# Traces that were cut, changed, taken apart, or made by another version; and
# programs that cannot be recorded.  Every tool says what is wrong in one line
# and ends with its status; none crashes or hangs.

load helpers

setup_file() {
	PATH=$(cd "${BUILD:-$BATS_TEST_DIRNAME/../build}" && pwd)/bin:$PATH
	cd "$BATS_FILE_TMPDIR" || return 1
	cat >small.c <<-'END'
		int main(void) { return 0; }
	END
	gcc -static -Os -s -o small small.c
	trace-record -o whole sh -c 'echo out; ls / | cat; ./small; ./small' \
		>/dev/null || return 1
	trace-record -o tiny ./small
}

# Copies share nothing with the original: it is damaged.
copy() {
	rm -rf t
	cp -r --no-preserve=mode "$BATS_FILE_TMPDIR/$1" t
}

# bearable MAX COMMAND...: status at most MAX, and when not 0 a line that says
# why; no signal, no time limit.
bearable() {
	local max=$1 got=0
	shift
	(in_session 30 "$@" >out 2>err </dev/null) || got=$?
	[ $got -le "$max" ] || fail "$*: status $got" "$(tail -n 5 err)"
	[ $got != 2 ] || [ "$(wc -l <err)" = 1 ] ||
		fail "$*: not one line: $(head -n 5 err)"
	got_status=$got
}

# damaged: verify finds it, the others bear it.
damaged() {
	local got=0
	(in_session 30 trace-verify t >out 2>err) || got=$?
	[ $got = 1 ] || fail "$1: verify: status $got: $(head out err)"
	bearable 2 trace-dump t
	bearable 2 trace-replay -n t
}

# flip FILE OFFSET: change one bit.
flip() {
	perl -e 'open F, "+<", $ARGV[0] or die; seek F, $ARGV[1], 0; read F, $c, 1;
		seek F, $ARGV[1], 0; print F chr(ord($c) ^ (1 << $ARGV[1] % 8))' \
		"$1" "$2"
}

# places SIZE N: N offsets, both ends among them.
places() {
	awk -v size="$1" -v n="$2" 'BEGIN {
		for (i = 0; i < n; i++)
			print int((size - 1) * i / (n - 1))
	}'
}

@test "a trace cut at many places" {
	for file in chunks/000000 index manifest.json; do
		size=$(stat -c %s "$BATS_FILE_TMPDIR/tiny/$file")
		for at in $(places "$size" 8); do
			copy tiny
			truncate -s "$at" "t/$file"
			damaged "$file cut at $at"
		done
	done
}

@test "single bits flipped" {
	for file in chunks/000000 index manifest.json; do
		size=$(stat -c %s "$BATS_FILE_TMPDIR/tiny/$file")
		for at in $(places "$size" 12); do
			copy tiny
			flip "t/$file" "$at"
			damaged "$file flipped at $at"
		done
	done
}

@test "stored files changed, cut, longer, missing, added" {
	file=files/1
	size=$(stat -c %s "$BATS_FILE_TMPDIR/tiny/$file")
	for at in $(places "$size" 4); do
		copy tiny
		flip "t/$file" "$at"
		damaged "$file flipped at $at"
		copy tiny
		truncate -s "$at" "t/$file"
		damaged "$file cut at $at"
	done
	copy tiny
	echo more >>"t/$file"
	damaged "$file longer"
	copy tiny
	rm "t/$file"
	damaged "$file missing"
	copy tiny
	ln -sf /etc/passwd "t/$file"
	damaged "$file a link"
	copy tiny
	rm "t/$file"
	mkfifo "t/$file"
	damaged "$file a pipe"
	copy tiny
	rm "t/chunks/000000"
	mkfifo "t/chunks/000000"
	damaged "a chunk file that is a pipe"
}

@test "a larger trace: damage anywhere in the events" {
	size=$(stat -c %s "$BATS_FILE_TMPDIR/whole/chunks/000000")
	for at in $(places "$size" 6); do
		copy whole
		flip t/chunks/000000 "$at"
		damaged "flipped at $at"
	done
}

@test "what comes before the damage can be read" {
	copy whole
	size=$(stat -c %s t/chunks/000000)
	all=$(trace-dump t | wc -l)
	truncate -s $((size - 100)) t/chunks/000000
	bearable 1 trace-dump t
	[ "$(wc -l <out)" -gt 10 ]
	[ "$(wc -l <out)" -lt "$all" ]
	copy whole
	rm t/index
	bearable 1 trace-dump t
	[ "$(wc -l <out)" = "$all" ]
}

@test "missing parts" {
	for part in manifest.json chunks files chunks/000000; do
		copy whole
		rm -r "t/$part"
		damaged "no $part"
	done
}

@test "another format version, an unknown feature: refused by name" {
	copy whole
	# The last line is a checksum (XXH3-64) of what is before it.
	/usr/bin/python3 - <<-'END'
		import xxhash
		text = open("t/manifest.json").read()
		body = text[:text.rindex('  "checksum"')]
		for name, was, now in (
		    ("version", '"version": 1,', '"version": 9,'),
		    ("feature", '"incompat": [', '"incompat": ["holograms", ')):
		    assert was in body
		    changed = body.replace(was, now)
		    digest = xxhash.xxh3_64_hexdigest(changed.encode())
		    open(name + ".json", "w").write(
		        changed + '  "checksum": "' + digest + '"\n}\n')
	END
	for tool in dump replay verify; do
		cp version.json t/manifest.json
		bearable 2 trace-$tool t
		[ "$got_status" != 0 ]
		cat out err | grep -q 'version 9' || fail "$tool: $(cat out err)"
		cp feature.json t/manifest.json
		bearable 2 trace-$tool t
		[ "$got_status" != 0 ]
		cat out err | grep -q holograms || fail "$tool: $(cat out err)"
	done
}

@test "what is no trace" {
	mkdir empty
	echo text >file
	mkfifo pipe
	for what in empty file pipe missing /dev/null /; do
		for tool in dump replay verify; do
			bearable 2 trace-$tool $what
			[ "$got_status" != 0 ] || fail "$tool $what"
			cat out err | grep -q -F "$what" || fail "$(cat out err)"
		done
	done
}

@test "traces that one may not read" {
	[ "$(id -u)" = 0 ] || skip 'needs root to become somebody else'
	copy whole
	chmod 700 t
	chmod 755 .
	for tool in dump replay verify; do
		expect 2 as_nobody "$(command -v trace-$tool)" "$PWD/t"
		one_error trace-$tool
		# shellcheck disable=SC2154
		has "$stderr" 'Permission denied'
	done
}

@test "a 32-bit program is refused before it runs" {
	# ELFCLASS32, EM_386, one loadable segment: exit(0).
	perl -e 'print "\x7fELF\1\1\1", "\0" x 9,
		pack("vvVVVVVvvvvvv", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 40, 0, 0),
		pack("VVVVVVVV", 1, 0, 0x8048000, 0x8048000, 96, 96, 5, 4096),
		"\x31\xdb\x31\xc0\x40\xcd\x80\0\0\0\0\0"' >p32
	chmod +x p32
	expect 126 trace-record -o t ./p32
	one_error trace-record
	has "$stderr" p32
	has "$stderr" 64-bit
	[ ! -e t ]
}

@test "programs that cannot be executed: 126; that are not there: 127" {
	echo text >plain
	expect 126 trace-record -o t ./plain
	one_error trace-record
	expect 126 trace-record -o t /
	one_error trace-record
	printf '\x7fELF garbage' >garbage
	chmod +x garbage
	# What is in no format that the kernel knows is a script, as for env(1).
	expect "$(env ./garbage >/dev/null 2>&1; echo $?)" trace-record -o u ./garbage
	expect 127 trace-record -o t ./missing
	one_error trace-record
	expect 127 trace-record -o t missing-in-path
	one_error trace-record
	printf '#!/no/such/interpreter\n' >script
	chmod +x script
	expect 127 trace-record -o t ./script
	one_error trace-record
	[ ! -e t ]
}

@test "an existing directory is not recorded into" {
	mkdir t
	expect 125 trace-record -o t touch made
	one_error trace-record
	[ ! -e made ]
	[ -z "$(ls -A t)" ]
	expect 125 trace-record -o no/such/place/t touch made
	one_error trace-record
	[ ! -e made ]
}
