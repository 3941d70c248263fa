/*
 * Lists of sites in a file's code that were patched before, as `file` events
 * hold them (formats/trace-format.md, "Structured").
 */
#ifndef TR_FORMAT_SITE_LIST_H
#define TR_FORMAT_SITE_LIST_H

#include "libtrace/base/buf.h"
#include "libtrace/format/event.h"

/* Offsets in the file; what they mean: tracee/stub.h. */
struct tr_listed_site {
	uint64_t at;
	enum tr_insn insn; /* 0: a system call */
	uint8_t length;
	uint64_t via; /* 0: none */
	uint64_t hole;
};

/* Append a site; *next, 0 at first, is the least `at` possible.  `via` is not
 * `at`. */
void tr_site_list_put(struct tr_buf *b, uint64_t *next,
		      const struct tr_listed_site *site);

/* Take one from the front; false at the end, and where the bytes are no list,
 * which leaves some. */
bool tr_site_list_get(struct tr_span *s, uint64_t *next,
		      struct tr_listed_site *site);

#endif
