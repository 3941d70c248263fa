/*
 * Reading and hashing many pages of a process, by several threads when there
 * are enough of them.
 */
#ifndef TR_TRACEE_HASH_PAGES_H
#define TR_TRACEE_HASH_PAGES_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/tracee/digest.h"

struct tr_page_piece {
	uint64_t addr;
	size_t pages;
	bool code; /* may hold the engine's patches */
	bool open; /* tracked, but not protected now: the caller's, too */
	uint64_t *expect; /* the caller's */
};

struct tr_page_pieces {
	struct tr_page_piece *p; /* owned */
	size_t n, cap;
	size_t pages; /* together */
};

/*
 * The hash of every page of the pieces in their order, 0 for what cannot be
 * read; `hashes` has room for them.  Helper threads run on `cpus`.
 */
void tr_hash_pages(const struct tr_digest_task *t, const cpu_set_t *cpus,
		   const struct tr_page_pieces *pieces, uint64_t *hashes);

#endif
