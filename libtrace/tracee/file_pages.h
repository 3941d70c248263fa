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

/*
 * The page hashes (page_hash.h) of the file behind a mapping, from its start;
 * what lies behind its end counts as zero.  NULL when it cannot be opened; good
 * until the next call.
 */
const uint64_t *tr_file_pages_get(struct tr_file_pages *f, pid_t tid,
				  const struct tr_vma *v, size_t *n);

#endif
