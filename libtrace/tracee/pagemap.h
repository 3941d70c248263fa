/* Which pages of a mapping are there, from /proc/PID/pagemap. */
#ifndef TR_TRACEE_PAGEMAP_H
#define TR_TRACEE_PAGEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"

#define TR_PAGE 4096u

/* Bits of an entry, Documentation/admin-guide/mm/pagemap.rst: the page is
 * present or swapped out; it is a file's page or shared anonymous memory. */
#define TR_PM_EXISTS ((uint64_t)3 << 62)
#define TR_PM_FILE ((uint64_t)1 << 61)

/* At most this many entries come at a time. */
#define TR_PM_RUN 64u

int tr_pagemap_open(pid_t tid, struct tr_error *err) TR_MUST_CHECK;

/* Call `run` for the entries of [start, end), in ascending order, until it
 * returns less than 0.  Entries of pages that are not there may be left out. */
typedef int tr_pagemap_fn(void *ctx, uint64_t addr, const uint64_t *entries,
			  size_t n, struct tr_error *err);
int tr_pagemap_walk(int fd, uint64_t start, uint64_t end, tr_pagemap_fn *run,
		    void *ctx, struct tr_error *err) TR_MUST_CHECK;

/* Pages that are the process's own: anonymous memory that is there, and
 * private pages of files that were written. */
struct tr_own_run {
	uint64_t start, end;
	bool written; /* since they were last write-protected */
	bool zero;    /* the kernel's shared page of zeros */
};

struct tr_own_runs {
	struct tr_own_run *r; /* owned; ascending, without overlaps */
	size_t n, cap;
};
void tr_own_runs_release(struct tr_own_runs *runs);

/*
 * Append the own pages of [start, end).  With `protect` they are also
 * write-protected, at the same time, where writes are tracked (writes.h);
 * pages of other mappings are then left out.  Fails with TR_EUNSUPPORTED when
 * `protect` is asked for and the kernel lacks PAGEMAP_SCAN (Linux 6.7);
 * without it, /proc/PID/pagemap does, and every page counts as written.
 */
int tr_pagemap_own(int fd, uint64_t start, uint64_t end, bool protect,
		   struct tr_own_runs *runs, struct tr_error *err)
	TR_MUST_CHECK;

/* Is a mapping tracked (writes.h), of which there are pages?  1, 0, or -1 where
 * the kernel cannot tell. */
int tr_pagemap_tracked(int fd, uint64_t start, uint64_t end);

/*
 * Append what is not write-protected of a tracked mapping: pages that were
 * written since they were, and pages that are not there.  Parts for which there
 * is no page table are left out.  This is many times faster than to ask for
 * anything else: the kernel has a loop of its own for it (fast path in
 * pagemap_scan_pmd_entry, fs/proc/task_mmu.c).
 */
int tr_pagemap_open_to_writes(int fd, uint64_t start, uint64_t end,
			      struct tr_own_runs *runs, struct tr_error *err)
	TR_MUST_CHECK;

/* Is there any page in [start, end), swapped out or not? */
bool tr_pagemap_any(int fd, uint64_t start, uint64_t end);

/* Append all pages of [start, end) that are in the process's page tables. */
int tr_pagemap_present(int fd, uint64_t start, uint64_t end,
		       struct tr_own_runs *runs, struct tr_error *err)
	TR_MUST_CHECK;

/* Has a mapping of a file guard pages (MADV_GUARD_INSTALL; for files from
 * Linux 6.15 on, which also tells)? */
bool tr_pagemap_has_guards(int fd, uint64_t start, uint64_t end);

#endif
