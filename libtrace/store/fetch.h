/* Stored files taken from this machine's own files, checked by digest. */
#ifndef TR_STORE_FETCH_H
#define TR_STORE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/store/catalogue.h"
#include "libtrace/store/have.h"

enum tr_fetched { TR_FETCH_NONE, TR_FETCH_CLONED, TR_FETCH_COPIED };

/* Where contents may be found, besides the originals' own paths. */
struct tr_fetcher {
	const struct tr_have *have;  /* borrowed, or NULL */
	const char *const *places;   /* searched when nothing else has it;
					NULL-terminated, or NULL */
	struct tr_have *found;       /* there, once searched; owned */
};

/*
 * Fill the empty file open as out (for reading and writing) with the contents
 * that s tells, by a clone, or if `room` is not NULL by a copy of at most *room
 * bytes, which it is reduced by; only then are the places searched.  Nothing
 * that does not have the digest counts.  On NONE the file is empty again.
 */
int tr_fetch(struct tr_fetcher *f, int out, const struct tr_stored *s,
	     uint64_t *room, enum tr_fetched *how, struct tr_error *err)
	TR_MUST_CHECK;
void tr_fetcher_release(struct tr_fetcher *f);

#endif
