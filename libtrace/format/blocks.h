/*
 * Blocks: memory that is stored once, in a stream of its own, however many
 * events have it (formats/trace-format.md, "Blocks").
 *
 * A `mem` of an event on disk may have no bytes of its own: its field `blocks`
 * then says which block they are.  Writers put them there and readers give them
 * back; nobody else meets such an event.
 */
#ifndef TR_FORMAT_BLOCKS_H
#define TR_FORMAT_BLOCKS_H

#include "libtrace/base/buf.h"
#include "libtrace/base/error.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/event.h"

/* The stream of the blocks: one `block` event each, numbered from 1. */
#define TR_BLOCK_STREAM (TR_MAX_STREAMS - 1)

/* Records of this type say nothing: they fill room (clone.c). */
#define TR_PADDING_TYPE 129u

/* An entry of the field `blocks`: ev->mem[index] is block `number`. */
struct tr_block_use {
	size_t index;
	uint64_t number;
	size_t len; /* bytes of the block */
};

/* Append an entry; *next, 0 at first, is the least index possible. */
void tr_block_list_put(struct tr_buf *b, size_t *next,
		       const struct tr_block_use *use);
/* Take one from the front; false at the end, and where the bytes are no list,
 * which leaves some. */
bool tr_block_list_get(struct tr_span *s, size_t *next,
		       struct tr_block_use *use);

/* Writing: which memory is a block, and whether it was one before. */
struct tr_block_table;
struct tr_block_table *tr_block_table_new(void); /* NULL: no randomness */
void tr_block_table_free(struct tr_block_table *t);
/* The number of the block with these bytes; *is_new: it is to be written. */
uint64_t tr_block_number(struct tr_block_table *t, const struct tr_bytes *b,
			 bool *is_new);

/* Reading: the blocks of an open trace, those used last kept in memory. */
struct tr_blocks;
struct tr_blocks *tr_blocks_new(const struct tr_reader *reader);
void tr_blocks_free(struct tr_blocks *b);
/* Give the event's memory its bytes, which are kept in `bytes`, and take the
 * field off. */
int tr_blocks_resolve(struct tr_blocks *b, struct tr_event *ev,
		      struct tr_buf *bytes, struct tr_error *err) TR_MUST_CHECK;

#endif
