/*
 * Fuzzing what reads traces.  With clang's -fsanitize=fuzzer -DFUZZING_ENGINE
 * this is a libFuzzer target; without, each argument is a file to read, so
 * that a finding can be looked at with a debugger and a corpus be run as a
 * test.
 *
 * The first byte of an input says what the rest is: a chunk file as it is, a
 * chunk file whose checksums are made right first (random bytes would never
 * get past them), the payload of a single chunk, an index, or a manifest.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/codec.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64];
static int dirfd_ = -1;

static void remove_dir(void)
{
	static const char *const names[] = {"chunks/000000", "index",
					    "manifest.json"};

	for (size_t i = 0; i < 3; i++)
		unlinkat(dirfd_, names[i], 0);
	unlinkat(dirfd_, "chunks", AT_REMOVEDIR);
	rmdir(dir);
}

static void make_manifest(void)
{
	struct tr_manifest m = {.complete = true};
	struct tr_error err;

	if (tr_manifest_write(dirfd_, &m, &err) < 0)
		abort();
}

static void make_dir(void)
{
	if (dirfd_ >= 0)
		return;
	snprintf(dir, sizeof dir, "%s/fuzz_reader.XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(dir))
		abort();
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd_ < 0 || mkdirat(dirfd_, "chunks", 0700) < 0)
		abort();
	atexit(remove_dir);
	make_manifest();
}

static void put_file(const char *name, const uint8_t *data, size_t size)
{
	TR_AUTOCLOSE int fd = openat(dirfd_, name,
				     O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || tr_write_all(fd, data, size) < 0)
		abort();
}

/* Touch every byte that an event leads to, for the sanitizers to see. */
static void use_event(const struct tr_event *ev)
{
	uint64_t sum = 0;

#define USE(b) sum += XXH3_64bits((b).data, (b).len)
	USE(ev->xstate);
	USE(ev->siginfo);
	USE(ev->text);
	USE(ev->sha256);
	for (size_t i = 0; i < ev->nmem; i++)
		USE(ev->mem[i].bytes);
	for (size_t i = 0; i < ev->nmap; i++)
		USE(ev->map[i].name);
	for (size_t i = 0; i < ev->narg; i++)
		USE(ev->arg[i].bytes);
#undef USE
	if (!tr_event_type_name(ev->type) || sum == 1)
		abort();
}

static void read_cursor(struct tr_cursor *c, bool in_order)
{
	const struct tr_event *ev;
	struct tr_error err;
	uint64_t last = 0;
	int r;

	while ((r = tr_cursor_next(c, &ev, &err)) > 0) {
		use_event(ev);
		if (in_order && ev->number < last)
			abort();
		last = ev->number;
	}
	if (r < 0 && !err.text[0])
		abort();
	if (tr_cursor_next(c, &ev, &err) != 0)
		abort();
	tr_cursor_free(c);
}

static void read_trace(void)
{
	struct tr_error err;
	struct tr_reader *r = tr_reader_open(dir, &err);

	if (!r)
		return;
	read_cursor(tr_cursor_all(r), true);
	read_cursor(tr_cursor_from(r, 7), true);
	read_cursor(tr_cursor_stream(r, 1), true);
	tr_reader_close(r);
}

/* Make the checksums of everything that looks like a chunk right. */
static void repair(uint8_t *data, size_t size)
{
	uint64_t chain[4] = {0};
	uint8_t *p = data, *end = data + size;

	while ((p = memmem(p, (size_t)(end - p), TR_CHUNK_MAGIC, 4)) != NULL) {
		uint32_t stored, stream;

		if (end - p < TR_CHUNK_HEADER)
			return;
		stream = tr_get_le32(p + 8);
		stored = tr_get_le32(p + 36);
		if (stored <= (size_t)(end - p) - TR_CHUNK_HEADER)
			tr_put_le64(p + 40, XXH3_64bits(p + TR_CHUNK_HEADER,
							stored));
		tr_put_le64(p + 48, stream < 4 ? chain[stream] : 0);
		tr_put_le64(p + 56, XXH3_64bits(p, 56));
		if (stream < 4)
			chain[stream] = tr_get_le64(p + 56);
		p += 4;
	}
}

static void read_chunk_file(const uint8_t *data, size_t size, bool repaired)
{
	TR_AUTOFREE uint8_t *copy = tr_memdup(data, size);

	if (repaired)
		repair(copy, size);
	unlinkat(dirfd_, "index", 0);
	put_file("chunks/000000", copy, size);
	read_trace();
}

static void read_payload(const uint8_t *data, size_t size)
{
	struct tr_decoder d = {0};
	struct tr_error err;
	struct tr_chunk_header h = {.first = 1, .last = UINT64_MAX};
	TR_AUTOFREE uint8_t *copy = tr_memdup(data, size);

	h.records = (uint32_t)size;
	h.raw_size = (uint32_t)size;
	tr_decoder_begin(&d, &h, copy);
	while (tr_decoder_next(&d, &err) > 0)
		use_event(&d.ev);
	tr_decoder_release(&d);
}

/* An index with the right checksum over an empty chunk file. */
static void read_index(const uint8_t *data, size_t size)
{
	TR_AUTOFREE uint8_t *copy = tr_alloc(size + 8);

	memcpy(copy, data, size);
	tr_put_le64(copy + size, XXH3_64bits(copy, size));
	put_file("chunks/000000", data, size);
	put_file("index", copy, size + 8);
	read_trace();
	unlinkat(dirfd_, "index", 0);
}

static void read_manifest(const uint8_t *data, size_t size)
{
	TR_AUTOFREE uint8_t *copy = tr_alloc(size + 64);
	struct tr_manifest m;
	struct tr_error err;
	int n;

	memcpy(copy, data, size);
	n = snprintf((char *)copy + size, 64,
		     "  \"checksum\": \"%016llx\"\n}\n",
		     (unsigned long long)XXH3_64bits(data, size));
	put_file("manifest.json", copy, size + (size_t)n);
	if (tr_manifest_read(dirfd_, &m, &err) == 0)
		tr_manifest_release(&m);
	make_manifest();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	make_dir();
	if (size == 0)
		return 0;
	switch (data[0] % 5) {
	case 0:
		read_chunk_file(data + 1, size - 1, false);
		break;
	case 1:
		read_chunk_file(data + 1, size - 1, true);
		break;
	case 2:
		read_payload(data + 1, size - 1);
		break;
	case 3:
		read_index(data + 1, size - 1);
		break;
	default:
		read_manifest(data + 1, size - 1);
		break;
	}
	return 0;
}

#ifndef FUZZING_ENGINE
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		TR_AUTOBUF struct tr_buf b = {0};
		struct tr_error err;

		if (tr_read_file(AT_FDCWD, argv[i], 64u << 20, &b, &err) < 0) {
			fprintf(stderr, "fuzz_reader: %s\n", err.text);
			return 2;
		}
		LLVMFuzzerTestOneInput(b.data, b.len);
	}
	return 0;
}
#endif
