/*
 * Traces being unpacked into a directory: created under temporary names,
 * checked, and renamed when all of them are whole.  Every name comes from a
 * parsed struct tr_member and is opened beneath the target without following
 * symbolic links.
 */
#ifndef TR_STORE_TREE_H
#define TR_STORE_TREE_H

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"
#include "libtrace/store/member.h"

#define TR_MAX_UNPACK_TRACES 4096u

struct tr_tree;

/* Makes the target directory when it is missing. */
struct tr_tree *tr_tree_open(const char *target, struct tr_error *err)
	TR_MUST_CHECK;
/* Removes everything that tr_tree_commit did not put in place. */
void tr_tree_close(struct tr_tree *t);

/* A directory member.  TR_EHOSTILE when it was there before. */
int tr_tree_mkdir(struct tr_tree *t, const struct tr_member *m,
		  struct tr_error *err) TR_MUST_CHECK;
/* A new file, open for writing.  TR_EHOSTILE when it was there before. */
int tr_tree_create(struct tr_tree *t, const struct tr_member *m,
		   struct tr_error *err) TR_MUST_CHECK;
/* The digest of a stored file that was written. */
void tr_tree_written(struct tr_tree *t, const struct tr_member *m,
		     const uint8_t sha256[TR_SHA256_SIZE]);
/*
 * A stored file with the content of an earlier one, which costs no space
 * where the filesystem has clones or links; else *room bounds the copy, and is
 * reduced by it.
 */
int tr_tree_share(struct tr_tree *t, const struct tr_member *m,
		  const struct tr_member *of, uint64_t *size, uint64_t *room,
		  struct tr_error *err) TR_MUST_CHECK;

/*
 * Check the stored files of every trace against the digests in it, then give
 * all traces their names; nothing is left under its name unless all are.
 * *names receives them (NULL-terminated, owned by the caller).
 */
int tr_tree_commit(struct tr_tree *t, char ***names, struct tr_error *err)
	TR_MUST_CHECK;

#endif
