/* The writer's foreground half: one open chunk per stream, encoding, sealing. */
#include "libtrace/format/writer.h"

#include <inttypes.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/format/append.h"
#include "libtrace/format/blocks.h"
#include "libtrace/format/codec.h"

#define CHUNK_SIZE (256u << 10)

struct stream {
	uint32_t id;
	bool begun;            /* a chunk of it was sealed */
	struct tr_codec codec;
	struct tr_buf buf;     /* the open chunk; no memory: none is open */
	uint32_t records;
	uint64_t first, last;  /* event numbers; last outlives the chunk */
	uint64_t opened;       /* tr_now_ns() at the chunk's first event */
	struct stream *older, *newer; /* open chunks by age; newer: free list */
};

struct tr_writer {
	struct tr_appender *appender;
	uint32_t chunk_size;
	struct stream **streams; /* by id; NULL: not begun, or &ended */
	size_t cap;
	struct stream *oldest, *newest; /* streams with an open chunk */
	size_t nopen;
	struct stream *unused;   /* structures of ended streams */

	uint32_t block_size;
	struct tr_block_table *table; /* NULL: no blocks are made */
	struct stream *blocks;        /* their stream */
	struct tr_mem *mem;           /* of the event whose blocks were taken */
	size_t mem_cap;
	struct tr_buf uses;           /* its list of them */
	struct tr_read_from from;     /* where memory is from */
};

static struct stream ended; /* marks streams that were ended */

static struct stream *new_stream(struct tr_writer *w, uint32_t id)
{
	struct stream *s = w->unused;

	if (s)
		w->unused = s->newer;
	else
		s = tr_alloc(sizeof *s);
	s->id = id;
	s->begun = false;
	s->last = 0;
	s->newer = NULL;
	return s;
}

struct tr_writer *tr_writer_open(int dirfd, struct tr_error *err)
{
	return tr_writer_open_with(dirfd, &(struct tr_writer_options){0}, err);
}

struct tr_writer *tr_writer_open_with(int dirfd,
				      const struct tr_writer_options *o,
				      struct tr_error *err)
{
	struct tr_appender *a;
	struct tr_writer *w;

	/* A chunk exceeds its size by one record at most. */
	if (o->chunk_size > TR_MAX_CHUNK_RAW - TR_MAX_RECORD) {
		tr_fail(err, TR_EINVAL, "chunks of %u bytes are too large",
			o->chunk_size);
		return NULL;
	}
	a = tr_appender_open(dirfd, o, err);
	if (!a)
		return NULL;
	w = tr_alloc(sizeof *w);
	w->appender = a;
	w->chunk_size = o->chunk_size ? o->chunk_size : CHUNK_SIZE;
	if (o->block_size) {
		w->block_size = o->block_size;
		w->table = tr_block_table_new();
		w->blocks = new_stream(w, TR_BLOCK_STREAM);
	}
	return w;
}

static void grow_streams(struct tr_writer *w, uint32_t id)
{
	size_t cap = w->cap ? w->cap : 16;

	while (cap <= id)
		cap *= 2;
	w->streams = tr_realloc(w->streams, cap * sizeof *w->streams);
	for (size_t i = w->cap; i < cap; i++)
		w->streams[i] = NULL;
	w->cap = cap;
}

static struct stream *get_stream(struct tr_writer *w, uint32_t id,
				 struct tr_error *err)
{
	struct stream *s;

	if (id >= TR_BLOCK_STREAM) {
		tr_fail(err, TR_EINVAL, "stream %u: too many streams", id);
		return NULL;
	}
	if (id >= w->cap)
		grow_streams(w, id);
	s = w->streams[id];
	if (s == &ended) {
		tr_fail(err, TR_EINVAL, "stream %u has ended", id);
		return NULL;
	}
	if (!s)
		s = w->streams[id] = new_stream(w, id);
	return s;
}

/*
 * ---- The open chunk of a stream ----
 */

static void open_chunk(struct tr_writer *w, struct stream *s, uint64_t first)
{
	tr_appender_buffer(w->appender, &s->buf);
	tr_codec_begin(&s->codec, first);
	s->records = 0;
	s->first = first;
	s->opened = tr_now_ns();
	s->newer = NULL;
	s->older = w->newest;
	if (w->newest)
		w->newest->newer = s;
	else
		w->oldest = s;
	w->newest = s;
	w->nopen++;
}

static void unlink_chunk(struct tr_writer *w, struct stream *s)
{
	if (s->older)
		s->older->newer = s->newer;
	else
		w->oldest = s->newer;
	if (s->newer)
		s->newer->older = s->older;
	else
		w->newest = s->older;
	s->older = s->newer = NULL;
	w->nopen--;
}

static void seal_clone(struct tr_writer *w, struct stream *s, uint32_t flags,
		       const struct tr_clone *clone)
{
	struct tr_chunk_header h = {
		.flags = flags,
		.stream = s->id,
		.records = s->records,
		.first = s->first,
		.last = s->last,
	};

	/* Blocks are on disk before what names them. */
	if (w->blocks && s != w->blocks && w->blocks->buf.data)
		seal_clone(w, w->blocks, 0, NULL);
	unlink_chunk(w, s);
	tr_appender_put(w->appender, &h, &s->buf, clone);
	s->begun = true;
}

static void seal_chunk(struct tr_writer *w, struct stream *s, uint32_t flags)
{
	seal_clone(w, s, flags, NULL);
}

/* A stream whose events are all in sealed chunks ends with an empty one. */
static void seal_last(struct tr_writer *w, struct stream *s)
{
	if (!s->buf.data && s->begun)
		open_chunk(w, s, s->last);
	if (s->buf.data)
		seal_chunk(w, s, TR_CHUNK_LAST);
}

static int add_record(struct tr_writer *w, struct stream *s,
		      const struct tr_event *ev, struct tr_error *err)
{
	if (ev->number < 1 || ev->number < s->last)
		return tr_fail(err, TR_EINVAL,
			       "event %" PRIu64 " of stream %u cannot follow "
			       "event %" PRIu64, ev->number, s->id, s->last);
	if (!s->buf.data)
		open_chunk(w, s, ev->number);
	if (tr_encode(&s->codec, ev, &s->buf, err) < 0) {
		if (s->records == 0) {
			unlink_chunk(w, s);
			tr_buf_release(&s->buf);
		}
		return -1;
	}
	s->records++;
	s->last = ev->number;
	return 0;
}

static int put_record(struct tr_writer *w, struct stream *s,
		      const struct tr_event *ev, struct tr_error *err)
{
	if (add_record(w, s, ev, err) < 0)
		return -1;
	if (s->buf.len >= TR_CHUNK_HEADER + (size_t)w->chunk_size ||
	    tr_codec_full(&s->codec))
		seal_chunk(w, s, 0);
	return 0;
}

/*
 * ---- Blocks ----
 */

/* Can it be a clone, which needs a chunk of its own? */
static bool clone_of(const struct tr_writer *w, const struct tr_mem *m,
		     struct tr_clone *clone)
{
	const struct tr_read_from *f = &w->from;

	if (!f->source || m->bytes.len < TR_CLONE_MIN || m->addr < f->addr ||
	    m->addr - f->addr > f->len ||
	    m->bytes.len > f->len - (m->addr - f->addr))
		return false;
	*clone = (struct tr_clone){f->source, f->offset + (m->addr - f->addr),
				   m->bytes.len};
	return true;
}

static int put_block(struct tr_writer *w, uint64_t number,
		     const struct tr_mem *m, struct tr_error *err)
{
	struct tr_mem mem = {0, m->bytes};
	struct tr_clone clone;
	struct tr_event ev = {.type = TR_EV_BLOCK, .number = number,
			      .stream = TR_BLOCK_STREAM, .mem = &mem,
			      .nmem = 1};

	tr_event_mark(&ev, TR_F_MEM);
	if (!clone_of(w, m, &clone))
		return put_record(w, w->blocks, &ev, err);
	if (w->blocks->buf.data)
		seal_chunk(w, w->blocks, 0);
	if (add_record(w, w->blocks, &ev, err) < 0)
		return -1;
	seal_clone(w, w->blocks, 0, &clone);
	return 0;
}

/* Take memory out of the event that is a block, or becomes one. */
static int take_blocks(struct tr_writer *w, struct tr_event *ev,
		       struct tr_error *err)
{
	size_t next = 0;

	w->uses.len = 0;
	for (size_t i = 0; i < ev->nmem; i++) {
		const struct tr_bytes *b = &ev->mem[i].bytes;
		struct tr_block_use use = {i, 0, b->len};
		bool is_new;

		TR_GROW(w->mem, i, w->mem_cap);
		w->mem[i] = ev->mem[i];
		if (b->len < w->block_size)
			continue;
		use.number = tr_block_number(w->table, b, &is_new);
		if (is_new && put_block(w, use.number, &ev->mem[i], err) < 0)
			return -1;
		tr_block_list_put(&w->uses, &next, &use);
		w->mem[i].bytes.len = 0;
	}
	if (!w->uses.len)
		return 0;
	ev->mem = w->mem;
	ev->blocks = (struct tr_bytes){w->uses.data, w->uses.len};
	tr_event_mark(ev, TR_F_BLOCKS);
	return 0;
}

void tr_writer_read_from(struct tr_writer *w, const struct tr_read_from *from)
{
	w->from = from ? *from : (struct tr_read_from){0};
}

/* Data that a program reads; other memory is hardly ever the same twice. */
static bool may_have_blocks(const struct tr_event *ev)
{
	return ev->nmem && (ev->type == TR_EV_SYSCALL ||
			    ev->type == TR_EV_MORE);
}

int tr_writer_put(struct tr_writer *w, const struct tr_event *ev,
		  struct tr_error *err)
{
	struct tr_event rest;
	struct stream *s;

	if (tr_appender_check(w->appender, err) < 0)
		return -1;
	s = get_stream(w, ev->stream, err);
	if (!s)
		return -1;
	if (w->table && may_have_blocks(ev)) {
		rest = *ev;
		ev = &rest;
		if (take_blocks(w, &rest, err) < 0)
			return -1;
	}
	return put_record(w, s, ev, err);
}

static void forget_stream(struct tr_writer *w, struct stream *s)
{
	w->streams[s->id] = &ended;
	s->newer = w->unused;
	w->unused = s;
}

int tr_writer_end_stream(struct tr_writer *w, uint32_t stream,
			 struct tr_error *err)
{
	if (tr_appender_check(w->appender, err) < 0)
		return -1;
	if (stream >= w->cap || !w->streams[stream] ||
	    w->streams[stream] == &ended)
		return 0;
	seal_last(w, w->streams[stream]);
	forget_stream(w, w->streams[stream]);
	return 0;
}

int tr_writer_flush(struct tr_writer *w, uint64_t max_age_ns,
		    struct tr_error *err)
{
	uint64_t now = tr_now_ns();

	while (w->oldest && now - w->oldest->opened >= max_age_ns)
		seal_chunk(w, w->oldest, 0);
	if (tr_appender_check(w->appender, err) < 0)
		return -1;
	return w->nopen > INT32_MAX ? INT32_MAX : (int)w->nopen;
}

static void free_stream(struct stream *s)
{
	tr_codec_release(&s->codec);
	tr_buf_release(&s->buf);
	free(s);
}

static void free_writer(struct tr_writer *w)
{
	for (size_t i = 0; i < w->cap; i++)
		if (w->streams[i] && w->streams[i] != &ended)
			free_stream(w->streams[i]);
	while (w->unused) {
		struct stream *s = w->unused;

		w->unused = s->newer;
		free_stream(s);
	}
	if (w->blocks)
		free_stream(w->blocks);
	tr_block_table_free(w->table);
	tr_buf_release(&w->uses);
	free(w->mem);
	free(w->streams);
	free(w);
}

/* The catalogue last: its last chunk at the very end of the last file shows
 * that nothing was cut off. */
static void seal_all(struct tr_writer *w)
{
	if (w->blocks)
		seal_last(w, w->blocks);
	for (size_t i = 1; i <= w->cap; i++) {
		struct stream *s = w->streams[i % w->cap];

		if (s && s != &ended)
			seal_last(w, s);
	}
}

int tr_writer_close(struct tr_writer *w, struct tr_writer_stats *stats,
		    struct tr_error *err)
{
	int r;

	if (w->cap > 0)
		seal_all(w);
	r = tr_appender_close(w->appender, true, stats, err);
	free_writer(w);
	return r;
}

void tr_writer_abandon(struct tr_writer *w)
{
	struct tr_error err;

	/* Nothing is left to tell: what failed was told by the call that
	 * made the caller give up. */
	if (tr_appender_close(w->appender, false, NULL, &err) < 0)
		err.code = TR_OK;
	free_writer(w);
}
