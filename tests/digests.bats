#!/usr/bin/env bats
# Digests of the whole state: what is recorded, what replay makes of it, and
# that damage done on purpose is found at the right event, in the right page.

load helpers

# A program that keeps what it reads in a page of its own and never shows it.
setup_file() {
	PATH=$(cd "${BUILD:-$BATS_TEST_DIRNAME/../build}" && pwd)/bin:$PATH
	cd "$BATS_FILE_TMPDIR" || return 1
	printf '%s\n' '#include <fcntl.h>' '#include <unistd.h>' \
		'static char kept[16384] __attribute__((aligned(4096)));' \
		'int main(void) { int fd = open("secret", O_RDONLY);' \
		'kept[4096] = 1;' \
		'if (read(fd, kept + 8192, 100) != 100) return 1;' \
		'for (int i = 0; i < 20; i++) getppid();' \
		'return 0; }' >p.c
	gcc -O1 -no-pie -o p p.c
	head -c 100 /dev/urandom >secret
	trace-record --digest=3 -o a ./p
	trace-record -o default sh -c 'echo one | cat'
}

# states TRACE: the recorded ones, one a line.
states() {
	trace-dump -f json -T state "$1" | jq -c 'select(.event)'
}

# The address of the page that the program reads into.
kept_page() {
	nm "$BATS_FILE_TMPDIR/p" | awk '$3 == "kept" { print $1 }' |
		python3 -c 'print(hex(int(input(), 16) + 8192))'
}

@test "states at exec and exit by default, and none with off" {
	cd "$BATS_FILE_TMPDIR"
	[ "$(states default | wc -l)" -ge 4 ] || fail "$(states default)"
	states default >"$BATS_TEST_TMPDIR/out"
	valid_json "$BATS_TEST_TMPDIR/out"
	states default | jq -e '.root and .registers and .vector and
		(.mappings | length > 3) and (.mappings[0].digest)' >/dev/null
	cd "$BATS_TEST_TMPDIR"
	expect 0 trace-record --digest=off -o o true
	[ "$(states o | wc -l)" = 0 ]
}

@test "states by time" {
	expect 0 trace-record --digest=1ms -o t sh -c \
		'i=0; while [ $i -lt 300 ]; do i=$((i+1)); : </dev/null; done'
	[ "$(states t | wc -l)" -gt 6 ] || fail "$(states t | wc -l) states"
	expect 0 trace-replay t
	# Calls that do not stop the program do not put it off.
	printf '%s\n' '#include <time.h>' '#include <unistd.h>' \
		'int main(void) { struct timespec t;' \
		'do { getppid(); clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);' \
		'} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < 600);' \
		'return 0; }' >c.c
	gcc -o c c.c
	expect 0 trace-record --digest=10ms -o c.t ./c
	[ "$(states c.t | wc -l)" -gt 15 ] ||
		fail "$(states c.t | wc -l) states by time"
	expect 0 trace-replay c.t
	for bad in 0ms ms 5m -3 1e3; do
		expect 125 trace-record --digest=$bad -o x true
		one_error trace-record
	done
}

@test "replay --digests gives the recorded states" {
	cd "$BATS_FILE_TMPDIR"
	for t in a default; do
		states "$t" >"$BATS_TEST_TMPDIR/recorded"
		trace-replay --digests "$t" 2>/dev/null \
			>"$BATS_TEST_TMPDIR/replayed"
		cmp "$BATS_TEST_TMPDIR/recorded" "$BATS_TEST_TMPDIR/replayed"
		trace-replay --digests "$t" 2>/dev/null | trace-diff "$t" -
	done
}

@test "the changed pages are those that were written" {
	page=$(kept_page)
	states "$BATS_FILE_TMPDIR/a" |
		jq -se --arg page "$page" 'any(.[]; .changed < 40 and
			any(.pages[]; .addr == $page))' >/dev/null ||
		fail "no state has $page"
}

@test "a flipped byte of memory is found at the next state, in its page" {
	cd "$BATS_TEST_TMPDIR"
	n=$(trace-dump -f json -s read "$BATS_FILE_TMPDIR/a" |
		jq -s 'map(select(.result == 100)) | .[0].event')
	"$BUILD/tests/alter" "$BATS_FILE_TMPDIR/a" t flip "$n" 50
	cp -r "$BATS_FILE_TMPDIR/a/files" t
	next=$(states t | jq -s --argjson n "$n" \
		'map(select(.event > $n)) | .[0].event')
	expect 0 trace-verify t
	expect 1 trace-replay -f json t
	jq -se --argjson next "$next" --arg page "$(kept_page)" \
		'any(.[]; .type == "divergence" and .event == $next and
			(.detail | contains("page " + $page)) and
			(.what | contains("page " + $page)))' stdout >/dev/null ||
		fail "event $next: $(cat stdout)"
	expect 1 trace-verify --replay -f text t
	has "$output" "page $(kept_page)"
	has "$output" 'replay diverged'
	expect 1 trace-verify --replay -f json t
	valid_json stdout
	jq -se '.[-1].valid and .[-1].replay == "diverged"' stdout >/dev/null
	trace-replay --digests t 2>/dev/null >replayed || true
	expect 1 trace-diff t replayed
}

@test "a dropped event is found where it was" {
	cd "$BATS_TEST_TMPDIR"
	n=$(trace-dump -f json -s getppid "$BATS_FILE_TMPDIR/a" |
		jq -s 'map(select(.event)) | .[-1].event')
	"$BUILD/tests/alter" "$BATS_FILE_TMPDIR/a" t drop "$n"
	cp -r "$BATS_FILE_TMPDIR/a/files" t
	expect 0 trace-verify t
	expect 1 trace-verify --replay -f json t
	jq -se --argjson n "$n" 'any(.[]; .type == "divergence" and
		.event >= $n and .event <= $n + 2)' stdout >/dev/null ||
		fail "event $n: $(cat stdout)"
}

@test "a mapped file that changed is found at the first state, by mapping" {
	cd "$BATS_TEST_TMPDIR"
	cp -r "$BATS_FILE_TMPDIR/a" t
	file=$(trace-dump -f json --files t |
		jq -r 'select(.path? // "" | tostring | endswith("/p")) | .file')
	chmod u+w "t/files/$file"
	printf X | dd of="t/files/$file" bs=1 conv=notrunc status=none seek=64
	first=$(states t | jq -s '.[0].event')
	expect 1 trace-replay -f json t
	jq -se --argjson first "$first" 'any(.[]; .type == "divergence" and
		.event == $first and (.detail | contains("/p: recorded")))' \
		stdout >/dev/null || fail "event $first: $(cat stdout)"
	expect 1 trace-verify --replay -f json t
	jq -se 'any(.[]; .type == "problem") and (.[-1].valid | not)' stdout
	# The original is there, and tells which page it is.
	page=$(trace-dump -f json --maps t | jq -r --argjson f "$file" \
		'select(.file == $f and .offset == 0).start' | head -1)
	expect 1 trace-replay -f json t
	jq -se --arg page "page $page" 'any(.[]; .type == "divergence" and
		(.what | contains($page)) and (.detail | contains(
		"stored file was changed")))' stdout ||
		fail "$page: $(cat stdout)"
	expect 1 trace-verify -f json t
	jq -se 'any(.[]; .offset == 0 and (.what | contains("1 page ")))' stdout
	# One that was changed in the same way tells nothing.
	path=$(trace-dump -f json --files t |
		jq -r --argjson f "$file" 'select(.file == $f).path')
	mv "$path" kept
	cp "t/files/$file" "$path"
	expect 1 trace-verify -f text t
	expect 1 trace-replay -f text t
	mv kept "$path"
	grep '/p: recorded' stderr
	[ "$(grep -c 'page 0x' stderr)" = 0 ]
}

@test "verify --replay: a whole trace is identical" {
	cd "$BATS_FILE_TMPDIR"
	expect 0 trace-verify --replay -f text default
	has "$output" 'replay identical'
	expect 0 trace-verify --replay -q a
	[ -z "$output" ]
	expect 2 trace-verify --replay nothing
}

# alike TRACE: one core and several come to the same verdict and evidence.
alike() {
	trace-replay -n -f json "$1" >one 2>&1 || true
	trace-replay -n -j 3 -f json "$1" >three 2>&1 || true
	jq -c 'del(.processes)' three | cmp - <(jq -c . one) ||
		fail "one: $(cat one)" "three: $(cat three)"
}

@test "programs are replayed on several cores, with the same verdict" {
	alike "$BATS_FILE_TMPDIR/default"
	valid_json three
	jq -e '.identical and .processes == 3 and .tasks > 2' three
	expect 0 trace-verify --replay -j 3 "$BATS_FILE_TMPDIR/default"
	# One program is not divided.
	alike "$BATS_FILE_TMPDIR/a"
	jq -e '.identical and (has("processes") | not)' three
	expect 2 trace-replay -j 2 "$BATS_FILE_TMPDIR/default"
	one_error trace-replay
	expect 2 trace-verify -j 2 "$BATS_FILE_TMPDIR/default"
	one_error trace-verify
}

@test "on several cores a child's divergence is found where it is" {
	n=$(trace-dump -f json -s read "$BATS_FILE_TMPDIR/default" |
		jq -s 'map(select(.result == 4)) | .[0].event')
	"$BUILD/tests/alter" "$BATS_FILE_TMPDIR/default" t flip "$n" 1
	cp -r "$BATS_FILE_TMPDIR/default/files" t
	alike t
	jq -se '.[0].type == "divergence" and .[1].result == "diverged"' three
	expect 1 trace-verify --replay -j 3 t
}

@test "programs that share memory are replayed by one process" {
	printf '%s\n' '#include <fcntl.h>' '#include <sys/mman.h>' \
		'#include <unistd.h>' 'int main(int argc, char **argv) {' \
		'int fd = open("f", O_RDWR); char *p = mmap(0, 4096,' \
		'PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);' \
		'if (argc > 1) { p[1] = 7; execl(argv[0], argv[0], (char *)0); }' \
		'return p[1]; }' >s.c
	gcc -o s s.c
	truncate -s 4096 f
	expect 7 trace-record -o t sh -c '/bin/true; ./s w'
	for _ in 1 2 3; do
		alike t
		jq -e '.exit_code == 7' three
	done
}

# Without the kernel's help the same digests come out.
@test "digests do not depend on how they are computed" {
	cd "$BATS_FILE_TMPDIR"
	states a >"$BATS_TEST_TMPDIR/recorded"
	TRACE_FAULT=pagemap-scan=eopnotsupp,userfaultfd=eacces \
		trace-replay --digests a 2>/dev/null |
		cmp - "$BATS_TEST_TMPDIR/recorded"
}

# What the kernel tells of written pages it tells once: points inside
# computations and states must not take it from each other.
@test "points and tracked states of one large process agree with the replay" {
	cat >p.py <<-'END'
		import threading
		ballast = bytearray(80 << 20)
		def work(k):
		    s = 0
		    for i in range(60000):
		        s = (s * 31 + i) & 0xffffff
		        ballast[(s * 4096 + k) % len(ballast)] = i & 255
		    out[k] = s
		out = [0] * 3
		threads = [threading.Thread(target=work, args=(k,))
		           for k in range(3)]
		for t in threads:
		    t.start()
		for t in threads:
		    t.join()
		print(out, sum(ballast))
	END
	(in_session 100 trace-record --digest=20ms --slice=5 --max-defer=1 -o t \
		/usr/bin/python3 p.py >rec.out)
	replays 0
	cmp rec.out rep.out
	[ "$(trace-dump -f json -T async t | grep -c '"type":"async"')" -ge 3 ]
	[ "$(states t | wc -l)" -ge 6 ]
}
