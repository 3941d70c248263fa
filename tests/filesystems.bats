#!/usr/bin/env bats
# The file store on real filesystems, made in loop devices: which method, what
# it costs in blocks, and that it replays everywhere.

load helpers

teardown() {
	cd /
	while read -r place; do
		umount "$place" 2>/dev/null || umount -l "$place"
	done < <(awk -v t="$BATS_TEST_TMPDIR/" 'index($2, t) == 1 { print $2 }' \
		/proc/mounts | sort -r)
}

# on_filesystem TYPE [MKFS-OPTION...]: a new one, in fs.
on_filesystem() {
	local type=$1
	shift
	[ "$(id -u)" = 0 ] || skip 'needs root to mount'
	command -v "mkfs.$type" >/dev/null || skip "no mkfs.$type"
	truncate -s 512M image
	"mkfs.$type" -q "$@" image >mkfs.log 2>&1 || fail "$(cat mkfs.log)"
	mkdir fs
	mount -o loop image fs 2>mount.log ||
		skip "cannot mount $type: $(head -n 1 mount.log)"
}

# Megabytes in use where $1 is.
used() {
	sync -f "$1"
	btrfs filesystem sync "$1" >/dev/null 2>&1 || true
	df --output=used -B 1M "$1" | tail -n 1 | tr -d ' '
}

# A program of 64 MB, which maps itself, below the directory.
big_program() {
	cp "$BUILD/workloads/map_files" "$1/program"
	dd if=/dev/urandom of="$1/program" bs=1M count=64 oflag=append \
		conv=notrunc status=none
}

methods() {
	trace-dump --files "$1" | jq -r .method | sort -u | tr '\n' ' '
}

# Record there, replay there, pack in place, carry elsewhere and back.
whole_life() {
	local dir=$1
	trace-record -o "$dir/t" "$dir/program" >rec.out ||
		fail "status $?: $(cat rec.out)"
	(cd "$dir" && trace-replay t >rep.out 2>rep.err) ||
		fail "$(tail -n 5 "$dir/rep.err")"
	cmp rec.out "$dir/rep.out"
	expect 0 trace-verify "$dir/t"
	trace-pack -q "$dir/t"
	expect 0 trace-verify "$dir/t"
	trace-pack -q -o packed "$dir/t"
	trace-pack -q -x packed -C "$dir/there"
	diff -r "$dir/t" "$dir/there/t"
	expect 0 trace-replay "$dir/there/t"
}

clones_are_free() {
	big_program fs
	before=$(used fs)
	trace-record -o fs/t fs/program >rec.out
	after=$(used fs)
	trace-dump --files fs/t |
		jq -s -e 'map(select(.path | endswith("/program")))[0].method == "clone"'
	[ $((after - before)) -lt 30 ] || fail "recording took $before..$after MB"
	before=$after
	trace-pack -q fs/t
	trace-pack -q -o packed fs/t
	trace-pack -x packed -C fs/there >out
	jq -e '.cloned_bytes > 64000000' out
	after=$(used fs)
	[ $((after - before)) -lt 30 ] || fail "unpacking took $before..$after MB"
	diff -r fs/t fs/there/t
	expect 0 trace-replay fs/there/t
	# A second trace of the same files, packed in place with the first.
	cp --reflink=never -r fs/t fs/u
	before=$(used fs)
	[ $((before - after)) -gt 50 ]
	trace-pack fs/t fs/u >out
	jq -e '.shared_bytes > 64000000' out
	after=$(used fs)
	[ $((before - after)) -gt 50 ] || fail "sharing freed $before..$after MB"
	expect 0 trace-verify fs/u
	# A clone is a file of its own.
	printf x | dd of=fs/program bs=1 seek=40000000 conv=notrunc status=none
	expect 0 trace-verify fs/t
}

# What is read in large pieces, from wherever in the file, shares its blocks with
# the file, until that is changed.
reads_are_free() {
	need perl
	head -c 60000000 /dev/urandom >fs/data
	before=$(used fs)
	# In blocks; at odd places; in a process that moves the place of another;
	# over the end of the file; at places of its own.
	# shellcheck disable=SC2016
	trace-record -o fs/t sh -c '
		dd bs=64k <fs/data >/dev/null 2>&1
		(dd bs=5000 count=1; dd bs=130001) <fs/data >/dev/null 2>&1
		perl -e "
			open F, q(fs/data); \$ok = 1;
			for my \$i (1 .. 150) {
				sysread F, \$b, 100000;
				unless (\$pid = fork) { sysseek F, 4096, 1; exit }
				waitpid \$pid, 0;
			}
			print length \$b, qq(\\n);"
		tail -c 100000 fs/data | cksum' >rec.out 2>rec.err ||
		fail "$(tail -n 5 rec.err)"
	after=$(used fs)
	[ $((after - before)) -lt 40 ] || fail "recording took $before..$after MB"
	size=$(du -s --apparent-size -B 1M fs/t/chunks | cut -f 1)
	[ "$size" -gt 100 ] || fail "$size MB are not what was read"
	tr '\0' x <fs/data | dd of=fs/data bs=1M conv=notrunc status=none
	expect 0 trace-verify fs/t
	trace-replay fs/t >rep.out 2>rep.err || fail "$(tail -n 5 rep.err)"
	cmp rec.out rep.out
	/usr/bin/python3 "$SOURCE/tests/decoder/tracedecode.py" fs/t >decoded ||
		fail "the decoder: status $?"
	# Where cloning fails, the trace is the same but for its size on disk.
	TRACE_FAULT=chunk-clone trace-record -o fs/u dd bs=64k if=fs/data \
		of=/dev/null 2>rec.err || fail "$(tail -n 5 rec.err)"
	expect 0 trace-verify fs/u
	expect 0 trace-replay fs/u
}

@test "btrfs: data that is read takes no space" {
	on_filesystem btrfs
	reads_are_free
}

@test "XFS: data that is read takes no space" {
	on_filesystem xfs -m reflink=1
	reads_are_free
}

@test "btrfs: clones take no space" {
	on_filesystem btrfs
	clones_are_free
}

@test "XFS: clones take no space" {
	on_filesystem xfs -m reflink=1
	clones_are_free
}

@test "XFS without reflink: copies" {
	on_filesystem xfs -m reflink=0
	cp "$BUILD/workloads/map_files" fs/program
	whole_life fs
	[ "$(methods fs/t)" = 'copy ' ]
}

@test "ext4: copies" {
	on_filesystem ext4
	cp "$BUILD/workloads/map_files" fs/program
	whole_life fs
	[ "$(methods fs/t)" = 'copy ' ]
}

@test "tmpfs: copies" {
	[ "$(id -u)" = 0 ] || skip 'needs root to mount'
	mkdir fs
	mount -t tmpfs -o size=300m none fs || skip 'cannot mount tmpfs'
	cp "$BUILD/workloads/map_files" fs/program
	whole_life fs
}

@test "overlayfs: files of both layers" {
	[ "$(id -u)" = 0 ] || skip 'needs root to mount'
	mkdir lower base fs
	# A layer cannot be on an overlay itself.
	mount -t tmpfs none base || skip 'cannot mount tmpfs'
	mkdir base/{lower,upper,work}
	cp "$BUILD/workloads/map_files" base/lower/program
	mount -t overlay -o "lowerdir=base/lower,upperdir=base/upper,workdir=base/work" \
		none fs || skip 'cannot mount overlayfs'
	whole_life fs
	# And once the file is in the upper layer.
	touch fs/program
	rm -rf fs/t fs/there packed
	whole_life fs
}

@test "a disk that fills while recording: the program is not disturbed" {
	on_filesystem ext4
	for size in 1M 4k; do
		dd if=/dev/zero of=fs/fill.$size bs=$size status=none \
			2>/dev/null || true
	done
	cp "$BUILD/workloads/map_files" program
	rm -rf fs/t
	got=0
	trace-record -o fs/t ./program >rec.out 2>rec.err || got=$?
	[ $got = 0 ] || [ $got = 125 ] || fail "status $got: $(cat rec.err)"
	[ $got = 125 ] || expect 1 trace-verify fs/t
}

@test "deleted files, O_TMPFILE, files that change while mapped" {
	cat >corners.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define CHECK(c) do { if (!(c)) { perror(#c); return 1; } } while (0)

int main(void)
{
	int fd = open(".", O_TMPFILE | O_RDWR, 0600), gone;
	char *p, *q;

	CHECK(fd >= 0 && write(fd, "nameless", 9) == 9);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED && strcmp(p, "nameless") == 0);
	CHECK(pwrite(fd, "N", 1, 0) == 1 && *p == 'N');
	gone = open("gone", O_RDWR | O_CREAT, 0600);
	CHECK(gone >= 0 && write(gone, "deleted", 8) == 8);
	CHECK(unlink("gone") == 0);
	q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, gone, 0);
	CHECK(q != MAP_FAILED && strcmp(q, "deleted") == 0);
	/* Written through one name, mapped again: another content. */
	CHECK(pwrite(fd, "changed", 8, 0) == 8 && strcmp(p, "changed") == 0);
	q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(q != MAP_FAILED && strcmp(q, "changed") == 0);
	CHECK(ftruncate(fd, 2) == 0 && strcmp(p, "ch") == 0);
	CHECK(ftruncate(fd, 4096) == 0 && strcmp(p, "ch") == 0);
	puts(p);
	return 0;
}
C
	cc -o corners corners.c
	from='' same 0 "$PWD/corners"
	trace-dump --files t | jq -r .path >paths
	grep -q '/gone (deleted)$' paths
	trace-pack -q t
	trace-pack -q -o packed t
	trace-pack -q -x packed -C there
	diff -r t there/t
	expect 0 trace-replay there/t
}
