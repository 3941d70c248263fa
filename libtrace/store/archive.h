/*
 * Packed traces: one pax archive of one or more trace directories.
 *
 * Members are in canonical order with canonical metadata, so that equal
 * traces give equal bytes; identical files are stored once and the others are
 * hard-link members.  Unpacking treats the archive as hostile.
 */
#ifndef TR_STORE_ARCHIVE_H
#define TR_STORE_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"

struct tr_pack_progress {
	const char *member;
	uint64_t bytes; /* moved so far */
};
typedef void tr_pack_progress_fn(void *arg, const struct tr_pack_progress *p);

struct tr_pack_stats {
	uint64_t traces, members, bytes, shared_bytes; /* shared: stored once */
};

/*
 * Write the trace directories `dirs` to the open descriptor out.  Each
 * becomes a top-level directory named by its base name (made unique with -2,
 * -3, ...).
 */
int tr_pack_write(int out, const char *const *dirs, size_t n,
		  tr_pack_progress_fn *progress, void *arg,
		  struct tr_pack_stats *stats, struct tr_error *err)
	TR_MUST_CHECK;

/*
 * Unpack from the open descriptor into directory `target` (created when
 * missing).  Every trace is built under a temporary name, its file digests
 * checked, and renamed when whole; existing names are refused.  max_bytes
 * bounds what may be written (0: 64 GiB).  *names receives the traces made
 * (NULL-terminated, owned by the caller).
 */
int tr_pack_extract(int in, const char *target, uint64_t max_bytes,
		    tr_pack_progress_fn *progress, void *arg, char ***names,
		    struct tr_pack_stats *stats, struct tr_error *err)
	TR_MUST_CHECK;

#endif
