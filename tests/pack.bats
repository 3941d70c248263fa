#!/usr/bin/env bats
# trace-pack: in place, into archives and out of them, and only what is missing.

load helpers

# Two copies of one program and two links, as a recorder makes them where
# nothing better can be had.
trace_with_links() {
	cp /bin/true one
	cp /bin/true two
	trace-record -o "$1" sh -c './one; ./two; echo out'
	cp "$1/files/1" outside
	ln -f outside "$1/files/1"
	cp "$1/files/2" outside2
	ln -f outside2 "$1/files/2"
}

# No stored file of the trace is reachable from elsewhere.
is_private() {
	local f own
	for f in "$1"/files/*; do
		own=$(find "$1/files" -samefile "$f" | wc -l)
		[ "$(stat -c %h "$f")" = "$own" ] || fail "$f: not private"
	done
}

# What the trace says of its files is so, and it says it of each.
digests() {
	local sums=$PWD/sums
	trace-dump --files "$1" | jq -r '"\(.sha256)  files/\(.file)"' >"$sums"
	(cd "$1" && sha256sum -c --quiet "$sums")
}

@test "in place: links become private, equal files one, strays go" {
	trace_with_links t
	echo stray >t/files/999
	echo half >t/files/3.tmp
	trace-pack t >out
	valid_json out
	jq -e '.operation == "packed" and .traces == 1 and .shared_bytes > 0' out
	is_private t
	[ ! -e t/files/999 ] && [ ! -e t/files/3.tmp ]
	grep -q '"packed": true' t/manifest.json
	expect 0 trace-verify t
	digests t
	# Equal files are one file, or share their blocks.
	same=$(trace-dump --files t | jq -s -r 'group_by(.sha256)[] |
		select(length > 1) | .[].file' | head -n 2 | tr '\n' ' ')
	read -r a b <<<"$same"
	[ -n "$b" ]
	# Nothing that happens to the original reaches the trace.
	echo changed >outside
	expect 0 trace-verify t
	expect 0 trace-replay t
	# Again changes nothing.
	find t -type f -exec sha256sum {} + | sort >before
	trace-pack -q t
	find t -type f -exec sha256sum {} + | sort | diff before -
}

@test "in place: killed at any moment, the trace is whole" {
	trace_with_links orig
	for point in inplace-copied inplace-sync inplace-rename inplace-link \
		inplace-drop inplace-manifest; do
		for nth in 1 2 3; do
			rm -rf t
			cp -r orig t
			ln -f outside t/files/1
			ln -f outside2 t/files/2
			echo stray >t/files/999
			rm -f t/files/999.tmp
			code=0
			(TRACE_FAULT=$point=kill@$nth exec trace-pack -q t) \
				2>/dev/null || code=$?
			[ $code = 0 ] || [ $code = 137 ] ||
				fail "$point@$nth: status $code"
			[ $code = 137 ] || [ $nth -gt 1 ] ||
				fail "$point: never reached"
			rm -f t/files/999
			expect 0 trace-verify t
			digests t
			trace-pack -q t
			is_private t
			expect 0 trace-verify t
			[ -z "$(find t -name '*.tmp')" ]
		done
	done
	expect 0 trace-replay t
}

@test "in place: a full disk is reported and harms nothing" {
	trace_with_links t
	for point in inplace-copied inplace-sync inplace-rename inplace-drop \
		inplace-manifest store-write; do
		echo stray >t/files/999
		ln -f outside t/files/1
		expect 2 env TRACE_FAULT=$point=enospc trace-pack t
		one_error trace-pack
		grep -q 'No space left' "$BATS_TEST_TMPDIR/stderr"
		rm -f t/files/999
		expect 0 trace-verify t
	done
}

@test "in place: a file that has changed is named" {
	make_trace t
	path=$(trace-dump --files t | jq -r 'select(.file == 2).path')
	chmod u+w t/files/2
	echo more >>t/files/2
	expect 2 trace-pack t
	one_error trace-pack
	# shellcheck disable=SC2154 # expect sets it
	has "$stderr" "$path: changed since it was recorded"
	expect 2 trace-pack -o packed t
	one_error trace-pack
	has "$stderr" "$path: changed since it was recorded"
	[ ! -e packed ]
}

@test "in place: not while it is being recorded" {
	mkfifo go
	trace-record -o t sh -c 'echo ready; read -r x <go' >ready &
	for _ in $(seq 200); do
		[ -s ready ] && break
		sleep 0.05
	done
	expect 2 trace-pack t
	one_error trace-pack
	has "$stderr" 'in use'
	echo >go
	wait $!
	expect 0 trace-pack t
	expect 0 trace-verify t
}

@test "in place: a recording that was killed gets its digests" {
	trace-record -o t sh -c 'echo $PPID; sleep 60' >pid &
	job=$!
	for _ in $(seq 200); do
		[ -s pid ] && break
		sleep 0.05
	done
	# Events come to the disk in the background.
	for _ in $(seq 200); do
		[ -n "$(trace-dump --files t 2>/dev/null)" ] && break
		sleep 0.05
	done
	kill -KILL $job
	wait $job || true
	trace-pack -q t
	grep -q '"packed": true' t/manifest.json
	trace-pack -o packed t >/dev/null
	trace-pack -q -x packed -C there
	diff -r t there/t
	# Its own damage is all that is wrong with it.
	expect 1 trace-verify there/t
	grep -v -e incomplete -e verdict stdout >other || true
	[ ! -s other ]
	digests there/t
}

@test "archives: compressed by name or by option, the same bytes each time" {
	make_trace t
	for name in a.tar a.tar.gz a.tar.xz a.tar.zst; do
		expect 0 trace-pack -q -o $name t
		expect 0 trace-pack -q -o - --compress="$(case $name in
			*.gz) echo gzip ;; *.xz) echo xz ;; *.zst) echo zstd ;;
			*) echo none ;; esac)" t
		cmp $name stdout
		rm -rf there
		expect 0 trace-pack -q -x $name -C there
		diff -r t there/t
		case $name in
		*.gz) gzip -dc $name | cmp - a.tar ;;
		*.xz) xz -dc $name | cmp - a.tar ;;
		*.zst) zstd -dcq $name | cmp - a.tar ;;
		esac
		tar tf $name >/dev/null
	done
	[ "$(stat -c %s a.tar.zst)" -lt $(($(stat -c %s a.tar) * 2 / 3)) ]
	expect 2 trace-pack -o b --compress=lzma t
	one_error trace-pack
}

@test "archives: a packed trace gives the bytes of the one recorded" {
	make_trace t
	trace-pack -q -o one t
	cp -r t elsewhere
	mkdir d
	mv elsewhere d/t
	find d/t -exec touch -h -d 2001-02-03 {} +
	trace-pack -q -o two d/t
	cmp one two
}

@test "archives: list" {
	make_trace t
	trace-pack -q -o packed t
	trace-pack -t packed >out
	valid_json out
	jq -e -s 'map(.name) | .[0] == "t/" and .[1] == "t/manifest.json"' out
	trace-pack -t - <packed | cmp - out
	[ "$(jq -r 'select(.kind != "directory").name' out | sort)" = \
		"$(find t -type f | sort)" ]
	trace-pack -f text -t packed | grep -q ' t/files/1$'
	head -c 5000 packed >short
	expect 2 trace-pack -t short
	one_error trace-pack
}

@test "archives: traces of one program share its files" {
	for i in 1 2 3; do
		trace-record -o t$i ls / >/dev/null
	done
	trace-pack -q -o one t1
	trace-pack -q -o three t1 t2 t3
	one=$(stat -c %s one) three=$(stat -c %s three)
	[ "$three" -lt $((one + 200000)) ] || fail "$one $three"
	trace-pack -q -x three -C there
	for i in 1 2 3; do
		diff -r t$i there/t$i
	done
}

@test "archives: only what the receiver lacks" {
	cp /bin/ls ./mine
	trace-record -o t ./mine / >/dev/null
	trace-dump --files t >files
	trace-pack --have --files-from - <files >have
	valid_json have
	[ "$(wc -l <have)" = "$(wc -l <files)" ]
	grep -v '/mine"' have >less
	trace-pack --exclude-have less -o packed t >out
	valid_json out
	jq -e '.absent_files >= 2 and .absent_bytes > 100000' out
	[ "$(stat -c %s packed)" -lt 300000 ]
	# Here everything is where it was.
	trace-pack -q -x packed -C there
	diff -r t there/t
	expect 0 trace-verify there/t
	# Elsewhere it is not.
	trace-pack -q --exclude-have have -o packed --force t
	mv mine gone
	expect 2 trace-pack -x packed -C nowhere
	one_error trace-pack
	has "$stderr" 'missing from the archive, and not found here'
	[ -z "$(ls -A nowhere)" ]
	# With another file in its place neither, unless a list tells where.
	cp /bin/cat mine
	expect 2 trace-pack -x packed -C nowhere
	trace-pack --have "$PWD/gone" >list
	[ "$(wc -l <list)" = 1 ]
	trace-pack -q -x packed --have-from list -C nowhere
	diff -r t nowhere/t
	# A list that lies is found out.
	jq -c --arg path "$PWD/mine" '.path = $path' list >lie
	rm -rf nowhere
	expect 2 trace-pack -x packed --have-from lie -C nowhere
	[ -z "$(ls -A nowhere)" ]
}

@test "archives: files of recorded traces serve the next one" {
	cp /bin/ls ./mine
	trace-record ./mine / >/dev/null
	trace-record -o t ./mine /usr >/dev/null
	trace-pack --have >have
	trace-pack -q --exclude-have have -o packed t
	[ "$(stat -c %s packed)" -lt 100000 ]
	rm mine
	trace-pack -q -x packed -C there
	diff -r t there/t
}

@test "archives: the files that jq has chosen" {
	cp /bin/ls ./mine
	trace-record -o t ./mine / >/dev/null
	trace-dump --files t | jq -c 'select(.path | endswith("/mine"))' |
		trace-pack --files-from - -o packed t >/dev/null
	[ "$(trace-pack -t packed | grep -c '/files/[0-9]')" = 1 ]
	trace-pack -q -x packed -C there
	diff -r t there/t
	echo '{"type":"file","sha256":"zz"}' >bad
	expect 2 trace-pack --files-from bad -o other t
	one_error trace-pack
	has "$stderr" 'bad:1: '
	[ ! -e other ]
}

@test "archives: encrypted in a pipe" {
	command -v gpg >/dev/null || skip 'no gpg'
	make_trace t
	export GNUPGHOME=$PWD/gnupg
	mkdir -m 700 gnupg
	echo secret >phrase
	gpg=(gpg --batch --quiet --pinentry-mode loopback
		--passphrase-file phrase)
	trace-pack --compress=zstd -o - t | "${gpg[@]}" -c -o t.gpg
	"${gpg[@]}" -d t.gpg | trace-pack -q -x - -C there
	diff -r t there/t
	# A stream that ends early gives nothing.
	"${gpg[@]}" -d t.gpg 2>/dev/null | head -c 20000 >short
	expect 2 trace-pack -x short -C nowhere
	one_error trace-pack
	[ -z "$(ls -A nowhere)" ]
}

@test "archives: damage in the events is found when unpacking" {
	make_trace t
	trace-pack -q -o packed t
	/usr/bin/python3 - <<'PY'
data = bytearray(open("packed", "rb").read())
at = data.index(b"TRCK") + 100
data[at] ^= 1
open("bad", "wb").write(data)
PY
	expect 2 trace-pack -x bad -C there
	one_error trace-pack
	[ -z "$(ls -A there)" ]
}
