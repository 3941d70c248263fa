/* The trace format: what is written is read, what is damaged is noticed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "libtrace/base/io.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/codec.h"
#include "libtrace/format/deflate.h"
#include "libtrace/format/index.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/reader.h"
#include "libtrace/format/writer.h"
#include "tests/unit/check.h"
#include "tests/unit/golden.h"
#include "tests/unit/synthetic.h"

static bool check_bool(bool ok, int line, const char *what)
{
	if (!ok) {
		check_failed_now = 1;
		printf("# %s:%d: %s\n", __FILE__, line, what);
	}
	return ok;
}

/* A check as an expression, and one without which a test cannot go on. */
#define HOLDS(cond) check_bool((cond), __LINE__, #cond)
#define REQUIRE(cond)                                                      \
	do {                                                               \
		if (!HOLDS(cond))                                          \
			return;                                            \
	} while (0)

static char base[64]; /* scratch directory */
static struct synthetic syn;

/*
 * ---- Traces on disk ----
 */

static void remove_tree(const char *dir)
{
	TR_AUTOFREE char *command = tr_printf("rm -rf '%s'", dir);

	if (system(command) != 0)
		printf("# cannot remove %s\n", dir);
}

static int new_dir(const char *name, char *path, size_t room)
{
	snprintf(path, room, "%s/%s", base, name);
	remove_tree(path);
	if (mkdir(path, 0700) < 0)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int write_manifest(int dirfd, bool complete)
{
	struct tr_manifest m = {.complete = complete};
	struct tr_error err;

	return tr_manifest_write(dirfd, &m, &err);
}

static int put_events(struct tr_writer *w, uint64_t n, uint32_t streams)
{
	struct tr_error err;

	for (uint64_t i = 1; i <= n; i++)
		for (unsigned p = 0; p <= syn_parts(i); p++)
			if (tr_writer_put(w, synthesize(&syn, i, p, streams),
					  &err) < 0) {
				printf("# put: %s\n", err.text);
				return -1;
			}
	return 0;
}

/* A trace of n synthetic events; leaves its path in `path`. */
static int make_sized(const char *name, bool small, char *path, uint64_t n,
		      uint32_t streams, const struct tr_writer_options *o)
{
	TR_AUTOCLOSE int dirfd = new_dir(name, path, 128);
	struct tr_writer_stats stats;
	struct tr_error err;
	struct tr_writer *w;

	syn.small = small;
	if (dirfd < 0 || write_manifest(dirfd, true) < 0)
		return -1;
	w = tr_writer_open_with(dirfd, o, &err);
	if (!w || put_events(w, n, streams) < 0)
		return -1;
	return tr_writer_close(w, &stats, &err);
}

static int make_trace(const char *name, char *path, uint64_t n,
		      uint32_t streams, const struct tr_writer_options *o)
{
	return make_sized(name, false, path, n, streams, o);
}

static bool same_bytes(const struct tr_bytes *a, const struct tr_bytes *b)
{
	return a->len == b->len &&
	       (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static bool same_lists(const struct tr_event *a, const struct tr_event *b)
{
	if (a->nmem != b->nmem || a->nmap != b->nmap || a->narg != b->narg)
		return false;
	for (size_t i = 0; i < a->nmem; i++)
		if (a->mem[i].addr != b->mem[i].addr ||
		    !same_bytes(&a->mem[i].bytes, &b->mem[i].bytes))
			return false;
	for (size_t i = 0; i < a->nmap; i++) {
		const struct tr_map *x = &a->map[i], *y = &b->map[i];

		if (x->start != y->start || x->end != y->end ||
		    x->prot != y->prot || x->flags != y->flags ||
		    x->file != y->file || x->offset != y->offset ||
		    !same_bytes(&x->name, &y->name))
			return false;
	}
	for (size_t i = 0; i < a->narg; i++) {
		const struct tr_arg *x = &a->arg[i], *y = &b->arg[i];

		if (x->index != y->index || x->is_string != y->is_string ||
		    x->addr != y->addr || x->len != y->len ||
		    x->hash != y->hash || !same_bytes(&x->bytes, &y->bytes))
			return false;
	}
	return true;
}

static bool same_event(const struct tr_event *a, const struct tr_event *b)
{
	return a->type == b->type && a->number == b->number &&
	       a->stream == b->stream && a->task == b->task &&
	       a->time == b->time && a->has == b->has &&
	       memcmp(a->v, b->v, sizeof a->v) == 0 &&
	       memcmp(&a->regs, &b->regs, sizeof a->regs) == 0 &&
	       memcmp(&a->regs_after, &b->regs_after,
		      sizeof a->regs_after) == 0 &&
	       same_bytes(&a->xstate, &b->xstate) &&
	       same_bytes(&a->siginfo, &b->siginfo) &&
	       same_bytes(&a->text, &b->text) &&
	       same_bytes(&a->sha256, &b->sha256) &&
	       same_bytes(&a->digests, &b->digests) &&
	       same_bytes(&a->page_hashes, &b->page_hashes) &&
	       same_bytes(&a->known, &b->known) && same_lists(a, b);
}

/* Everything from event `from` on, in order, nothing between an event and
 * its parts. */
static void check_events(struct tr_cursor *c, uint64_t from, uint64_t n,
			 uint32_t streams)
{
	const struct tr_event *ev;
	struct tr_error err;

	for (uint64_t i = from; i <= n; i++)
		for (unsigned p = 0; p <= syn_parts(i); p++) {
			REQUIRE(tr_cursor_next(c, &ev, &err) == 1);
			REQUIRE(same_event(ev, synthesize(&syn, i, p,
							  streams)));
		}
	CHECK(tr_cursor_next(c, &ev, &err) == 0);
	CHECK(tr_cursor_next(c, &ev, &err) == 0);
}

static void check_trace(const char *path, uint64_t n, uint32_t streams)
{
	struct tr_error err;
	struct tr_reader *r = tr_reader_open(path, &err);
	struct tr_cursor *c;

	REQUIRE(r != NULL);
	c = tr_cursor_all(r);
	check_events(c, 1, n, streams);
	tr_cursor_free(c);
	CHECK(tr_reader_complete(r));
	CHECK(tr_reader_lost_bytes(r) == 0);
	CHECK(tr_reader_stream_count(r) <= streams);
	tr_reader_close(r);
}

/*
 * ---- Round trips ----
 */

static void test_round_trip(void)
{
	char path[128];

	REQUIRE(make_trace("a", path, 4000, 7,
			   &(struct tr_writer_options){0}) == 0);
	check_trace(path, 4000, 7);
}

static void test_round_trip_stored(void)
{
	char path[128];

	REQUIRE(make_trace("a", path, 2000, 3,
			   &(struct tr_writer_options){.stored = true}) == 0);
	check_trace(path, 2000, 3);
}

/* Memory in a stream of its own: all of it, and what is large. */
static void test_round_trip_blocks(void)
{
	static const uint32_t sizes[] = {1, 100, 4096};
	char path[128];

	for (size_t i = 0; i < 3; i++) {
		struct tr_writer_options o = {.chunk_size = 5000,
					      .file_size = 400000,
					      .block_size = sizes[i]};

		REQUIRE(make_trace("a", path, 2000, 5, &o) == 0);
		check_trace(path, 2000, 5);
	}
}

/* Chunks of one record each, of a few, and in many files. */
static void test_chunk_boundaries(void)
{
	static const uint32_t sizes[] = {1, 300, 5000, 70000};
	char path[128];

	for (size_t i = 0; i < 4; i++) {
		struct tr_writer_options o = {.chunk_size = sizes[i],
					      .file_size = 40000};

		REQUIRE(make_trace("a", path, 700, 5, &o) == 0);
		check_trace(path, 700, 5);
	}
}

static void test_many_streams(void)
{
	char path[128];

	REQUIRE(make_trace("a", path, 6000, 3000,
			   &(struct tr_writer_options){0}) == 0);
	check_trace(path, 6000, 3000);
}

/* A program that starts very many short-lived processes: every stream ends
 * at once, none costs memory afterwards. */
static void test_ended_streams(void)
{
	char path[128];
	TR_AUTOCLOSE int dirfd = new_dir("a", path, sizeof path);
	struct tr_error err;
	struct tr_writer *w = tr_writer_open(dirfd, &err);
	struct tr_event ev = {.type = TR_EV_EXIT};

	REQUIRE(w && write_manifest(dirfd, true) == 0);
	for (uint32_t i = 1; i <= 5000; i++) {
		ev.number = ev.stream = ev.task = i;
		REQUIRE(tr_writer_put(w, &ev, &err) == 0);
		REQUIRE(tr_writer_end_stream(w, i, &err) == 0);
	}
	CHECK(tr_writer_end_stream(w, 9, &err) == 0);
	CHECK(tr_writer_end_stream(w, 77777, &err) == 0);
	CHECK(tr_writer_put(w, &ev, &err) < 0 && err.code == TR_EINVAL);
	/* A stream whose only event is refused leaves no chunk. */
	ev.stream = 6000;
	ev.has = 1;
	CHECK(tr_writer_put(w, &ev, &err) < 0 && err.code == TR_EINVAL);
	ev.has = 0;
	ev.stream = 0;
	ev.number++;
	CHECK(tr_writer_put(w, &ev, &err) == 0);
	REQUIRE(tr_writer_close(w, NULL, &err) == 0);

	struct tr_reader *r = tr_reader_open(path, &err);
	const struct tr_chunk_ref *refs;

	REQUIRE(r != NULL);
	CHECK(tr_reader_complete(r));
	CHECK(tr_reader_chunks(r, &refs) == 5001);
	CHECK(tr_reader_stream_count(r) == 5001);
	tr_reader_close(r);
}

/* Every stream that is left has its end, but the catalogue was cut off. */
static void test_cut_catalogue(void)
{
	char path[128], name[200];
	TR_AUTOCLOSE int dirfd = new_dir("a", path, sizeof path);
	struct tr_error err;
	struct tr_writer *w = tr_writer_open(dirfd, &err);
	struct tr_event ev = {.type = TR_EV_EXIT, .number = 1, .stream = 1};
	const struct tr_chunk_ref *refs;
	struct tr_reader *r;

	REQUIRE(w && write_manifest(dirfd, true) == 0);
	REQUIRE(tr_writer_put(w, &ev, &err) == 0);
	REQUIRE(tr_writer_end_stream(w, 1, &err) == 0);
	ev.stream = 0;
	ev.number = 2;
	REQUIRE(tr_writer_put(w, &ev, &err) == 0);
	REQUIRE(tr_writer_close(w, NULL, &err) == 0);
	r = tr_reader_open(path, &err);
	REQUIRE(r && tr_reader_complete(r));
	REQUIRE(tr_reader_chunks(r, &refs) == 2 && refs[1].stream == 0);
	snprintf(name, sizeof name, "%s/chunks/000000", path);
	CHECK(truncate(name, (off_t)refs[1].offset) == 0);
	tr_reader_close(r);
	r = tr_reader_open(path, &err);
	REQUIRE(r != NULL);
	CHECK(!tr_reader_complete(r) && tr_reader_lost_bytes(r) == 0);
	tr_reader_close(r);
}

static uint64_t count_events(struct tr_cursor *c, int *result)
{
	const struct tr_event *ev;
	struct tr_error err;
	uint64_t n = 0;

	while ((*result = tr_cursor_next(c, &ev, &err)) > 0)
		n++;
	tr_cursor_free(c);
	return n;
}

static void test_streams_apart(void)
{
	char path[128];
	struct tr_error err;
	struct tr_reader *r;
	uint64_t total = 0, all;
	int result;

	REQUIRE(make_trace("a", path, 900, 4, &(struct tr_writer_options){
			.chunk_size = 3000}) == 0);
	r = tr_reader_open(path, &err);
	REQUIRE(r != NULL);
	for (uint32_t s = 0; s < 4; s++) {
		struct tr_cursor *c = tr_cursor_stream(r, s);
		const struct tr_event *ev;
		uint64_t last = 0;

		while (tr_cursor_next(c, &ev, &err) > 0) {
			CHECK(ev->stream == s && ev->number >= last);
			last = ev->number;
			total++;
		}
		tr_cursor_free(c);
	}
	all = count_events(tr_cursor_all(r), &result);
	CHECK(result == 0 && total == all);
	CHECK(count_events(tr_cursor_stream(r, 4), &result) == 0);
	tr_reader_close(r);
}

static void test_cursor_from(void)
{
	char path[128];
	struct tr_error err;
	struct tr_reader *r;

	REQUIRE(make_trace("a", path, 300, 4, &(struct tr_writer_options){
			.chunk_size = 2000}) == 0);
	r = tr_reader_open(path, &err);
	REQUIRE(r != NULL);
	for (uint64_t i = 1; i <= 301; i++) {
		struct tr_cursor *c = tr_cursor_from(r, i);

		check_events(c, i, 300, 4);
		tr_cursor_free(c);
	}
	tr_reader_close(r);
}

/* Sealing by age leaves nothing open, and an empty chunk ends the stream. */
static void test_flush(void)
{
	char path[128];
	TR_AUTOCLOSE int dirfd = new_dir("a", path, sizeof path);
	struct tr_error err;
	struct tr_writer *w = tr_writer_open(dirfd, &err);
	struct tr_writer_stats stats;

	REQUIRE(w && write_manifest(dirfd, true) == 0);
	REQUIRE(put_events(w, 50, 3) == 0);
	CHECK(tr_writer_flush(w, UINT64_MAX, &err) == 3);
	CHECK(tr_writer_flush(w, 0, &err) == 0);
	REQUIRE(tr_writer_close(w, &stats, &err) == 0);
	CHECK(stats.chunks == 6);
	check_trace(path, 50, 3);
}

static void test_writer_refuses(void)
{
	char path[128];
	TR_AUTOCLOSE int dirfd = new_dir("a", path, sizeof path);
	struct tr_error err;
	/* Each event ends a chunk: order holds beyond it. */
	struct tr_writer *w = tr_writer_open_with(
		dirfd, &(struct tr_writer_options){.chunk_size = 1}, &err);
	struct tr_event ev = {.type = TR_EV_EXIT, .number = 5, .stream = 1};

	REQUIRE(w && write_manifest(dirfd, true) == 0);
	CHECK(tr_writer_open(dirfd, &err) == NULL);
	ev.type = 100;
	CHECK(tr_writer_put(w, &ev, &err) < 0 && err.code == TR_EINVAL);
	ev.type = TR_EV_EXIT;
	CHECK(tr_writer_put(w, &ev, &err) == 0);
	ev.number = 4;
	CHECK(tr_writer_put(w, &ev, &err) < 0 && err.code == TR_EINVAL);
	ev.number = 0;
	ev.stream = 2;
	CHECK(tr_writer_put(w, &ev, &err) < 0 && err.code == TR_EINVAL);
	ev.number = 6;
	ev.stream = TR_MAX_STREAMS;
	CHECK(tr_writer_put(w, &ev, &err) < 0 && err.code == TR_EINVAL);
	ev.stream = 0;
	CHECK(tr_writer_put(w, &ev, &err) == 0);
	REQUIRE(tr_writer_close(w, NULL, &err) == 0);

	struct tr_reader *r = tr_reader_open(path, &err);
	int result;

	REQUIRE(r != NULL);
	CHECK(count_events(tr_cursor_all(r), &result) == 2 && result == 0);
	tr_reader_close(r);
}

/*
 * ---- Damage ----
 */

/* A file of a trace in memory, to be put back altered. */
struct image {
	char path[200];
	struct tr_buf bytes;
};

static void load_image(struct image *m, const char *dir, const char *name)
{
	struct tr_error err;

	m->bytes = (struct tr_buf){0};
	snprintf(m->path, sizeof m->path, "%s/%s", dir, name);
	CHECK(tr_read_file(AT_FDCWD, m->path, 1 << 20, &m->bytes, &err) == 0);
}

static void store_image(const struct image *m, size_t n)
{
	/* Not O_TRUNC: some file systems then wait for the disk at close. */
	TR_AUTOCLOSE int fd = open(m->path, O_WRONLY | O_CREAT, 0600);

	CHECK(fd >= 0 && tr_write_all(fd, m->bytes.data, n) == 0 &&
	      ftruncate(fd, (off_t)n) == 0);
}

static void forget(const char *dir, const char *name)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	CHECK(unlink(path) == 0);
}

#define SMALL_EVENTS 14
#define SMALL_STREAMS 3

static int make_small(char *path)
{
	return make_sized("small", true, path, SMALL_EVENTS, SMALL_STREAMS,
			  &(struct tr_writer_options){.stored = true,
						      .chunk_size = 400});
}

struct outcome {
	bool opened, complete, error;
	enum tr_code code;
	uint64_t lost, events;
};

/*
 * Read what is there.  Whatever comes must be what was written: within each
 * stream a prefix, no event altered.
 */
static struct outcome read_damaged(const char *path)
{
	struct tr_error err;
	struct tr_reader *r = tr_reader_open(path, &err);
	struct outcome o = {.opened = r != NULL};
	const struct tr_event *ev;
	uint64_t next[SMALL_STREAMS] = {0};
	unsigned part[SMALL_STREAMS] = {0};
	struct tr_cursor *c;
	int result;

	if (!r) {
		o.code = err.code;
		return o;
	}
	c = tr_cursor_all(r);
	while ((result = tr_cursor_next(c, &ev, &err)) > 0) {
		uint32_t s = ev->stream;

		o.events++;
		if (!HOLDS(s < SMALL_STREAMS))
			break;
		/* The stream's next record. */
		if (next[s] && part[s] < syn_parts(next[s])) {
			part[s]++;
		} else {
			part[s] = 0;
			do
				next[s]++;
			while (synthesize(&syn, next[s], 0, SMALL_STREAMS)
				       ->stream != s);
		}
		CHECK(same_event(ev, synthesize(&syn, next[s], part[s],
						SMALL_STREAMS)));
	}
	o.error = result < 0;
	o.code = result < 0 ? err.code : TR_OK;
	o.complete = tr_reader_complete(r);
	o.lost = tr_reader_lost_bytes(r);
	tr_cursor_free(c);
	tr_reader_close(r);
	return o;
}

static uint64_t small_total(void)
{
	uint64_t n = 0;

	for (uint64_t i = 1; i <= SMALL_EVENTS; i++)
		n += 1 + syn_parts(i);
	return n;
}

static void test_truncation(void)
{
	char path[128];
	struct image m;
	uint64_t most = 0;

	REQUIRE(make_small(path) == 0);
	load_image(&m, path, "chunks/000000");
	CHECK(m.bytes.len > 1000 && m.bytes.len < 10000);
	/* Beside the index, which is then wrong, and without it. */
	for (int index = 1; index >= 0; index--) {
		if (!index)
			forget(path, "index");
		for (size_t n = 0; n <= m.bytes.len; n++) {
			struct outcome o;

			store_image(&m, n);
			o = read_damaged(path);
			CHECK(o.opened && !o.error);
			CHECK(o.lost <= n);
			CHECK(o.complete == (n == m.bytes.len));
			if (n == 0)
				most = 0;
			CHECK(o.events >= most);
			most = o.events;
		}
		CHECK(most == small_total());
	}
	tr_buf_release(&m.bytes);
}

static void flip_chunk_bytes(const char *path, struct image *m)
{
	for (size_t i = 0; i < m->bytes.len; i++) {
		uint8_t mask = (uint8_t)(1u << i % 8);
		struct outcome o;

		m->bytes.data[i] ^= mask;
		store_image(m, m->bytes.len);
		o = read_damaged(path);
		m->bytes.data[i] ^= mask;
		/* Every byte is covered: none may pass. */
		CHECK(!o.opened || o.error || !o.complete);
		CHECK(o.code == TR_OK || o.code == TR_ECORRUPT);
	}
	store_image(m, m->bytes.len);
}

static void test_flipped_bytes(void)
{
	char path[128];
	struct image m;

	REQUIRE(make_small(path) == 0);
	load_image(&m, path, "chunks/000000");
	flip_chunk_bytes(path, &m);
	forget(path, "index");
	flip_chunk_bytes(path, &m);
	CHECK(read_damaged(path).complete);
	tr_buf_release(&m.bytes);
}

static void test_flipped_deflate(void)
{
	char path[128];
	struct image m;

	REQUIRE(make_sized("small", true, path, SMALL_EVENTS, SMALL_STREAMS,
			   &(struct tr_writer_options){.chunk_size = 3000})
		== 0);
	load_image(&m, path, "chunks/000000");
	flip_chunk_bytes(path, &m);
	tr_buf_release(&m.bytes);
}

static void test_flipped_index(void)
{
	char path[128];
	struct image m;

	REQUIRE(make_small(path) == 0);
	load_image(&m, path, "index");
	for (size_t i = 0; i < m.bytes.len; i++) {
		struct outcome o;
		struct tr_error err;
		struct tr_reader *r;

		m.bytes.data[i] ^= 0x20;
		store_image(&m, m.bytes.len);
		m.bytes.data[i] ^= 0x20;
		o = read_damaged(path);
		/* The chunk files tell all that the index tells. */
		CHECK(o.complete && !o.error && o.events == small_total());
		r = tr_reader_open(path, &err);
		CHECK(r && tr_reader_note(r));
		tr_reader_close(r);
	}
	for (size_t n = 0; n < m.bytes.len; n++) {
		store_image(&m, n);
		CHECK(read_damaged(path).events == small_total());
	}
	tr_buf_release(&m.bytes);
}

/* An index that is whole but not this trace's. */
static void test_wrong_index(void)
{
	char path[128], other[128];
	struct image m;
	struct outcome o;

	REQUIRE(make_trace("other", other, 40, 3,
			   &(struct tr_writer_options){0}) == 0);
	REQUIRE(make_small(path) == 0);
	load_image(&m, other, "index");
	snprintf(m.path, sizeof m.path, "%s/index", path);
	store_image(&m, m.bytes.len);
	o = read_damaged(path);
	CHECK(o.complete && !o.error && o.events == small_total());
	tr_buf_release(&m.bytes);
}

/* One whose entries are in bounds and checksummed, but say another thing. */
static void test_lying_index(void)
{
	char path[128];
	struct tr_error err;
	struct tr_chunk_ref *refs;
	size_t n;

	REQUIRE(make_small(path) == 0);
	TR_AUTOCLOSE int dirfd = open(path, O_RDONLY | O_DIRECTORY);
	REQUIRE(tr_index_read(dirfd, &refs, &n, &err) == 0 && n > 3);
	for (size_t i = 0; i < n; i++) {
		struct tr_chunk_ref saved = refs[i];
		struct outcome o;

		refs[i].records++;
		CHECK(tr_index_write(dirfd, refs, n, &err) == 0);
		o = read_damaged(path);
		CHECK(o.opened && o.error && o.code == TR_ECORRUPT);
		refs[i] = saved;
		refs[i].raw_size = UINT32_MAX;
		CHECK(tr_index_write(dirfd, refs, n, &err) == 0);
		o = read_damaged(path);
		CHECK(o.opened && o.error && o.code == TR_ECORRUPT);
		refs[i] = saved;
		refs[i].first = 1;
		CHECK(saved.first == 1 ||
		      tr_index_write(dirfd, refs, n, &err) == 0);
		o = read_damaged(path);
		CHECK(o.opened && o.error && o.code == TR_ECORRUPT);
		refs[i] = saved;
	}
	free(refs);
}

/* A chunk in the middle is unreadable: the others are found again. */
static void test_resync(void)
{
	char path[128];
	struct tr_error err;
	struct tr_chunk_ref *refs;
	struct image m;
	size_t n;

	REQUIRE(make_small(path) == 0);
	TR_AUTOCLOSE int dirfd = open(path, O_RDONLY | O_DIRECTORY);
	REQUIRE(tr_index_read(dirfd, &refs, &n, &err) == 0);
	load_image(&m, path, "chunks/000000");
	forget(path, "index");
	for (size_t i = 0; i < n; i++) {
		uint8_t *header = m.bytes.data + refs[i].offset;
		const struct tr_chunk_ref *found;
		struct tr_reader *r;
		struct outcome o;

		header[17] ^= 4;
		store_image(&m, m.bytes.len);
		header[17] ^= 4;
		r = tr_reader_open(path, &err);
		REQUIRE(r != NULL);
		CHECK(tr_reader_chunks(r, &found) == n - 1);
		CHECK(tr_reader_lost_bytes(r) ==
		      TR_CHUNK_HEADER + (uint64_t)refs[i].stored_size);
		CHECK(!tr_reader_complete(r));
		tr_reader_close(r);
		/* The break in the stream's chain is met as damage, unless
		 * the chunk was the stream's last. */
		o = read_damaged(path);
		CHECK(o.error == !(refs[i].flags & TR_CHUNK_LAST));
	}
	free(refs);
	tr_buf_release(&m.bytes);
}

static void test_missing_file(void)
{
	char path[128];
	struct tr_error err;
	struct tr_reader *r;

	REQUIRE(make_trace("a", path, 300, 2, &(struct tr_writer_options){
			.chunk_size = 2000, .file_size = 8000}) == 0);
	forget(path, "chunks/000001");
	r = tr_reader_open(path, &err);
	REQUIRE(r != NULL);
	CHECK(!tr_reader_complete(r));
	CHECK(tr_reader_note(r) != NULL);
	tr_reader_close(r);
	forget(path, "chunks/000000");
	r = tr_reader_open(path, &err);
	REQUIRE(r != NULL);
	CHECK(!tr_reader_complete(r));
	tr_reader_close(r);
}

/* What is tried is what is there, not every number that could be. */
static void test_far_chunk_file(void)
{
	struct timespec before, after;
	struct tr_error err;
	struct tr_reader *r;
	char path[128];
	double seconds;

	REQUIRE(make_trace("a", path, 300, 2, &(struct tr_writer_options){
			.chunk_size = 2000, .file_size = 8000}) == 0);
	forget(path, "index");
	TR_AUTOFREE char *from = tr_printf("%s/chunks/000001", path);
	TR_AUTOFREE char *to = tr_printf("%s/chunks/999999", path);

	REQUIRE(rename(from, to) == 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	r = tr_reader_open(path, &err);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	REQUIRE(r != NULL);
	CHECK(!tr_reader_complete(r));
	tr_reader_close(r);
	seconds = (double)(after.tv_sec - before.tv_sec) +
		  (double)(after.tv_nsec - before.tv_nsec) / 1e9;
	CHECK(seconds < 0.3);
}

/* A chunk of a later version is refused, not taken for damage. */
static void test_future_chunk(void)
{
	char path[128];
	struct tr_error err;
	struct image m;
	struct outcome o;

	REQUIRE(make_small(path) == 0);
	load_image(&m, path, "chunks/000000");
	m.bytes.data[6] = 1; /* an incompatible feature bit */
	tr_put_le64(m.bytes.data + 56, XXH3_64bits(m.bytes.data, 56));
	store_image(&m, m.bytes.len);
	o = read_damaged(path);
	CHECK(o.opened && o.error && o.code == TR_EFEATURE);
	forget(path, "index");
	CHECK(tr_reader_open(path, &err) == NULL && err.code == TR_EFEATURE);
	tr_buf_release(&m.bytes);
}

/* The file shrinks while it is being read. */
static void test_shrinking_file(void)
{
	char path[128], name[200];
	struct tr_error err;
	const struct tr_event *ev;
	struct tr_reader *r;
	struct tr_cursor *c;
	int result;

	REQUIRE(make_small(path) == 0);
	r = tr_reader_open(path, &err);
	REQUIRE(r != NULL);
	c = tr_cursor_all(r);
	CHECK(tr_cursor_next(c, &ev, &err) == 1);
	snprintf(name, sizeof name, "%s/chunks/000000", path);
	CHECK(truncate(name, 700) == 0);
	while ((result = tr_cursor_next(c, &ev, &err)) > 0)
		continue;
	CHECK(result < 0 && err.code == TR_ECORRUPT);
	CHECK(strstr(err.text, "cut off") != NULL);
	CHECK(tr_cursor_next(c, &ev, &err) == 0);
	tr_cursor_free(c);
	tr_reader_close(r);
}

/* Even when two streams wrongly share a number, parts stay with theirs. */
static void test_parts_together(void)
{
	char path[128];
	TR_AUTOCLOSE int dirfd = new_dir("a", path, sizeof path);
	struct tr_error err;
	struct tr_writer *w = tr_writer_open(dirfd, &err);
	struct tr_event ev = {.type = TR_EV_SYSCALL, .number = 5};
	const struct tr_event *got;
	struct tr_reader *r;
	struct tr_cursor *c;
	uint32_t last = 0;

	REQUIRE(w && write_manifest(dirfd, true) == 0);
	for (uint32_t i = 0; i < 8; i++) {
		ev.stream = i % 2;
		ev.type = i < 2 ? TR_EV_SYSCALL : TR_EV_MORE;
		REQUIRE(tr_writer_put(w, &ev, &err) == 0);
	}
	REQUIRE(tr_writer_close(w, NULL, &err) == 0);
	r = tr_reader_open(path, &err);
	REQUIRE(r != NULL);
	c = tr_cursor_all(r);
	for (int i = 0; i < 8; i++) {
		REQUIRE(tr_cursor_next(c, &got, &err) == 1);
		CHECK((got->type == TR_EV_SYSCALL) == (i % 4 == 0));
		CHECK(i % 4 == 0 || got->stream == last);
		last = got->stream;
	}
	tr_cursor_free(c);
	tr_reader_close(r);
}

/* What is no regular file is not waited for and not followed. */
static void test_hostile_files(void)
{
	char path[128], name[200];
	struct tr_error err;

	REQUIRE(make_small(path) == 0);
	forget(path, "chunks/000000");
	snprintf(name, sizeof name, "%s/chunks/000000", path);
	REQUIRE(mkfifo(name, 0600) == 0);
	CHECK(tr_reader_open(path, &err) == NULL && err.code == TR_ECORRUPT);
	REQUIRE(unlink(name) == 0 && symlink("/etc/passwd", name) == 0);
	CHECK(tr_reader_open(path, &err) == NULL && err.code == TR_ECORRUPT);
}

/*
 * ---- Failures of the disk, in processes of their own: fault points are read
 * from the environment once ----
 */

static int faulty_writer(const char *fault, char *path)
{
	TR_AUTOCLOSE int dirfd = new_dir("fault", path, 128);
	struct tr_writer_options o = {.chunk_size = 2000};
	struct tr_error err;
	pid_t pid;
	int status;

	if (dirfd < 0)
		return -1;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct tr_writer *w;
		bool failed;

		setenv("TRACE_FAULT", fault, 1);
		w = tr_writer_open_with(dirfd, &o, &err);
		failed = !w || write_manifest(dirfd, false) < 0;
		for (uint64_t i = 1; w && i <= 400 && !failed; i++)
			failed = tr_writer_put(w, synthesize(&syn, i, 0, 2),
					       &err) < 0;
		if (failed && w)
			tr_writer_abandon(w);
		else if (w)
			failed = tr_writer_close(w, NULL, &err) < 0;
		_exit(!failed ? 0 : err.sys_errno == ENOSPC ? 3 : 4);
	}
	waitpid(pid, &status, 0);
	return status;
}

static uint64_t chunks_readable(const char *path, bool *complete)
{
	struct tr_error err;
	struct tr_reader *r = tr_reader_open(path, &err);
	const struct tr_chunk_ref *refs;
	uint64_t n;
	int result;

	if (!HOLDS(r != NULL))
		return 0;
	n = tr_reader_chunks(r, &refs);
	CHECK(n == 0 || count_events(tr_cursor_all(r), &result) > 0);
	CHECK(tr_reader_lost_bytes(r) == 0);
	*complete = tr_reader_complete(r);
	tr_reader_close(r);
	return n;
}

static void test_disk_full(void)
{
	char path[128];
	bool complete;
	int status = faulty_writer("chunk-write=enospc@3", path);

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK(chunks_readable(path, &complete) == 2 && !complete);
}

static void test_killed(void)
{
	char path[128];
	bool complete;
	int status = faulty_writer("chunk-write=kill@4", path);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(chunks_readable(path, &complete) == 3 && !complete);
}

static void test_index_fails(void)
{
	char path[128];
	bool complete;
	int status = faulty_writer("index-write=enospc", path);

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK(chunks_readable(path, &complete) > 10 && !complete);
}

/*
 * ---- Limits and the codec ----
 */

/* Encodes and, when that works, expects to decode the same. */
static enum tr_code try_event(const struct tr_event *ev)
{
	struct tr_codec codec = {0};
	struct tr_decoder decoder = {0};
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_error err = {0};
	struct tr_chunk_header h = {.records = 1, .stream = ev->stream,
				    .first = ev->number, .last = ev->number};

	tr_codec_begin(&codec, ev->number);
	if (tr_encode(&codec, ev, &b, &err) == 0) {
		h.raw_size = (uint32_t)b.len;
		tr_decoder_begin(&decoder, &h, b.data);
		if (tr_decoder_next(&decoder, &err) == 1) {
			CHECK(same_event(ev, &decoder.ev));
			CHECK(tr_decoder_next(&decoder, &err) == 0);
		}
	} else {
		CHECK(b.len == 0);
	}
	tr_codec_release(&codec);
	tr_decoder_release(&decoder);
	return err.code;
}

static void test_every_type(void)
{
	struct tr_event ev = {.number = 1};

	/* The type of a stream of its own is in test_blocks.c. */
#define X(NAME, code, name, meaning)                                       \
	ev.type = TR_EV_##NAME;                                            \
	CHECK((try_event(&ev) == TR_OK) == (code != TR_EV_BLOCK));         \
	CHECK(tr_event_type_by_name(tr_event_type_name(code)) == (code));
	TR_EVENT_TYPES(X)
#undef X
	CHECK(tr_event_type_name(0) == NULL);
	CHECK(tr_event_type_by_name("no such type") == 0);
}

static void test_scalar_limits(void)
{
	struct tr_event ev = {.type = TR_EV_IMAGE, .number = 1};

	tr_event_set(&ev, TR_F_PARTS, TR_MAX_PARTS);
	CHECK(try_event(&ev) == TR_OK);
	tr_event_set(&ev, TR_F_PARTS, TR_MAX_PARTS + 1);
	CHECK(try_event(&ev) == TR_EINVAL);
	tr_event_set(&ev, TR_F_PARTS, 0);
	tr_event_set(&ev, TR_F_FILE, UINT32_MAX);
	CHECK(try_event(&ev) == TR_OK);
	tr_event_set(&ev, TR_F_FILE, UINT32_MAX + (uint64_t)1);
	CHECK(try_event(&ev) == TR_EINVAL);
	ev.has = 1;
	CHECK(try_event(&ev) == TR_EINVAL);
	ev.has = (uint64_t)1 << 63;
	CHECK(try_event(&ev) == TR_EINVAL);
	ev.has = 0;
	memset(ev.v, 0, sizeof ev.v);
	tr_event_set(&ev, TR_F_RESULT, (uint64_t)INT64_MIN);
	tr_event_set(&ev, TR_F_SIZE, UINT64_MAX);
	ev.number = UINT64_MAX;
	ev.time = UINT64_MAX;
	ev.task = UINT32_MAX;
	CHECK(try_event(&ev) == TR_OK);
}

static void test_bytes_limits(void)
{
	static uint8_t zero[1 << 20];
	struct tr_event ev = {.type = TR_EV_NOTE, .number = 1};

	tr_event_mark(&ev, TR_F_TEXT);
	ev.text = (struct tr_bytes){zero, TR_MAX_TEXT};
	CHECK(try_event(&ev) == TR_OK);
	ev.text.len++;
	CHECK(try_event(&ev) == TR_EINVAL);
	ev.text.len = 0;
	tr_event_mark(&ev, TR_F_XSTATE);
	ev.xstate = (struct tr_bytes){zero, TR_MAX_XSTATE};
	CHECK(try_event(&ev) == TR_OK);
	ev.xstate.len++;
	CHECK(try_event(&ev) == TR_EINVAL);
	ev.xstate.len = 0;
	tr_event_mark(&ev, TR_F_SIGINFO);
	for (size_t n = 127; n <= 129; n++) {
		ev.siginfo = (struct tr_bytes){zero, n};
		CHECK(try_event(&ev) == (n == 128 ? TR_OK : TR_EINVAL));
	}
	ev.siginfo.len = 128;
	tr_event_mark(&ev, TR_F_SHA256);
	for (size_t n = 31; n <= 33; n++) {
		ev.sha256 = (struct tr_bytes){zero, n};
		CHECK(try_event(&ev) == (n == 32 ? TR_OK : TR_EINVAL));
	}
	ev.sha256.len = 32;
	CHECK(try_event(&ev) == TR_OK);
	ev.type = TR_EV_DIGEST;
	CHECK(try_event(&ev) == TR_OK);
	tr_event_mark(&ev, TR_F_REGS);
	CHECK(try_event(&ev) == TR_EINVAL);
}

static void test_mem_limits(void)
{
	static uint8_t zero[TR_MEM_PIECE + 1];
	struct tr_mem mem[9] = {{.addr = 4096, .bytes = {zero, TR_MEM_PIECE}}};
	struct tr_event ev = {.type = TR_EV_MORE, .number = 1, .mem = mem,
			      .nmem = 1};

	tr_event_mark(&ev, TR_F_MEM);
	CHECK(try_event(&ev) == TR_OK);
	mem[0].bytes.len++;
	CHECK(try_event(&ev) == TR_EINVAL);
	mem[0].addr = UINT64_MAX - 9;
	mem[0].bytes.len = 9;
	CHECK(try_event(&ev) == TR_OK);
	mem[0].bytes.len = 10;
	CHECK(try_event(&ev) == TR_EINVAL);
	mem[0].bytes.len = 0;
	CHECK(try_event(&ev) == TR_OK);
	/* Seven full pieces fit a record of 2 MiB, eight do not. */
	for (size_t i = 0; i < 9; i++)
		mem[i] = (struct tr_mem){i << 40, {zero, TR_MEM_PIECE}};
	ev.nmem = 7;
	CHECK(try_event(&ev) == TR_OK);
	ev.nmem = 8;
	CHECK(try_event(&ev) == TR_EINVAL);
	ev.nmem = 9;
	CHECK(try_event(&ev) == TR_EINVAL);
}

static void test_map_limits(void)
{
	static char name[TR_MAX_TEXT + 1];
	struct tr_map m = {.start = 0, .end = 4096, .prot = UINT32_MAX,
			   .flags = UINT32_MAX, .file = UINT32_MAX,
			   .offset = UINT64_MAX, .name = {name, TR_MAX_TEXT}};
	struct tr_event ev = {.type = TR_EV_SYSCALL, .number = 1, .map = &m,
			      .nmap = 1};

	tr_event_mark(&ev, TR_F_MAP);
	CHECK(try_event(&ev) == TR_OK);
	m.name.len++;
	CHECK(try_event(&ev) == TR_EINVAL);
	m.name.len = 0;
	m.end = ~(uint64_t)4095;
	CHECK(try_event(&ev) == TR_OK);
	m.start = m.end;
	CHECK(try_event(&ev) == TR_EINVAL);
	m.start = 1;
	CHECK(try_event(&ev) == TR_EINVAL);
	m.start = 8192;
	m.end = 4096;
	CHECK(try_event(&ev) == TR_EINVAL);
}

static void test_arg_limits(void)
{
	static char zero[TR_ARG_STRING_MAX + 1];
	struct tr_arg a = {.index = 5, .addr = UINT64_MAX, .len = UINT64_MAX,
			   .hash = UINT64_MAX,
			   .bytes = {zero, TR_ARG_PREFIX_MAX}};
	struct tr_event ev = {.type = TR_EV_SYSCALL, .number = 1, .arg = &a,
			      .narg = 1};

	tr_event_mark(&ev, TR_F_ARG);
	CHECK(try_event(&ev) == TR_OK);
	a.bytes.len++;
	CHECK(try_event(&ev) == TR_EINVAL);
	a.is_string = 1;
	a.bytes.len = TR_ARG_STRING_MAX;
	CHECK(try_event(&ev) == TR_OK);
	a.bytes.len++;
	CHECK(try_event(&ev) == TR_EINVAL);
	a.bytes.len = 2;
	a.len = 1;
	CHECK(try_event(&ev) == TR_EINVAL);
	a.len = 2;
	a.index = 6;
	CHECK(try_event(&ev) == TR_EINVAL);
}

/* More tasks than a chunk may hold registers of: the writer seals earlier. */
static void test_many_tasks(void)
{
	char path[128];
	TR_AUTOCLOSE int dirfd = new_dir("a", path, sizeof path);
	struct tr_error err;
	struct tr_writer *w = tr_writer_open_with(
		dirfd, &(struct tr_writer_options){.chunk_size = 1 << 20},
		&err);
	struct tr_event ev = {.type = TR_EV_INSN, .stream = 0};
	const struct tr_chunk_ref *refs;
	struct tr_reader *r;
	int result;

	REQUIRE(w && write_manifest(dirfd, true) == 0);
	tr_event_mark(&ev, TR_F_REGS);
	for (uint32_t i = 1; i <= 10000; i++) {
		ev.number = i;
		ev.task = i;
		ev.regs.rip = i;
		REQUIRE(tr_writer_put(w, &ev, &err) == 0);
	}
	REQUIRE(tr_writer_close(w, NULL, &err) == 0);
	r = tr_reader_open(path, &err);
	REQUIRE(r != NULL);
	CHECK(tr_reader_chunks(r, &refs) == 3);
	CHECK(count_events(tr_cursor_all(r), &result) == 10000 && result == 0);
	tr_reader_close(r);
}

/* The codec's own guard, which the writer never lets it come to. */
static void test_too_many_tasks(void)
{
	struct tr_codec codec = {0}, fresh = {0};
	struct tr_decoder d = {0};
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_event ev = {.type = TR_EV_INSN, .number = 1};
	struct tr_chunk_header h = {.records = TR_MAX_CHUNK_TASKS + 1,
				    .first = 1, .last = 1};
	struct tr_error err;
	uint32_t n = 0;
	int r;

	tr_event_mark(&ev, TR_F_REGS);
	tr_codec_begin(&codec, 1);
	tr_codec_begin(&fresh, 1);
	for (; ev.task < TR_MAX_CHUNK_TASKS; ev.task++)
		CHECK(tr_encode(&codec, &ev, &b, &err) == 0);
	CHECK(tr_codec_full(&codec));
	CHECK(tr_encode(&codec, &ev, &b, &err) < 0 && err.code == TR_EINVAL);
	CHECK(tr_encode(&fresh, &ev, &b, &err) == 0);
	h.raw_size = (uint32_t)b.len;
	tr_decoder_begin(&d, &h, b.data);
	while ((r = tr_decoder_next(&d, &err)) > 0)
		n++;
	CHECK(r < 0 && err.code == TR_ECORRUPT && n == TR_MAX_CHUNK_TASKS);
	tr_decoder_release(&d);
	tr_codec_release(&codec);
	tr_codec_release(&fresh);
}

/* Hand-made payloads: one decoder call, its code and its event's type. */
static enum tr_code decode_bytes(const void *bytes, size_t n, uint32_t records,
				 unsigned *type)
{
	struct tr_decoder d = {0};
	struct tr_error err = {0};
	/* On the heap and exact, so that a sanitizer sees an overrun. */
	TR_AUTOFREE void *copy = tr_memdup(bytes, n);
	struct tr_chunk_header h = {.records = records, .raw_size = (uint32_t)n,
				    .first = 10, .last = 12};
	int r;

	*type = 0;
	tr_decoder_begin(&d, &h, copy);
	while ((r = tr_decoder_next(&d, &err)) > 0)
		*type = d.ev.type;
	tr_decoder_release(&d);
	return r < 0 ? err.code : TR_OK;
}

#define KEY(tag, kind) ((tag) << 1 | (kind))
#define DECODES(expected, last, records, ...)                              \
	do {                                                               \
		const uint8_t b_[] = {__VA_ARGS__};                        \
		unsigned t_;                                               \
		CHECK(decode_bytes(b_, sizeof b_, records, &t_) ==         \
		      (expected));                                         \
		CHECK((last) == t_);                                       \
	} while (0)

#define FIRST 8, 3, 0, 1, 0 /* an exit event numbered 10 */
#define LAST 8, 3, 2, 1, 0  /* one two numbers later, the chunk's last */

static void test_compatible_parts(void)
{
	DECODES(TR_OK, 8, 2, FIRST, LAST);
	/* An unknown type from 128 on counts, moves number and time on. */
	DECODES(TR_OK, 8, 3, FIRST, 200, 4, 1, 1, 0, 99, 8, 3, 1, 1, 0);
	DECODES(TR_OK, 8, 2, FIRST, 200, 3, 2, 1, 0);
	/* Unknown fields from 64 on, of both kinds, repeated. */
	DECODES(TR_OK, 8, 2, FIRST, 8, 14, 2, 1, 0, 0x80, 1, 5, 0x81, 1, 2,
		'x', 'y', 0x81, 1, 0);
	/* Unknown ones below are not for guessing. */
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 100, 3, 2, 1, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 5, 2, 1, 0, KEY(62, 0), 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 5, 2, 1, 0, KEY(63, 1), 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 5, 2, 1, 0, KEY(0, 0), 0);
}

static void test_malformed_records(void)
{
	DECODES(TR_ECORRUPT, 8, 3, FIRST, LAST);
	DECODES(TR_ECORRUPT, 8, 1, FIRST, LAST);
	DECODES(TR_ECORRUPT, 8, 1, FIRST);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 3, 3, 1, 0);
	DECODES(TR_ECORRUPT, 0, 1, 8, 3, 2, 1, 0);
	/* A number that wraps around and comes back in order. */
	DECODES(TR_ECORRUPT, 8, 3, FIRST, 8, 12, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 1, 1, 0, 8, 3, 3, 1, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 3);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 2, 2, 1);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 4, 2, 1, 0);
	/* Order, repetition and kind of fields. */
	DECODES(TR_OK, 8, 2, FIRST, 8, 7, 2, 1, 0, 2, 0, 4, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 7, 2, 1, 0, 4, 0, 2, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 7, 2, 1, 0, 2, 0, 2, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 5, 2, 1, 0, 3, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 5, 2, 1, 0, KEY(54, 0), 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 6, 2, 1, 0, 2, 0, 4);
	/* A field longer than its record; a number of more than 64 bits. */
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 6, 2, 1, 0, KEY(52, 1), 2, 'a');
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 14, 2, 1, 0, 2, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2);
	/* A task id of more than 32 bits. */
	DECODES(TR_ECORRUPT, 0, 1, 8, 7, 0, 0xff, 0xff, 0xff, 0xff, 0x10, 0);
}

static void test_malformed_fields(void)
{
	/* regs: no bitmap, a 28th register, a missing difference, a rest. */
	DECODES(TR_OK, 8, 2, FIRST, 8, 6, 2, 1, 0, KEY(48, 1), 1, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 5, 2, 1, 0, KEY(48, 1), 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 11, 2, 1, 0, KEY(48, 1), 6, 0x80,
		0x80, 0x80, 0x80, 1, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 6, 2, 1, 0, KEY(48, 1), 1, 1);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 7, 2, 1, 0, KEY(48, 1), 2, 0, 0);
	/* siginfo and sha256 of a wrong size; a file id of 33 bits. */
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 6, 2, 1, 0, KEY(51, 1), 1, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 6, 2, 1, 0, KEY(53, 1), 1, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 9, 2, 1, 0, KEY(21, 0), 0x80,
		0x80, 0x80, 0x80, 0x10);
	/* mem without address; map without pages, with prot of 33 bits; arg
	 * with index 6, cut off in the hash, longer than memory. */
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 5, 2, 1, 0, KEY(54, 1), 0);
	DECODES(TR_OK, 8, 2, FIRST, 8, 11, 2, 1, 0, KEY(55, 1), 6, 2, 1, 0, 0,
		0, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 11, 2, 1, 0, KEY(55, 1), 6, 2, 0,
		0, 0, 0, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 11, 2, 1, 0, KEY(55, 1), 6, 1, 1,
		0, 0, 0, 0);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 15, 2, 1, 0, KEY(55, 1), 10, 2, 1,
		0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0);
	DECODES(TR_OK, 8, 2, FIRST, 8, 16, 2, 1, 0, KEY(56, 1), 11, 11, 0, 0,
		1, 2, 3, 4, 5, 6, 7, 8);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 16, 2, 1, 0, KEY(56, 1), 11, 12,
		0, 0, 1, 2, 3, 4, 5, 6, 7, 8);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 15, 2, 1, 0, KEY(56, 1), 10, 11,
		0, 0, 1, 2, 3, 4, 5, 6, 7);
	DECODES(TR_ECORRUPT, 8, 2, FIRST, 8, 17, 2, 1, 0, KEY(56, 1), 12, 11,
		0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 'x');
}

static void test_chunk_headers(void)
{
	struct tr_chunk_header h = {.stream = 1, .records = 1, .first = 1,
				    .last = 1, .raw_size = 9,
				    .stored_size = 9};
	struct tr_chunk_header back, bad;
	uint8_t bytes[TR_CHUNK_HEADER];
	struct tr_error err;

	tr_chunk_encode(&h, bytes);
	CHECK(tr_chunk_decode(bytes, &back, &err) == 0);
	CHECK(memcmp(&h, &back, sizeof h) == 0);
#define REFUSED(code_, member, value)                                      \
	do {                                                               \
		bad = h;                                                   \
		bad.member = (value);                                      \
		tr_chunk_encode(&bad, bytes);                              \
		CHECK(tr_chunk_decode(bytes, &back, &err) < 0 &&           \
		      err.code == (code_));                                \
	} while (0)
	REFUSED(TR_EFEATURE, flags, 4);
	REFUSED(TR_EFEATURE, incompat, 1);
	REFUSED(TR_EFEATURE, incompat, 0x8000);
	REFUSED(TR_ECORRUPT, stream, TR_MAX_STREAMS);
	REFUSED(TR_ECORRUPT, records, 0);
	REFUSED(TR_ECORRUPT, records, 10);
	REFUSED(TR_ECORRUPT, first, 0);
	REFUSED(TR_ECORRUPT, first, 2);
	REFUSED(TR_ECORRUPT, raw_size, TR_MAX_CHUNK_RAW + 1);
	REFUSED(TR_ECORRUPT, stored_size, 8);
	REFUSED(TR_ECORRUPT, flags, TR_CHUNK_DEFLATE);
#undef REFUSED
}

/*
 * ---- Deflate: the library in use against zlib ----
 */
#undef HAVE_LIBDEFLATE
#define tr_deflater_new zlib_deflater_new
#define tr_deflater_free zlib_deflater_free
#define tr_deflate zlib_deflate
#define tr_inflater_new zlib_inflater_new
#define tr_inflater_free zlib_inflater_free
#define tr_inflate zlib_inflate
#define tr_deflater zlib_deflater
#define tr_inflater zlib_inflater
struct tr_deflater;
struct tr_inflater;
struct tr_deflater *tr_deflater_new(void);
void tr_deflater_free(struct tr_deflater *d);
size_t tr_deflate(struct tr_deflater *d, const void *from, size_t n, void *to);
struct tr_inflater *tr_inflater_new(void);
void tr_inflater_free(struct tr_inflater *f);
bool tr_inflate(struct tr_inflater *f, const void *from, size_t n, void *to,
		size_t size);
#include "libtrace/format/deflate.c"
#undef tr_deflater_new
#undef tr_deflater_free
#undef tr_deflate
#undef tr_inflater_new
#undef tr_inflater_free
#undef tr_inflate
#undef tr_deflater
#undef tr_inflater

static void test_deflate(void)
{
	struct tr_deflater *d = tr_deflater_new();
	struct tr_inflater *f = tr_inflater_new();
	struct zlib_deflater *zd = zlib_deflater_new();
	struct zlib_inflater *zf = zlib_inflater_new();
	static uint8_t plain[200000], packed[2][200000], back[200001];

	for (size_t n = 0; n <= sizeof plain; n = n * 3 + 1) {
		size_t a, b;

		for (size_t i = 0; i < n; i++)
			plain[i] = (uint8_t)(i * i >> 7 & 0x1f);
		a = tr_deflate(d, plain, n, packed[0]);
		b = zlib_deflate(zd, plain, n, packed[1]);
		if (n > 1000)
			CHECK(a > 0 && a < n && b > 0 && b < n);
		if (a) {
			CHECK(zlib_inflate(zf, packed[0], a, back, n));
			CHECK(memcmp(plain, back, n) == 0);
			CHECK(!tr_inflate(f, packed[0], a, back, n + 1));
			CHECK(!tr_inflate(f, packed[0], a, back, n - 1));
			CHECK(!tr_inflate(f, packed[0], a - 1, back, n));
		}
		if (b) {
			CHECK(tr_inflate(f, packed[1], b, back, n));
			CHECK(memcmp(plain, back, n) == 0);
			CHECK(!zlib_inflate(zf, packed[1], b, back, n + 1));
			CHECK(!zlib_inflate(zf, packed[1], b, back, n - 1));
			CHECK(!zlib_inflate(zf, packed[1], b - 1, back, n));
		}
	}
	syn.state = 1;
	for (size_t i = 0; i < sizeof plain; i++)
		plain[i] = (uint8_t)syn_random(&syn);
	CHECK(tr_deflate(d, plain, sizeof plain, packed[0]) == 0);
	CHECK(zlib_deflate(zd, plain, sizeof plain, packed[0]) == 0);
	tr_deflater_free(d);
	tr_inflater_free(f);
	zlib_deflater_free(zd);
	zlib_inflater_free(zf);
}

/*
 * ---- Manifest ----
 */

static char *words[] = {(char[]){"one"}, (char[]){"t\xc3\xbcr"},
			(char[]){"\xff\xfe"}, (char[]){""}, NULL};
static char *none[] = {NULL};

static struct tr_manifest full_manifest(void)
{
	return (struct tr_manifest){
		.version = 1, .incompat = none, .compat = words,
		.uuid = "01234567-89ab-cdef-0123-456789abcdef",
		.tool = words[0], .host = words[1], .kernel = words[2],
		.machine = words[3], .cpu_model = words[0],
		.cpu_flags = words[1], .xcr0 = UINT64_MAX, .argv = words,
		.envp = words, .cwd = words[2], .start_ns = INT64_MIN,
		.duration_ns = INT64_MAX, .labels = none, .complete = true,
		.status = -5, .events = 1, .tasks = 2, .streams = 3,
		.files = 4, .stopped = words[1], .stopped_at = 77,
	};
}

static bool same_list(char *const *a, char *const *b)
{
	for (; *a && *b; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return !*a && !*b;
}

static bool same_manifest(const struct tr_manifest *a,
			  const struct tr_manifest *b)
{
	return a->version == b->version &&
	       same_list(a->incompat, b->incompat) &&
	       same_list(a->compat, b->compat) &&
	       strcmp(a->uuid, b->uuid) == 0 &&
	       strcmp(a->tool, b->tool) == 0 &&
	       strcmp(a->host, b->host) == 0 &&
	       strcmp(a->kernel, b->kernel) == 0 &&
	       strcmp(a->machine, b->machine) == 0 &&
	       strcmp(a->cpu_model, b->cpu_model) == 0 &&
	       strcmp(a->cpu_flags, b->cpu_flags) == 0 && a->xcr0 == b->xcr0 &&
	       same_list(a->argv, b->argv) && same_list(a->envp, b->envp) &&
	       strcmp(a->cwd, b->cwd) == 0 && a->start_ns == b->start_ns &&
	       a->duration_ns == b->duration_ns &&
	       same_list(a->labels, b->labels) && a->complete == b->complete &&
	       a->status == b->status && a->events == b->events &&
	       a->tasks == b->tasks && a->streams == b->streams &&
	       a->files == b->files && strcmp(a->stopped, b->stopped) == 0 &&
	       a->stopped_at == b->stopped_at;
}

static void test_manifest(void)
{
	char path[128];
	TR_AUTOCLOSE int dirfd = new_dir("m", path, sizeof path);
	struct tr_manifest m = full_manifest(), back;
	struct tr_error err;
	struct image file;

	CHECK(tr_manifest_read(dirfd, &back, &err) < 0 &&
	      err.code == TR_ENOTRACE);
	CHECK(tr_reader_open(path, &err) == NULL && err.code == TR_ENOTRACE &&
	      strstr(err.text, "m: not a trace (no manifest.json)"));
	REQUIRE(tr_manifest_write(dirfd, &m, &err) == 0);
	REQUIRE(tr_manifest_read(dirfd, &back, &err) == 0);
	CHECK(same_manifest(&m, &back));
	tr_manifest_release(&back);

	load_image(&file, path, "manifest.json");
	for (size_t i = 0; i < file.bytes.len; i++) {
		uint8_t mask = (uint8_t)(1u << i % 8);

		file.bytes.data[i] ^= mask;
		store_image(&file, file.bytes.len);
		file.bytes.data[i] ^= mask;
		CHECK(tr_manifest_read(dirfd, &back, &err) < 0 &&
		      err.code == TR_ECORRUPT);
		store_image(&file, i);
		CHECK(tr_manifest_read(dirfd, &back, &err) < 0 &&
		      err.code == TR_ECORRUPT);
	}
	tr_buf_put_u8(&file.bytes, '\n');
	store_image(&file, file.bytes.len);
	CHECK(tr_manifest_read(dirfd, &back, &err) < 0);
	tr_buf_release(&file.bytes);
}

/* Replace a piece of the manifest and sign it again. */
static void forge(int dirfd, const char *from, const char *to)
{
	struct tr_error err;
	struct tr_manifest m = full_manifest();
	TR_AUTOBUF struct tr_buf b = {0};
	const char *at;
	TR_AUTOFREE char *text = NULL;
	size_t body;

	CHECK(tr_manifest_write(dirfd, &m, &err) == 0);
	CHECK(tr_read_file(dirfd, "manifest.json", 1 << 20, &b, &err) == 0);
	body = b.len - 35;
	at = memmem(b.data, body, from, strlen(from));
	if (!HOLDS(at != NULL))
		return;
	text = tr_printf("%.*s%s%.*s", (int)(at - (char *)b.data), b.data, to,
			 (int)((char *)b.data + body - at - strlen(from)),
			 at + strlen(from));
	b.len = 0;
	tr_buf_put(&b, text, strlen(text));
	b.len += (size_t)sprintf((char *)tr_buf_reserve(&b, 64),
				 "  \"checksum\": \"%016" PRIx64 "\"\n}\n",
				 (uint64_t)XXH3_64bits(b.data, b.len));
	CHECK(tr_replace_file(dirfd, "manifest.json", b.data, b.len, false, &err) ==
	      0);
}

static void test_manifest_refused(void)
{
	static const struct {
		const char *from, *to;
		enum tr_code code;
	} cases[] = {
		{"\"version\": 1", "\"version\": 2", TR_EVERSION},
		{"\"version\": 1", "\"version\": 2, \"x\": 1", TR_EVERSION},
		{"\"version\": 1", "\"version\": 0", TR_ECORRUPT},
		{"\"version\": 1", "\"version\": \"1\"", TR_ECORRUPT},
		{"\"incompat\": []", "\"incompat\": [\"warp\"]", TR_EFEATURE},
		{"\"compat\": [", "\"compat\": [\"warp\", ", TR_OK},
		{"\"format\": \"trace\"", "\"format\": \"tract\"", TR_ECORRUPT},
		{"\"0123", "\"x123", TR_ECORRUPT},
		{"\"0123", "\"123", TR_ECORRUPT},
		{"\"events\": 1", "\"events\": -1", TR_ECORRUPT},
		{"\"events\": 1", "\"event\": 1", TR_ECORRUPT},
		{"\"status\": -5", "\"status\": 2147483648", TR_ECORRUPT},
		{"\"fffe\"", "\"ff0\"", TR_ECORRUPT},
		{"\"fffe\"", "\"ff00\"", TR_ECORRUPT},
		{"\"fffe\"", "\"fffg\"", TR_ECORRUPT},
		{"\"complete\": true", "\"complete\": 1", TR_ECORRUPT},
		{"\"events\": 1", "\"events\": 1, \"new\": {}", TR_OK},
		{"\"events\": 1", "\"events\": 1, \"events\": 1", TR_ECORRUPT},
		{"{", "[", TR_ECORRUPT},
	};
	char path[128];
	TR_AUTOCLOSE int dirfd = new_dir("m", path, sizeof path);

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tr_manifest back;
		struct tr_error err = {0};
		int r;

		forge(dirfd, cases[i].from, cases[i].to);
		r = tr_manifest_read(dirfd, &back, &err);
		if (!HOLDS(r < 0 ? err.code == cases[i].code
				 : cases[i].code == TR_OK))
			printf("# case %zu: %s\n", i, err.text);
		if (cases[i].code == TR_EFEATURE)
			CHECK(strstr(err.text, "\"warp\"") != NULL);
		if (r == 0)
			tr_manifest_release(&back);
	}
}

/*
 * ---- The specification has every type, field and note of the tables ----
 */

static bool spec_has(const struct tr_buf *spec, unsigned n, const char *name,
		     const char *sign)
{
	char row[128];

	snprintf(row, sizeof row, "\n| %u | %s | %s", n, name, sign);
	if (memmem(spec->data, spec->len, row, strlen(row)))
		return true;
	printf("# formats/trace-format.md lacks \"%s\"\n", row + 1);
	return false;
}

static void test_specification(void)
{
	TR_AUTOBUF struct tr_buf spec = {0};
	struct tr_error err;

	REQUIRE(tr_read_file(AT_FDCWD, "formats/trace-format.md", 1 << 20,
			     &spec, &err) == 0);
#define X(NAME, code, name, meaning)                                       \
	CHECK(spec_has(&spec, code, name, ""));
	TR_EVENT_TYPES(X)
	TR_NOTES(X)
#undef X
#define X(NAME, tag, name, sign, form)                                     \
	CHECK(spec_has(&spec, tag, name, #sign " | "));
	TR_SCALAR_FIELDS(X)
#undef X
#define X(NAME, tag, name)                                                 \
	CHECK(spec_has(&spec, tag, name, ""));
	TR_STRUCT_FIELDS(X)
#undef X
}

/*
 * ---- Golden trace: version 1 is read, and written, the same for ever ----
 */

static void compare_file(const char *dir, const char *name)
{
	struct image ours, golden;

	load_image(&ours, dir, name);
	load_image(&golden, GOLDEN_DIR, name);
	CHECK(ours.bytes.len > 0 && ours.bytes.len == golden.bytes.len &&
	      memcmp(ours.bytes.data, golden.bytes.data, ours.bytes.len) == 0);
	tr_buf_release(&ours.bytes);
	tr_buf_release(&golden.bytes);
}

static void test_golden_written(void)
{
	char path[128];
	TR_AUTOCLOSE int dirfd = new_dir("golden", path, sizeof path);
	struct tr_error err;

	REQUIRE(write_golden(dirfd, &err) == 0);
	compare_file(path, "manifest.json");
	compare_file(path, "index");
	compare_file(path, "chunks/000000");
	compare_file(path, "chunks/000001");
	compare_file(path, "chunks/000002");
}

/* The committed files are the ones version 1 was released with. */
static void test_golden_unchanged(void)
{
	CHECK(system("cd tests/golden && sha256sum -c --quiet v1.sha256") ==
	      0);
}

static void test_golden_read(void)
{
	struct tr_error err;
	struct tr_reader *r = tr_reader_open(GOLDEN_DIR, &err);
	struct tr_cursor *c;

	syn.small = true;
	REQUIRE(r != NULL);
	CHECK(tr_reader_complete(r) && !tr_reader_note(r));
	c = tr_cursor_all(r);
	check_events(c, 1, GOLDEN_EVENTS, GOLDEN_STREAMS);
	tr_cursor_free(c);
	tr_reader_close(r);
}

int main(void)
{
	/* The tests rewrite small files very often: best not on a disk. */
	snprintf(base, sizeof base, "%s/test_format.XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(base))
		return 1;
	/* First: they need a process that has not looked at its faults. */
	RUN(test_disk_full);
	RUN(test_killed);
	RUN(test_index_fails);
	RUN(test_round_trip);
	RUN(test_round_trip_stored);
	RUN(test_round_trip_blocks);
	RUN(test_chunk_boundaries);
	RUN(test_many_streams);
	RUN(test_ended_streams);
	RUN(test_cut_catalogue);
	RUN(test_streams_apart);
	RUN(test_cursor_from);
	RUN(test_flush);
	RUN(test_writer_refuses);
	RUN(test_truncation);
	RUN(test_flipped_bytes);
	RUN(test_flipped_deflate);
	RUN(test_flipped_index);
	RUN(test_wrong_index);
	RUN(test_lying_index);
	RUN(test_resync);
	RUN(test_missing_file);
	RUN(test_far_chunk_file);
	RUN(test_hostile_files);
	RUN(test_future_chunk);
	RUN(test_shrinking_file);
	RUN(test_parts_together);
	RUN(test_every_type);
	RUN(test_scalar_limits);
	RUN(test_bytes_limits);
	RUN(test_mem_limits);
	RUN(test_map_limits);
	RUN(test_arg_limits);
	RUN(test_many_tasks);
	RUN(test_too_many_tasks);
	RUN(test_compatible_parts);
	RUN(test_malformed_records);
	RUN(test_malformed_fields);
	RUN(test_chunk_headers);
	RUN(test_deflate);
	RUN(test_manifest);
	RUN(test_manifest_refused);
	RUN(test_specification);
	RUN(test_golden_written);
	RUN(test_golden_unchanged);
	RUN(test_golden_read);
	remove_tree(base);
	return check_status();
}
