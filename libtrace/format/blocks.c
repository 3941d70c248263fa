/* Reading blocks: the chunk with one is found by its number. */
#include "libtrace/format/blocks.h"

#include <inttypes.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/codec.h"
#include "libtrace/format/loader.h"
#include "libtrace/format/page_list.h"
#include "libtrace/format/reader_impl.h"

/* Events that follow each other use the same chunks, and so do processes of a
 * kind: in one order, so that what was used least recently goes first. */
#define CHUNKS_KEPT 16u

struct kept {
	const struct tr_chunk_ref *ref; /* NULL: unused */
	struct tr_chunk_header h;
	struct tr_buf payload;
	uint64_t used;
};

struct tr_blocks {
	struct tr_loader loader;
	struct tr_decoder decoder;
	struct kept kept[CHUNKS_KEPT];
	uint64_t clock;
};

/*
 * ---- The list ----
 */

void tr_block_list_put(struct tr_buf *b, size_t *next,
		       const struct tr_block_use *use)
{
	tr_buf_put_varint(b, use->index - *next);
	tr_buf_put_varint(b, use->number);
	tr_buf_put_varint(b, use->len);
	*next = use->index + 1;
}

bool tr_block_list_get(struct tr_span *s, size_t *next,
		       struct tr_block_use *use)
{
	struct tr_span in = *s;
	uint64_t distance, len;

	if (!tr_span_varint(&in, &distance) || distance > TR_MAX_RECORD ||
	    !tr_span_varint(&in, &use->number) || !use->number ||
	    !tr_span_varint(&in, &len) || !len || len > TR_MEM_PIECE)
		return false;
	use->index = *next + (size_t)distance;
	use->len = (size_t)len;
	*next = use->index + 1;
	*s = in;
	return true;
}

/*
 * ---- Chunks ----
 */

struct tr_blocks *tr_blocks_new(const struct tr_reader *reader)
{
	struct tr_blocks *b = tr_alloc(sizeof *b);

	tr_loader_init(&b->loader, reader);
	return b;
}

void tr_blocks_free(struct tr_blocks *b)
{
	if (!b)
		return;
	for (unsigned i = 0; i < CHUNKS_KEPT; i++)
		tr_buf_release(&b->kept[i].payload);
	tr_decoder_release(&b->decoder);
	tr_loader_release(&b->loader);
	free(b);
}

/* The chunk that must have the block, or NULL. */
static const struct tr_chunk_ref *find_chunk(const struct tr_lane_refs *l,
					     uint64_t number)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->chunks[mid]->last < number)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == l->n || l->chunks[low]->first > number)
		return NULL;
	return l->chunks[low];
}

static const struct kept *load(struct tr_blocks *b,
			       const struct tr_chunk_ref *ref,
			       struct tr_error *err)
{
	struct kept *k = b->kept;

	for (unsigned i = 0; i < CHUNKS_KEPT && k->ref != ref; i++)
		if (b->kept[i].ref == ref || b->kept[i].used < k->used)
			k = &b->kept[i];
	if (k->ref != ref) {
		k->ref = NULL;
		if (tr_loader_load(&b->loader, ref, &k->h, &k->payload,
				   err) < 0)
			return NULL;
		k->ref = ref;
	}
	k->used = ++b->clock;
	return k;
}

/* Append the block's bytes. */
static int get(struct tr_blocks *b, const struct tr_block_use *use,
	       struct tr_buf *bytes, struct tr_error *err)
{
	const struct tr_chunk_ref *ref =
		find_chunk(&b->loader.reader->blocks, use->number);
	const struct tr_event *ev = &b->decoder.ev;
	const struct kept *k;
	int r;

	if (!ref)
		return tr_fail(err, TR_ECORRUPT, "it is missing");
	k = load(b, ref, err);
	if (!k)
		return -1;
	tr_decoder_begin(&b->decoder, &k->h, k->payload.data);
	while ((r = tr_decoder_next(&b->decoder, err)) > 0)
		if (ev->number == use->number)
			break;
	if (r < 0)
		return -1;
	if (r == 0 || ev->mem[0].bytes.len != use->len)
		return tr_fail(err, TR_ECORRUPT, "it is not what it should be");
	tr_buf_put(bytes, ev->mem[0].bytes.data, use->len);
	return 0;
}

int tr_blocks_resolve(struct tr_blocks *b, struct tr_event *ev,
		      struct tr_buf *bytes, struct tr_error *err)
{
	struct tr_span s = tr_span_of(&ev->blocks);
	struct tr_block_use use;
	size_t next = 0, at = 0;

	bytes->len = 0;
	while (tr_block_list_get(&s, &next, &use))
		if (get(b, &use, bytes, err) < 0)
			return tr_error_prefix(err, "event %" PRIu64
					       ": block %" PRIu64, ev->number,
					       use.number);
	s = tr_span_of(&ev->blocks);
	next = 0;
	while (tr_block_list_get(&s, &next, &use)) {
		ev->mem[use.index].bytes =
			(struct tr_bytes){bytes->data + at, use.len};
		at += use.len;
	}
	ev->has &= ~((uint64_t)1 << TR_F_BLOCKS);
	ev->blocks = (struct tr_bytes){0};
	return 0;
}
