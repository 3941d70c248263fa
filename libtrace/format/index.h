/*
 * The index: where every chunk is.  A file of its own, written at the end and
 * checked as a whole; a trace without it is read by scanning.  Specified in
 * formats/trace-format.md, "Index".
 */
#ifndef TR_FORMAT_INDEX_H
#define TR_FORMAT_INDEX_H

#include <stddef.h>

#include "libtrace/base/error.h"
#include "libtrace/format/home.h"
#include "libtrace/format/reader.h"

/* Refs are in the order of the chunk files and of the chunks in them. */
int tr_index_write(int dirfd, const struct tr_chunk_ref *refs, size_t n,
		   struct tr_error *err) TR_MUST_CHECK;
/*
 * *refs is the caller's to free.  Checks the file and that its entries follow
 * each other without gaps; not that they agree with the chunk files.
 */
int tr_index_read(int dirfd, struct tr_chunk_ref **refs, size_t *n,
		  struct tr_error *err) TR_MUST_CHECK;
int tr_index_read_at(const struct tr_home *home, struct tr_chunk_ref **refs,
		     size_t *n, struct tr_error *err) TR_MUST_CHECK;

#endif
