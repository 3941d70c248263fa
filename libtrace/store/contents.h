/* The stored files an archive brought, and whether they are the right ones. */
#ifndef TR_STORE_CONTENTS_H
#define TR_STORE_CONTENTS_H

#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"

struct tr_contents; /* file id -> SHA-256 */

struct tr_contents *tr_contents_new(void);
void tr_contents_free(struct tr_contents *c);
/* id is above 0 and not there yet. */
void tr_contents_add(struct tr_contents *c, uint32_t id,
		     const uint8_t sha256[TR_SHA256_SIZE]);
/* NULL when the id is not there; valid until the next add. */
const uint8_t *tr_contents_get(const struct tr_contents *c, uint32_t id);

/*
 * Compare with what the trace in directory `path` says: every digest it holds
 * must be right, and in a complete trace every file must be there and belong
 * to it.  `name` is the trace's name for messages.
 */
int tr_contents_check(struct tr_contents *c, const char *path,
		      const char *name, struct tr_error *err) TR_MUST_CHECK;

#endif
