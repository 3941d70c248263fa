/* Which pages of a mapping are there, from /proc/PID/pagemap. */
#ifndef TR_TRACEE_PAGEMAP_H
#define TR_TRACEE_PAGEMAP_H

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
 * returns less than 0. */
typedef int tr_pagemap_fn(void *ctx, uint64_t addr, const uint64_t *entries,
			  size_t n, struct tr_error *err);
int tr_pagemap_walk(int fd, uint64_t start, uint64_t end, tr_pagemap_fn *run,
		    void *ctx, struct tr_error *err) TR_MUST_CHECK;

#endif
