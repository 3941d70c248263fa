/*
 * Cursors: the streams of a trace merged by event number, one inflated chunk
 * a stream, opened when its first event is due.
 */
#include "libtrace/format/reader.h"

#include <inttypes.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/blocks.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/codec.h"
#include "libtrace/format/loader.h"
#include "libtrace/format/reader_impl.h"

/* An inflated chunk and its decoder; reused from stream to stream. */
struct opened {
	struct tr_decoder decoder;
	struct tr_buf raw;
	struct tr_buf blocks; /* those of the decoder's event */
	struct opened *next;  /* of the unused ones */
};

/*
 * A stream's position.  `key` orders lanes: the number of the event decoded
 * (ready), or that of the chunk's first event when no chunk is open.
 */
struct lane {
	const struct tr_lane_refs *refs;
	size_t pos;         /* of the open or next chunk; refs->n: ended */
	struct opened *open;
	bool ready;
	bool linked;        /* `chain` is known */
	uint64_t chain;     /* check of the chunk before */
	uint64_t key;
};

struct tr_cursor {
	const struct tr_reader *reader;
	uint64_t from;
	struct lane *lanes;
	struct lane **heap; /* lanes that wait, least key first */
	size_t nheap;
	struct lane *current;
	struct opened *unused;
	struct tr_loader loader;
	struct tr_blocks *blocks; /* NULL: none were needed so far */
};

/*
 * ---- Heap of lanes ----
 */

static void sift_down(struct tr_cursor *c, size_t i)
{
	struct lane *l = c->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= c->nheap)
			break;
		if (child + 1 < c->nheap &&
		    c->heap[child + 1]->key < c->heap[child]->key)
			child++;
		if (l->key <= c->heap[child]->key)
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = l;
}

static struct lane *heap_pop(struct tr_cursor *c)
{
	struct lane *l = c->heap[0];

	c->heap[0] = c->heap[--c->nheap];
	if (c->nheap > 0)
		sift_down(c, 0);
	return l;
}

/* Exchange the lane for the least one. */
static struct lane *heap_swap(struct tr_cursor *c, struct lane *l)
{
	struct lane *top = c->heap[0];

	c->heap[0] = l;
	sift_down(c, 0);
	return top;
}

/*
 * ---- Chunks ----
 */

static struct opened *take_opened(struct tr_cursor *c)
{
	struct opened *o = c->unused;

	if (!o)
		return tr_alloc(sizeof *o);
	c->unused = o->next;
	return o;
}

static void drop_opened(struct tr_cursor *c, struct lane *l)
{
	if (!l->open)
		return;
	l->open->next = c->unused;
	c->unused = l->open;
	l->open = NULL;
}

static const struct tr_chunk_ref *ref_of(const struct lane *l)
{
	return l->refs->chunks[l->pos];
}

/* Add where to the error. */
static int at_chunk(const struct tr_cursor *c, const struct tr_chunk_ref *ref,
		    struct tr_error *err)
{
	char name[TR_CHUNK_NAME];

	tr_chunk_name(name, ref->file);
	return tr_error_prefix(err, "%s: %s: chunk at byte %" PRIu64
			       " (stream %u, event %" PRIu64 ")",
			       c->reader->path, name, ref->offset,
			       ref->stream, ref->first);
}

/* Is this the chunk that follows in the stream? */
static int check_link(struct lane *l, const struct tr_chunk_header *h,
		      struct tr_error *err)
{
	const struct tr_chunk_ref *before;

	if (l->pos == 0 && h->previous != 0)
		return tr_fail(err, TR_ECORRUPT,
			       "the stream's beginning is missing");
	if (l->pos == 0)
		return 0;
	if (l->linked && h->previous != l->chain)
		return tr_fail(err, TR_ECORRUPT,
			       "does not follow the stream's chunk before: "
			       "events are missing");
	before = l->refs->chunks[l->pos - 1];
	if (before->flags & TR_CHUNK_LAST || h->first < before->last)
		return tr_fail(err, TR_ECORRUPT,
			       "follows the stream's end or goes back");
	return 0;
}

static int load_chunk(struct tr_cursor *c, struct lane *l,
		      struct tr_error *err)
{
	const struct tr_chunk_ref *ref = ref_of(l);
	struct opened *o = l->open = take_opened(c);
	struct tr_chunk_header h;

	if (tr_loader_load(&c->loader, ref, &h, &o->raw, err) < 0 ||
	    check_link(l, &h, err) < 0)
		return at_chunk(c, ref, err);
	tr_decoder_begin(&o->decoder, &h, o->raw.data);
	l->linked = true;
	l->chain = h.check;
	return 0;
}

/* Give the memory of the event that is stored in blocks its bytes. */
static int put_blocks(struct tr_cursor *c, struct opened *o,
		      struct tr_error *err)
{
	if (!c->blocks)
		c->blocks = tr_blocks_new(c->reader);
	return tr_blocks_resolve(c->blocks, &o->decoder.ev, &o->blocks, err);
}

/* Decode the open chunk's next event, or leave the chunk. */
static int advance(struct tr_cursor *c, struct lane *l, struct tr_error *err)
{
	struct tr_event *ev = &l->open->decoder.ev;
	int r = tr_decoder_next(&l->open->decoder, err);

	if (r > 0 && tr_event_has(ev, TR_F_BLOCKS) && ev->number >= c->from)
		r = put_blocks(c, l->open, err) < 0 ? -1 : 1;
	l->ready = r > 0;
	if (r < 0)
		return at_chunk(c, ref_of(l), err);
	if (r > 0) {
		l->key = ev->number;
		return 0;
	}
	drop_opened(c, l);
	if (++l->pos < l->refs->n)
		l->key = ref_of(l)->first;
	return 0;
}

/*
 * ---- Cursors ----
 */

static void place_lane(struct tr_cursor *c, struct lane *l,
		       const struct tr_lane_refs *refs)
{
	l->refs = refs;
	/* Chunks are in order: skip those that end before. */
	while (l->pos < refs->n && ref_of(l)->last < c->from)
		l->pos++;
	if (l->pos == refs->n)
		return;
	l->key = ref_of(l)->first;
	c->heap[c->nheap++] = l;
}

static struct tr_cursor *new_cursor(const struct tr_reader *r, size_t first,
				    size_t n, uint64_t from)
{
	struct tr_cursor *c = tr_alloc(sizeof *c);

	c->reader = r;
	c->from = from;
	tr_loader_init(&c->loader, r);
	c->lanes = tr_alloc(n * sizeof *c->lanes);
	c->heap = tr_alloc(n * sizeof *c->heap);
	for (size_t i = 0; i < n; i++)
		place_lane(c, &c->lanes[i], &r->lanes[first + i]);
	for (size_t i = c->nheap / 2; i-- > 0;)
		sift_down(c, i);
	return c;
}

struct tr_cursor *tr_cursor_all(struct tr_reader *r)
{
	return new_cursor(r, 0, r->nlanes, 0);
}

struct tr_cursor *tr_cursor_from(struct tr_reader *r, uint64_t number)
{
	return new_cursor(r, 0, r->nlanes, number);
}

struct tr_cursor *tr_cursor_stream(struct tr_reader *r, uint32_t stream)
{
	size_t low = 0, high = r->nlanes;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->lanes[mid].chunks[0]->stream < stream)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < r->nlanes && r->lanes[low].chunks[0]->stream == stream)
		return new_cursor(r, low, 1, 0);
	return new_cursor(r, 0, 0, 0);
}

static void free_opened(struct opened *o)
{
	if (!o)
		return;
	tr_decoder_release(&o->decoder);
	tr_buf_release(&o->raw);
	tr_buf_release(&o->blocks);
	free(o);
}

void tr_cursor_free(struct tr_cursor *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nheap; i++)
		free_opened(c->heap[i]->open);
	if (c->current)
		free_opened(c->current->open);
	while (c->unused) {
		struct opened *o = c->unused;

		c->unused = o->next;
		free_opened(o);
	}
	tr_loader_release(&c->loader);
	tr_blocks_free(c->blocks);
	free(c->lanes);
	free(c->heap);
	free(c);
}

/*
 * Make the lane with the least key the current one.  On a tie the current one
 * stays: `more` records share their event's number, and nothing may come
 * between.  False at the end.
 */
static bool choose(struct tr_cursor *c)
{
	struct lane *l = c->current;

	if (l && l->pos == l->refs->n)
		l = NULL;
	if (!l && c->nheap > 0)
		l = heap_pop(c);
	else if (l && c->nheap > 0 && c->heap[0]->key < l->key)
		l = heap_swap(c, l);
	c->current = l;
	return l != NULL;
}

static int stop(struct tr_cursor *c)
{
	for (size_t i = 0; i < c->nheap; i++)
		drop_opened(c, c->heap[i]);
	if (c->current)
		drop_opened(c, c->current);
	c->nheap = 0;
	c->current = NULL;
	return -1;
}

int tr_cursor_next(struct tr_cursor *c, const struct tr_event **ev,
		   struct tr_error *err)
{
	if (c->current && c->current->ready &&
	    advance(c, c->current, err) < 0)
		return stop(c);
	while (choose(c)) {
		struct lane *l = c->current;

		if (l->ready && l->key >= c->from) {
			*ev = &l->open->decoder.ev;
			return 1;
		}
		if (!l->open && load_chunk(c, l, err) < 0)
			return stop(c);
		if (advance(c, l, err) < 0)
			return stop(c);
	}
	return 0;
}
