/* Reading single chunks of an open trace. */
#ifndef TR_FORMAT_LOADER_H
#define TR_FORMAT_LOADER_H

#include "libtrace/base/buf.h"
#include "libtrace/base/error.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/deflate.h"
#include "libtrace/format/home.h"

struct tr_loader {
	const struct tr_reader *reader;
	struct tr_inflater *inflater;
	struct tr_buf stored;
	struct tr_part part; /* chunk file `file`; fd -1: none */
	uint32_t file;
};

void tr_loader_init(struct tr_loader *l, const struct tr_reader *reader);
void tr_loader_release(struct tr_loader *l);

/*
 * Check the chunk's header and payload; payload gets the h->raw_size bytes of
 * its records in place of what it held.  Whether it follows the chunk before in
 * its stream is the caller's to say.
 */
int tr_loader_load(struct tr_loader *l, const struct tr_chunk_ref *ref,
		   struct tr_chunk_header *h, struct tr_buf *payload,
		   struct tr_error *err) TR_MUST_CHECK;

#endif
