/*
 * Lists of pages and their hashes, and of digests, as state events hold them
 * (formats/trace-format.md, "Structured").
 */
#ifndef TR_FORMAT_PAGE_LIST_H
#define TR_FORMAT_PAGE_LIST_H

#include "libtrace/base/buf.h"
#include "libtrace/format/event.h"

struct tr_page_hash {
	uint64_t addr; /* page aligned */
	uint64_t hash; /* 0: a page of zeros */
};

/* Append a page; *next, 0 at first, is where a page would directly follow. */
void tr_page_list_put(struct tr_buf *b, uint64_t *next,
		      const struct tr_page_hash *page);

/* Take one from the front; false at the end, and where the bytes are no list,
 * which leaves some. */
bool tr_page_list_get(struct tr_span *s, uint64_t *next,
		      struct tr_page_hash *page);

static inline struct tr_span tr_span_of(const struct tr_bytes *b)
{
	const uint8_t *p = b->data;

	return (struct tr_span){p, b->len ? p + b->len : p};
}

/* The digest of ev->map[i], or 0 when the event has none. */
uint64_t tr_map_digest(const struct tr_event *ev, size_t i);

#endif
