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

@test "archives: encrypted in a pipe, by age" {
	command -v age >/dev/null || skip 'no age'
	make_trace t
	age-keygen -o key 2>/dev/null
	trace-pack --compress=zstd -o - t |
		age -r "$(age-keygen -y key)" >t.age
	age -d -i key t.age | trace-pack -q -x - -C there
	diff -r t there/t
	head -c 20000 t.age | age -d -i key >short 2>/dev/null || true
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

# rewrite TRACE CODE: change the manifest, whose members are in m, and sign it.
rewrite() {
	/usr/bin/python3 - "$1/manifest.json" "$2" <<'PY'
import json, sys, xxhash
path, code = sys.argv[1:]
m = json.load(open(path))
del m["checksum"]
exec(code)
text = json.dumps(m, indent=1)[:-2] + ",\n"
sum = xxhash.xxh3_64_hexdigest(text.encode())
open(path, "w").write(text + '  "checksum": "%s"\n}\n' % sum)
PY
}

@test "other machines: what the processor lacks is named" {
	make_trace t
	expect 0 trace-replay t
	case $stderr in *processor*) fail "$stderr" ;; esac
	rewrite t 'm["cpu_flags"] += " amx_tile avx512_fp16 nonsense"'
	if grep -q -w amx_tile /proc/cpuinfo; then skip 'it has them'; fi
	expect 0 trace-replay t
	has "$stderr" "lacks what the recording's had: amx_tile avx512_fp16"
	rewrite t 'm["xcr0"] = "0x60003"'
	expect 0 trace-replay t
	has "$stderr" 'xsave-layout(0x60003,here:0x'
	# What the program was held to is all that it needs.
	rewrite t 'm["portable"] = "x86-64-v2"'
	expect 0 trace-replay t
	case $stderr in *processor*) fail "$stderr" ;; esac
}

@test "other machines: --portable holds the program to a level" {
	cat >level.c <<'C'
#include <cpuid.h>
#include <stdio.h>
int main(void)
{
	unsigned a, b, c, d;

	__builtin_cpu_init();
	__cpuid_count(7, 0, a, b, c, d);
	printf("%d %d %d %u\n", !!__builtin_cpu_supports("sse4.2"),
	       !!__builtin_cpu_supports("avx2"),
	       !!__builtin_cpu_supports("avx512f"), b >> 5 & 1);
	return 0;
}
C
	cc -o level level.c
	while read -r option want; do
		rm -rf t
		trace-record "$option" -o t ./level >out
		[ "$(cat out)" = "$want" ] || fail "$option: $(cat out)"
		trace-replay -q t >rep
		cmp out rep
		expect 0 trace-verify t
	done <<-END
		--portable 1 0 0 0
		--portable=x86-64-v1 0 0 0 0
		--portable=x86-64-v2 1 0 0 0
	END
	trace-dump --header t | jq -e '.portable == "x86-64-v2"'
	trace-dump -f text --header t | grep -q '^portable  x86-64-v2$'
	expect 125 trace-record --portable=pentium -o u ./level
	one_error trace-record
	[ ! -e u ]
}

@test "other machines: --portable names what it does not hold" {
	cat >jit.c <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
	unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, "\xb8\x07\0\0\0\xc3", 6); /* mov $7, %eax; ret */
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	printf("%d %lu\n", ((int (*)(void))code)(), getauxval(AT_HWCAP2));
	return 0;
}
C
	cat >odd.s <<'S'
	.text
	.globl main
main:	xor %eax, %eax
	ret
	.byte 0x06, 0x0f, 0xa2 # behind what is no code
	.section .note.GNU-stack,"",@progbits
S
	cc -o jit jit.c
	cc -o odd odd.s
	strip odd
	expect 0 trace-record --portable -o t sh -c \
		'./jit; ./odd; ./jit; grep -c . /proc/cpuinfo >/dev/null'
	# Once each, in one line; the auxiliary vector tells nothing either.
	has "$output" '7 0'
	[ "$(wc -l <<<"$stderr")" = 1 ]
	has "$stderr" '--portable does not hold code that jit makes, 1 place in odd that may be CPUID, /proc/cpuinfo, which grep reads'
	expect 0 trace-replay t
	expect 0 trace-record -o u --portable=x86-64-v3 true
	has "$stderr" 'the layout of XSAVE (XCR0 0x'
	# Nothing to name, or nobody has asked.
	expect 0 trace-record -o v --portable ls /
	[ -z "$stderr" ] || fail "$stderr"
	expect 0 trace-record -o w ./jit
	[ -z "$stderr" ] || fail "$stderr"
}

@test "other machines: replay where /usr is empty" {
	[ "$(id -u)" = 0 ] || skip 'needs root for a mount namespace'
	trace-record -o t sh -c 'ls /usr; python3 -c "print(6 * 7)"' >out
	trace-pack -q t
	mkdir -p root/{lib64,tools,proc,usr,dev,tmp,t}
	for lib in $(ldd "$BUILD/bin/trace-replay" | grep -o '/[^ ]*'); do
		cp "$lib" root/tools/
	done
	cp "$BUILD/bin/trace-replay" root/tools/
	unshare -m sh -c '
		mount --bind t root/t && mount -t proc proc root/proc &&
		mount --bind /dev root/dev && exec chroot root \
		/tools/ld-linux-x86-64.so.2 --library-path /tools \
		/tools/trace-replay /t' >rep 2>err || fail "$(cat err)"
	cmp out rep
	grep -q identical err
}

@test "redacted: structure without contents" {
	echo 'the secret word' >secret
	LC_ALL=hush trace-record -o t --label name=hush sh -c \
		'read -r a <secret; echo "$a" | tr a-z n-za-m' >out
	trace-pack --redact skeleton t
	expect 0 trace-verify skeleton
	trace-dump skeleton >events
	grep -v '"header"' events >rest
	valid_json events
	[ "$(trace-dump --stats t | jq -c 'select(.name) | [.name, .count]')" = \
		"$(trace-dump --stats skeleton |
			jq -c 'select(.name) | [.name, .count]')" ]
	trace-dump --header skeleton | jq -e '.redacted and .stopped_at == 1 and .host == ""'
	trace-dump -v skeleton >all
	for word in secret hush 'gur frperg' /usr/ "$PWD" dash; do
		grep -q -F -e "$word" t/manifest.json <(trace-dump -v t) ||
			fail "$word was not even there"
		if grep -q -F -e "$word" all skeleton/manifest.json; then
			fail "$word is still there: $(grep -F -m 1 "$word" all)"
		fi
	done
	[ -z "$(ls -A skeleton/files)" ]
	expect 2 trace-replay skeleton
	one_error trace-replay
	has "$stderr" 'contents were taken out'
	# It can be packed like any other.
	trace-pack -q -o packed skeleton
	trace-pack -q -x packed -C there
	diff -r skeleton there/skeleton
	trace-pack -q skeleton
	expect 0 trace-verify skeleton
	expect 2 trace-pack --redact skeleton t
	one_error trace-pack
}

@test "expired traces: shown, pruned on demand only" {
	mkdir all
	for when in 1h 2d 3w 2199-12-31 2199-12-31T23:59:59Z; do
		trace-record --expires=$when -o "all/$when" true
		trace-dump --header "all/$when" | jq -e '.expires > .start'
	done
	trace-dump -f text --header all/2199-12-31 |
		grep -q '^expires   2199-12-31T00:00:00Z$'
	for when in 0d 3 -1d 1m 2001-01-01 tomorrow 99999999999999d; do
		expect 125 trace-record --expires=$when -o no true
		one_error trace-record
	done
	trace-record -o all/forever true
	trace-record -o all/over --expires=1h true
	rewrite all/over 'm["expires_ns"] = 1000000000000000000'
	mkdir all/other
	echo mine >all/other/file
	ln -s over all/latest
	trace-pack --prune all >out
	valid_json out
	[ "$(jq -r .path out)" = all/over ]
	jq -e '.removed == false' out
	[ -d all/over ]
	# Killed in between, it is not there by name, and goes next time.
	(TRACE_FAULT=prune=kill exec trace-pack --prune all --force) || true
	[ ! -e all/over ]
	[ -d all/.pruned-over ]
	trace-pack --prune all --force
	[ "$(find all -maxdepth 1 | sort | tr '\n' ' ')" = "all all/1h \
all/2199-12-31 all/2199-12-31T23:59:59Z all/2d all/3w all/forever all/latest \
all/other " ]
	expect 2 trace-pack --prune nowhere
	one_error trace-pack
}

@test "a linked file that changed is named before anything is replayed" {
	cp /bin/echo ./mine
	trace-record -o t ./mine hello
	id=$(trace-dump --files t | jq -r 'select(.path | endswith("/mine")).file')
	# As if there had been only links, and somebody wrote to the original.
	chmod u+w "t/files/$id"
	printf x | dd of="t/files/$id" bs=1 seek=100 conv=notrunc status=none
	expect 1 trace-verify t
	has "$output" '/mine: changed since it was recorded'
	truncate -s +1 "t/files/$id"
	expect 2 trace-replay t
	one_error trace-replay
	has "$stderr" '/mine: changed since it was recorded'
	rm "t/files/$id"
	expect 2 trace-replay t
	one_error trace-replay
	has "$stderr" '/mine'
}

@test "a terabyte of holes costs nothing anywhere" {
	trace-record -o t "$BUILD/workloads/sparse_memfd"
	[ "$(du -sk t | cut -f 1)" -lt 10000 ]
	trace-dump --files t >files
	valid_json files
	jq -e 'select(.pages_sha256 and .size == 1099511627776)' files
	trace-pack -q -o packed t
	[ "$(stat -c %s packed)" -lt 10000000 ]
	trace-pack -q --compress=zstd -o - t | trace-pack -q -x - -C there
	[ "$(du -sk there | cut -f 1)" -lt 10000 ]
	expect 0 trace-verify there/t
	expect 0 trace-replay there/t
	# The same bytes, though elsewhere the holes may be others.
	trace-pack -q there/t
	cp there/t/manifest.json t/manifest.json
	trace-pack -q -o one t
	trace-pack -q -o two there/t
	cmp one two
	# A page that changes is found.
	id=$(jq -s 'map(select(.pages_sha256))[0].file' files)
	chmod u+w "t/files/$id"
	printf x | dd of="t/files/$id" bs=1 seek=700000000000 conv=notrunc \
		status=none
	expect 1 trace-verify t
	has "$output" 'changed since it was recorded'
}

@test "archives are read where they are: dump and verify" {
	make_trace t
	trace-record -o u ls / >/dev/null
	trace-pack -q -o one t
	trace-pack -q -o two t u
	for name in one two/t; do
		for option in -v --files --tasks --maps; do
			diff <(trace-dump $option t | grep -v '"header"') \
				<(trace-dump $option $name | grep -v '"header"')
		done
		trace-dump --header $name | jq -e '.complete and .lost_bytes == 0'
		trace-verify t >verdict
		trace-verify $name | diff verdict -
	done
	trace-verify u >verdict
	trace-verify two/u | diff verdict -
	expect 2 trace-dump two
	one_error trace-dump
	has "$stderr" 'several traces'
	expect 2 trace-dump two/none
	one_error trace-dump
	# Left out files are missed, damage is found, an end that is not there too.
	trace-dump --files t | head -n 1 | trace-pack -q --files-from - -o less t
	expect 1 trace-verify less
	has "$output" missing
	at=$(grep -a -b -o TRCK one | head -n 1 | cut -d : -f 1)
	printf x | dd of=one bs=1 seek=$((at + 100)) conv=notrunc status=none
	expect 1 trace-verify one
	has "$output" checksum
	head -c 100000 two >short
	expect 1 trace-verify short/t
}

# Nothing that a tool needed for a while is there afterwards.
nothing_left() {
	for _ in $(seq 100); do
		[ -n "$(ls -A tmp)" ] || return 0
		sleep 0.05
	done
	ls -lR tmp
	return 1
}

@test "archives: every tool reads them, compressed or not" {
	mkdir tmp
	# shellcheck disable=SC2030 # of this test
	export TMPDIR=$PWD/tmp
	make_trace t
	trace-record -o u ls / >/dev/null
	trace-dump t | sed 1d >events
	for end in tar gz xz zst; do
		trace-pack -q -o one.$end t
		trace-pack -q -o two.$end t u
		for name in one.$end two.$end/t; do
			trace-dump "$name" | sed 1d | cmp - events
			expect 0 trace-verify --replay "$name"
			has "$output" '"replay":"identical"'
			expect 0 trace-replay -f json "$name"
			has "$output" '"identical":true'
			expect 0 trace-diff t "$name"
			nothing_left
		done
	done
	expect 1 trace-diff --memory -f text two.zst/t two.gz/u
	has "$output" '@@ state'
	trace-dump one.xz | trace-diff - one.zst
	expect 2 trace-replay two.gz
	one_error trace-replay
	has "$stderr" 'several traces'
	expect 2 trace-replay two.gz/none
	one_error trace-replay
	for command in 'trace-pack -o three' trace-pack; do
		# shellcheck disable=SC2086
		expect 2 $command one.tar
		has "$stderr" 'trace-pack -x unpacks'
	done
	# A damaged one is not half read.
	head -c 20000 one.zst >short.zst
	expect 2 trace-dump short.zst
	one_error trace-dump
	expect 2 trace-replay short.zst
	one_error trace-replay
	nothing_left
	# No room for it.
	expect 2 env TRACE_FAULT=decompress-write=enospc trace-dump one.gz
	one_error trace-dump
	has "$stderr" 'No space left'
	expect 2 env TMPDIR="$PWD/none" trace-replay one.tar
	one_error trace-replay
	has "$stderr" "$PWD/none"
}

@test "archives: what a replay unpacked goes when it is killed" {
	mkdir tmp
	# shellcheck disable=SC2031
	export TMPDIR=$PWD/tmp
	trace-record -o t sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1))
		done'
	trace-pack -q -o one.tar t
	for signal in KILL TERM INT; do
		trace-replay -q one.tar &
		job=$!
		for _ in $(seq 200); do
			[ -n "$(ls -A tmp)" ] && break
			sleep 0.02
		done
		[ -n "$(ls -A tmp)" ]
		sleep 0.1
		kill -$signal $job
		wait $job || true
		nothing_left
	done
}
