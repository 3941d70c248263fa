/*
 * The stored files that an archive brings for one trace, and whether they are
 * the right ones: what the trace's own events say of them.
 */
#ifndef TR_STORE_CONTENTS_H
#define TR_STORE_CONTENTS_H

#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"
#include "libtrace/store/catalogue.h"

struct tr_contents;

struct tr_contents *tr_contents_new(void);
void tr_contents_free(struct tr_contents *c);

/*
 * Read what the trace in directory `path` says, once; its manifest and chunks
 * are there by now.  `name` is the trace's name for messages, here and below.
 */
int tr_contents_load(struct tr_contents *c, const char *path, const char *name,
		     struct tr_error *err) TR_MUST_CHECK;

/*
 * What the trace says of file `id`, in *s; NULL when that is nothing, which
 * is refused in a complete trace.  After tr_contents_load.
 */
int tr_contents_expect(const struct tr_contents *c, uint32_t id,
		       const char *name, const struct tr_stored **s,
		       struct tr_error *err) TR_MUST_CHECK;

/* File `id`, which was not there yet, has this digest: is that right? */
int tr_contents_add(struct tr_contents *c, uint32_t id,
		    const uint8_t sha256[TR_SHA256_SIZE], const char *name,
		    struct tr_error *err) TR_MUST_CHECK;
/* The digest of a file added; NULL when it was not. */
const uint8_t *tr_contents_get(const struct tr_contents *c, uint32_t id);

/*
 * The next file, from the *i-th declared one on, that should be there and is
 * not; NULL when there is none.
 */
const struct tr_stored *tr_contents_missing(const struct tr_contents *c,
					    size_t *i);

/* Is everything else in a trace that claims to be complete whole? */
int tr_contents_check(const struct tr_contents *c, const char *path,
		      const char *name, struct tr_error *err) TR_MUST_CHECK;

#endif
