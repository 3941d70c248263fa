/*
 * Traces being unpacked into a directory: created under temporary names,
 * checked, and renamed when all of them are whole.  Every name comes from a
 * parsed struct tr_member and is opened beneath the target without following
 * symbolic links.
 */
#ifndef TR_STORE_TREE_H
#define TR_STORE_TREE_H

#include <stdbool.h>

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"
#include "libtrace/store/catalogue.h"
#include "libtrace/store/fetch.h"
#include "libtrace/store/member.h"

#define TR_MAX_UNPACK_TRACES 4096u

struct tr_tree;

/* Makes the target directory when it is missing. */
struct tr_tree *tr_tree_open(const char *target, struct tr_error *err)
	TR_MUST_CHECK;
/* Removes everything that tr_tree_commit did not put in place. */
void tr_tree_close(struct tr_tree *t);

/*
 * Members come in canonical order: the members of one trace follow each other,
 * by kind and number.  What comes out of order or twice is TR_EHOSTILE.
 */
int tr_tree_mkdir(struct tr_tree *t, const struct tr_member *m,
		  struct tr_error *err) TR_MUST_CHECK;
/*
 * A new file, open for reading and writing.  For a stored file *s receives
 * what the trace says of it, or NULL.
 */
int tr_tree_create(struct tr_tree *t, const struct tr_member *m,
		   const struct tr_stored **s, struct tr_error *err)
	TR_MUST_CHECK;
/* The digest of a stored file that was written: is it right? */
int tr_tree_written(struct tr_tree *t, const struct tr_member *m,
		    const uint8_t sha256[TR_SHA256_SIZE],
		    struct tr_error *err) TR_MUST_CHECK;
/*
 * A stored file with the content of an earlier one, which costs no space
 * where the filesystem has clones or links; else *room bounds the copy, and is
 * reduced by it.
 */
int tr_tree_share(struct tr_tree *t, const struct tr_member *m,
		  const struct tr_member *of, uint64_t *size, uint64_t *room,
		  struct tr_error *err) TR_MUST_CHECK;

/*
 * All members are there: take the stored files that the archive left out from
 * this machine's own, check every trace, and give all of them their names;
 * nothing is left under its name unless all are.  With `sync` they are on the
 * disk before that.  *names receives them (NULL-terminated, owned by the
 * caller).
 */
int tr_tree_commit(struct tr_tree *t, struct tr_fetcher *from, bool sync,
		   uint64_t *room, uint64_t *cloned, char ***names,
		   struct tr_error *err) TR_MUST_CHECK;

#endif
