/*
 * Packed traces: one pax archive of one or more trace directories.
 *
 * Members are in canonical order with canonical metadata, so that equal
 * traces give equal bytes; identical files are stored once and the others are
 * hard-link members.  Unpacking treats the archive as hostile.
 */
#ifndef TR_STORE_ARCHIVE_H
#define TR_STORE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/store/have.h"

struct tr_pack_progress {
	const char *member;
	uint64_t bytes; /* moved so far */
};
typedef void tr_pack_progress_fn(void *arg, const struct tr_pack_progress *p);

enum tr_compression {
	TR_COMPRESS_NONE,
	TR_COMPRESS_GZIP,
	TR_COMPRESS_XZ,
	TR_COMPRESS_ZSTD,
};

struct tr_pack_stats {
	uint64_t traces, members, bytes;
	uint64_t shared_bytes;  /* in files identical to one stored already */
	uint64_t absent_files, absent_bytes; /* packing: left out */
	uint64_t cloned_bytes;  /* unpacking: from files that were there */
};

struct tr_pack_options {
	enum tr_compression compression;
	/* Stored files with these contents are left out: the receiver has
	 * them.  NULL: none. */
	const struct tr_have *exclude;
	/* Only stored files with these contents go in.  NULL: all. */
	const struct tr_have *only;
	tr_pack_progress_fn *progress; /* or NULL */
	void *arg;
};

/*
 * Write the trace directories `dirs` to the open descriptor out.  Each
 * becomes a top-level directory named by its base name (made unique with -2,
 * -3, ...).
 */
int tr_pack_write(int out, const char *const *dirs, size_t n,
		  const struct tr_pack_options *o, struct tr_pack_stats *stats,
		  struct tr_error *err) TR_MUST_CHECK;

struct tr_unpack_options {
	uint64_t max_bytes; /* that may be written; 0: 64 GiB */
	/* Where contents may be found besides the originals' own paths, or
	 * NULL. */
	const struct tr_have *have;
	/* Directories to search for files that the archive leaves out;
	 * NULL-terminated, or NULL. */
	const char *const *places;
	/* What is unpacked need not survive a power failure. */
	bool temporary;
	tr_pack_progress_fn *progress; /* or NULL */
	void *arg;
};

/*
 * Unpack from the open descriptor into directory `target` (created when
 * missing).  Every trace is built under a temporary name, checked, and renamed
 * when whole; existing names are refused.  A stored file that this machine has
 * is cloned from there where the filesystem can, and one that the archive
 * leaves out is taken from there.  *names receives the traces made
 * (NULL-terminated, owned by the caller).
 */
int tr_pack_extract(int in, const char *target,
		    const struct tr_unpack_options *o, char ***names,
		    struct tr_pack_stats *stats, struct tr_error *err)
	TR_MUST_CHECK;

/* One member of an archive, as its header says. */
struct tr_pack_member {
	const char *name;
	const char *trace;  /* its first component */
	const char *type;   /* "directory", "file" or "link" */
	const char *target; /* of a link, else NULL */
	uint64_t size;
};
typedef int tr_pack_list_fn(void *arg, const struct tr_pack_member *m);

/*
 * Report the members of the archive in the open descriptor; names that no
 * packed trace has are refused as by tr_pack_extract.  A result of fn other
 * than 0 ends it.
 */
int tr_pack_list(int in, tr_pack_list_fn *fn, void *arg, struct tr_error *err)
	TR_MUST_CHECK;

/*
 * Make the trace directories self-contained where they are: stored files that
 * are links become private, identical ones share their blocks, digests become
 * complete, what belongs to no trace goes.  At every moment each trace is
 * whole, so that a kill leaves it as it was or further packed.
 */
int tr_pack_in_place(const char *const *dirs, size_t n,
		     const struct tr_pack_options *o,
		     struct tr_pack_stats *stats, struct tr_error *err)
	TR_MUST_CHECK;

#endif
