/*
 * Digests of an address space: one number for all memory that a program can
 * see, others for parts of it, and which pages changed from one time to the
 * next.
 *
 * A digest is a function of nothing but the contents of memory (page_hash.h
 * says which), whatever the kernel or the history: pages that do not exist
 * count as zeros, code counts as it is without the engine's patches.  Left
 * out are the engine's own pages, the kernel's ([vdso] and its like), and
 * mappings of devices.
 *
 * How it is computed is another matter.  Where the kernel tracks writes
 * (writes.h) only pages written since they were last protected are read: those
 * that are written all the time are not protected at all.  Pages of private
 * file mappings that were never written are hashed once for all address
 * spaces that map the file (file_pages.h says when that is not exact).  Shared mappings change without a trace in the
 * process and are read every time.
 */
#ifndef TR_TRACEE_DIGEST_H
#define TR_TRACEE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"
#include "libtrace/format/page_list.h"

/* What the digests of all address spaces share.  Made by a thread that may
 * run on all cores that helper threads may run on. */
struct tr_digester;
struct tr_digester *tr_digester_new(void);
void tr_digester_free(struct tr_digester *shared);

/* One address space, of which there is no other digest: the kernel tells of a
 * written page once.  Its digester must outlive it. */
struct tr_digest;
struct tr_digest *tr_digest_new(struct tr_digester *shared);
void tr_digest_free(struct tr_digest *d);

/* A task of the address space.  No other task of it may run user code. */
struct tr_digest_task {
	pid_t tid;
	/* It can make remote calls here, and no filter of the program's own
	 * would end it for that. */
	bool may_call;
	/* Put back, in a copy of the page at addr, what the engine changed in
	 * code there.  Several threads call it.  NULL: nothing. */
	void (*unpatch)(void *ctx, uint64_t addr, uint8_t *page);
	void *ctx;
	uint64_t hide_start, hide_end; /* the engine's mapping here, left out */
};

/*
 * Bring the digest up to date.  With `track` the kernel is asked to track
 * writes from now on, so that the next update is cheap; that costs the program
 * a page fault for a page that is written for the first time in a while.
 */
int tr_digest_update(struct tr_digest *d, const struct tr_digest_task *t,
		     bool track, struct tr_error *err) TR_MUST_CHECK;

/*
 * Was so much read by the last update that tracking pays for updates that
 * follow each other closely?  A page fault for a tracked page takes as long as
 * reading some dozens of pages.
 */
bool tr_digest_is_large(const struct tr_digest *d);

uint64_t tr_digest_root(const struct tr_digest *d);
/* Of the pages of [start, end). */
uint64_t tr_digest_range(const struct tr_digest *d, uint64_t start,
			 uint64_t end);
/* The hash of one page. */
uint64_t tr_digest_page(const struct tr_digest *d, uint64_t addr);

/*
 * Pages whose hash is another than at the last mark, in ascending order; not
 * those that went with their mapping, and not those that hold what the file
 * behind a private mapping holds.  Good until the next call.
 */
const struct tr_page_hash *tr_digest_changed(struct tr_digest *d, size_t *n);
void tr_digest_mark(struct tr_digest *d);

/* The mappings as of the last update, neighbours of one kind joined. */
struct tr_digest_mapping {
	uint64_t start, end;
	uint32_t prot, flags; /* as in struct tr_map */
	char *name; /* as in /proc/PID/maps */
};
const struct tr_digest_mapping *tr_digest_mappings(const struct tr_digest *d,
						   size_t *n);

/* What the last update did, for measuring. */
struct tr_digest_work {
	uint64_t pages_read;
	bool tracked; /* writes were tracked */
};
struct tr_digest_work tr_digest_last_work(const struct tr_digest *d);

/* XXH3-64 of the general registers, orig_rax taken as 0. */
uint64_t tr_digest_regs(const struct tr_regs *regs);

#endif
