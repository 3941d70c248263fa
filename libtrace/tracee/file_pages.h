/*
 * Hashes of the pages of mapped files.  A page of a private mapping that was
 * not written is the file's, so that its hash is computed once for all
 * address spaces that map it, and from the file.
 *
 * The files are kept open and known by inode; one whose size or times change
 * is read again.  A store through somebody's shared mapping does not always
 * change a file's times at once: files of which that is possible must not be
 * asked for here.
 */
#ifndef TR_TRACEE_FILE_PAGES_H
#define TR_TRACEE_FILE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/state/maps.h"

struct tr_file_pages;
struct tr_file_pages *tr_file_pages_new(void);
void tr_file_pages_free(struct tr_file_pages *f);

/*
 * Open the regular file behind a mapping of the task for reading; -1 when that
 * is impossible (it is no regular file, its path names another file now, ...).
 */
int tr_vma_open(pid_t tid, const struct tr_vma *v);

/* Hashes (page_hash.h) of a file's pages from its start.  Pages outside the
 * extents are holes; so is what lies behind the end. */
struct tr_file_hashes {
	const uint64_t *hash;
	size_t n;
	const struct tr_page_extent {
		size_t from, to; /* page numbers */
	} *extent; /* ascending */
	size_t nextents;
};

/* Those of the file behind a mapping, good until the next call; false when it
 * cannot be opened. */
bool tr_file_pages_get(struct tr_file_pages *f, pid_t tid,
		       const struct tr_vma *v, struct tr_file_hashes *hashes);

#endif
