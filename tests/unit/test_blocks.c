/* Memory that is stored once, however many events have it. */
#include "libtrace/format/blocks.h"

#include "tests/unit/check.h"
#include "tests/unit/sample.h"

#include "libtrace/format/codec.h"
#include "libtrace/format/index.h"
#include "libtrace/format/reader.h"

enum { SIZE = 20000, CONTENTS = 40, EVENTS = 1000, STREAMS = 4 };

static uint8_t contents[CONTENTS][SIZE];

static void fill_contents(void)
{
	uint64_t x = 1;

	for (unsigned i = 0; i < CONTENTS; i++)
		for (unsigned k = 0; k < SIZE; k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			contents[i][k] = (uint8_t)(x >> 56);
		}
}

/* Event i reads: few bytes, one of the contents, few bytes, another one. */
struct event {
	struct tr_event ev;
	struct tr_mem mem[4];
};

static void make_event(struct event *e, uint64_t i)
{
	uint8_t *one = contents[i % CONTENTS];
	uint8_t *other = contents[(i + 1 + i / CONTENTS) % CONTENTS];

	*e = (struct event){
		.ev = {.type = TR_EV_SYSCALL, .number = i,
		       .stream = (uint32_t)(i % STREAMS), .task = 1,
		       .nmem = 4},
		.mem = {{4096 * i, {one, 10}}, {1 << 20, {one, SIZE}},
			{77, {other, 20}}, {(1 << 20) + 5, {other, SIZE}}},
	};
	e->ev.mem = e->mem;
	tr_event_mark(&e->ev, TR_F_MEM);
}

static void make_trace(const char *path)
{
	TR_AUTOCLOSE int dirfd = -1;
	struct tr_manifest m = {.complete = true};
	struct tr_error err;
	struct tr_writer *w;
	struct event e;

	sample_remove(path);
	if (mkdir(path, 0700) < 0)
		abort();
	dirfd = open(path, O_RDONLY | O_DIRECTORY);
	sample_must(tr_manifest_write(dirfd, &m, &err), &err);
	w = tr_writer_open_with(
		dirfd, &(struct tr_writer_options){.block_size = 4096}, &err);
	sample_must(w ? 0 : -1, &err);
	for (uint64_t i = 1; i <= EVENTS; i++) {
		make_event(&e, i);
		sample_must(tr_writer_put(w, &e.ev, &err), &err);
	}
	sample_must(tr_writer_close(w, NULL, &err), &err);
}

static bool same_memory(const struct tr_event *a, const struct tr_event *b)
{
	if (a->nmem != b->nmem || a->has != b->has)
		return false;
	for (size_t i = 0; i < a->nmem; i++)
		if (a->mem[i].addr != b->mem[i].addr ||
		    a->mem[i].bytes.len != b->mem[i].bytes.len ||
		    memcmp(a->mem[i].bytes.data, b->mem[i].bytes.data,
			   b->mem[i].bytes.len) != 0)
			return false;
	return true;
}

/* How many events are right before the cursor's end or damage. */
static uint64_t read_events(struct tr_cursor *c, uint64_t from, int *result,
			    struct tr_error *err)
{
	const struct tr_event *ev;
	uint64_t n = 0;
	struct event e;

	while ((*result = tr_cursor_next(c, &ev, err)) > 0) {
		make_event(&e, from + n);
		if (ev->number != from + n || !same_memory(ev, &e.ev))
			break;
		n++;
	}
	tr_cursor_free(c);
	return n;
}

static void test_stored_once(void)
{
	const struct tr_chunk_ref *refs;
	struct tr_error err;
	struct tr_reader *r;
	uint64_t blocks = 0, bytes = 0;
	int result;
	size_t n;

	make_trace("t");
	r = tr_reader_open("t", &err);
	sample_must(r ? 0 : -1, &err);
	CHECK(tr_reader_complete(r));
	CHECK(tr_reader_stream_count(r) == STREAMS);
	n = tr_reader_chunks(r, &refs);
	for (size_t i = 0; i < n; i++)
		if (refs[i].stream == TR_BLOCK_STREAM) {
			blocks += refs[i].records;
			bytes += refs[i].raw_size;
		}
	CHECK(blocks == CONTENTS);
	CHECK(bytes > CONTENTS * SIZE && bytes < CONTENTS * (SIZE + 32));
	CHECK(read_events(tr_cursor_all(r), 1, &result, &err) == EVENTS);
	CHECK(result == 0);
	CHECK(read_events(tr_cursor_from(r, 777), 777, &result, &err) ==
	      EVENTS - 776);
	tr_reader_close(r);
}

static void flip(const char *path, uint64_t offset)
{
	TR_AUTOCLOSE int fd = open(path, O_RDWR);
	uint8_t byte;

	CHECK(pread(fd, &byte, 1, (off_t)offset) == 1);
	byte ^= 1;
	CHECK(pwrite(fd, &byte, 1, (off_t)offset) == 1);
}

/* The events before the first that names a block of a damaged chunk stand. */
static void test_damaged(void)
{
	const struct tr_chunk_ref *refs;
	struct tr_error err;
	struct tr_reader *r;
	int result;
	size_t n;

	for (unsigned which = 0; which < 2; which++) {
		unsigned seen = 0;

		make_trace("t");
		r = tr_reader_open("t", &err);
		sample_must(r ? 0 : -1, &err);
		n = tr_reader_chunks(r, &refs);
		for (size_t i = 0; i < n; i++) {
			if (refs[i].stream != TR_BLOCK_STREAM ||
			    seen++ != which)
				continue;
			flip("t/chunks/000000", refs[i].offset + 64 + 9);
			uint64_t good = read_events(tr_cursor_all(r), 1,
						    &result, &err);
			CHECK(result < 0 && err.code == TR_ECORRUPT);
			CHECK(strstr(err.text, ": block "));
			CHECK(which ? good > 5 && good < CONTENTS : good == 0);
		}
		CHECK(seen > which);
		tr_reader_close(r);
	}
}

/* Without the index a chunk whose header is damaged is lost, and its blocks
 * are missing. */
static void test_missing(void)
{
	const struct tr_chunk_ref *refs;
	struct tr_error err;
	struct tr_reader *r;
	int result;

	make_trace("t");
	r = tr_reader_open("t", &err);
	sample_must(r ? 0 : -1, &err);
	tr_reader_chunks(r, &refs);
	CHECK(refs[0].stream == TR_BLOCK_STREAM);
	flip("t/chunks/000000", 20);
	tr_reader_close(r);
	CHECK(unlink("t/index") == 0);
	r = tr_reader_open("t", &err);
	sample_must(r ? 0 : -1, &err);
	CHECK(!tr_reader_complete(r));
	CHECK(read_events(tr_cursor_all(r), 1, &result, &err) == 0);
	CHECK(result < 0 && strstr(err.text, "block 1: it is missing"));
	tr_reader_close(r);
}

/* Lists that writers do not make: neither encoded nor decoded. */
static bool accepts(const struct tr_block_use *uses, size_t n, const void *end,
		    size_t nend)
{
	uint8_t byte = 0;
	struct tr_mem mem[20] = {{4096, {&byte, 1}}};
	struct tr_event ev = {.type = TR_EV_SYSCALL, .number = 1, .mem = mem,
			      .nmem = 20};
	TR_AUTOBUF struct tr_buf list = {0}, out = {0};
	struct tr_codec codec = {0};
	struct tr_error err;
	size_t next = 0;
	bool ok;

	mem[19].addr = UINT64_MAX - 10;
	for (size_t i = 0; i < n; i++)
		tr_block_list_put(&list, &next, &uses[i]);
	tr_buf_put(&list, end, nend);
	ev.blocks = (struct tr_bytes){list.data, list.len};
	tr_event_mark(&ev, TR_F_MEM);
	tr_event_mark(&ev, TR_F_BLOCKS);
	tr_codec_begin(&codec, 1);
	ok = tr_encode(&codec, &ev, &out, &err) == 0;
	tr_codec_release(&codec);
	return ok;
}

static void test_limits(void)
{
	const struct tr_block_use good[] = {{1, 5, TR_MEM_PIECE},
					    {18, UINT64_MAX, 1}};
	const struct tr_block_use bad[] = {
		{0, 1, 5},                /* has bytes of its own */
		{20, 1, 5},               /* no such memory */
		{1, 0, 5},                /* no such block */
		{1, 1, 0}, {1, 1, TR_MEM_PIECE + 1},
		{19, 1, 11},              /* wraps around */
		{(size_t)-1, 1, 1},
	};
	struct tr_block_use many[9];

	CHECK(accepts(good, 2, NULL, 0));
	CHECK(!accepts(good, 2, "\1", 1));
	CHECK(!accepts(good, 2, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(!accepts(&bad[i], 1, NULL, 0));
	for (size_t i = 0; i < 9; i++)
		many[i] = (struct tr_block_use){i + 1, 1, TR_MEM_PIECE};
	CHECK(accepts(many, 8, NULL, 0));
	CHECK(!accepts(many, 9, NULL, 0));
}

/* A block is one piece of memory, in its stream and nowhere else. */
static void test_place(void)
{
	struct tr_mem mem[2] = {{0, {"x", 1}}, {0, {"y", 1}}};
	struct tr_event ev = {.type = TR_EV_BLOCK, .number = 1, .mem = mem,
			      .nmem = 1, .stream = TR_BLOCK_STREAM};
	TR_AUTOBUF struct tr_buf out = {0};
	struct tr_codec codec = {0};
	struct tr_error err;

	tr_event_mark(&ev, TR_F_MEM);
	tr_codec_begin(&codec, 1);
	CHECK(tr_encode(&codec, &ev, &out, &err) == 0);
	ev.nmem = 2;
	CHECK(tr_encode(&codec, &ev, &out, &err) < 0);
	ev.nmem = 1;
	ev.stream = 1;
	CHECK(tr_encode(&codec, &ev, &out, &err) < 0);
	ev.type = TR_EV_MORE;
	CHECK(tr_encode(&codec, &ev, &out, &err) == 0);
	ev.stream = TR_BLOCK_STREAM;
	CHECK(tr_encode(&codec, &ev, &out, &err) < 0);
	tr_codec_release(&codec);
}

int main(void)
{
	sample_init();
	fill_contents();
	RUN(test_stored_once);
	RUN(test_damaged);
	RUN(test_missing);
	RUN(test_limits);
	RUN(test_place);
	return check_status();
}
