/* What a trace says of its stored files: file and digest events, by id. */
#ifndef TR_STORE_CATALOGUE_H
#define TR_STORE_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"
#include "libtrace/format/event.h"
#include "libtrace/format/reader.h"

struct tr_stored {
	uint32_t id;
	enum tr_store_method method;
	uint64_t size;
	int64_t mtime; /* ns */
	char *path;    /* of the original; "" when it has none in text form */
	bool has_digest;
	bool pages;    /* the digest is that of pages; it may have holes */
	uint8_t sha256[TR_SHA256_SIZE];
};

struct tr_catalogue {
	struct tr_stored *files; /* ascending ids */
	size_t n, cap;
};

/* On damage c holds what stands before it; release it in any case. */
int tr_catalogue_read(struct tr_catalogue *c, struct tr_reader *r,
		      struct tr_error *err) TR_MUST_CHECK;
/* The same for whom what stands before the damage will do. */
void tr_catalogue_read_some(struct tr_catalogue *c, struct tr_reader *r);
void tr_catalogue_release(struct tr_catalogue *c);
/* NULL when no event declares the id. */
struct tr_stored *tr_catalogue_find(const struct tr_catalogue *c, uint64_t id);

/* The digest of what fd is open on, of the kind that s has. */
int tr_stored_digest(const struct tr_stored *s, int fd,
		     uint8_t sha256[TR_SHA256_SIZE], struct tr_error *err)
	TR_MUST_CHECK;

/*
 * Has the stored file open as fd, which its entry describes, changed since it
 * was recorded?  A link can be written through the original's name: size and
 * times tell, and where they do, the digest decides.  1 changed, 0 not, -1.
 */
int tr_stored_changed(const struct tr_stored *s, int fd, struct tr_error *err)
	TR_MUST_CHECK;

/*
 * Are the stored files there that the events read so far name, and unchanged
 * as far as their sizes and times tell?  The first that is not is the error.
 */
int tr_stored_check(struct tr_reader *r, struct tr_error *err) TR_MUST_CHECK;

#endif
