/*
 * Archives as sequences of members: the only user of libarchive.
 *
 * What is written is a restricted pax archive with canonical metadata, plain
 * or compressed.  What is read may be hostile: nothing here trusts it, and
 * nothing here decides where anything goes.
 */
#ifndef TR_STORE_TAPE_H
#define TR_STORE_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/store/archive.h"

/* A run of data in a file with holes. */
struct tr_extent {
	uint64_t offset, length;
};

/* ---- writing ---- */

struct tr_tape_out;

/*
 * Write to the open descriptor fd, which stays the caller's.  `ascii`: no
 * member's path has another byte than ASCII ones.
 */
struct tr_tape_out *tr_tape_create(int fd, enum tr_compression how, bool ascii,
				   struct tr_error *err) TR_MUST_CHECK;
int tr_tape_dir(struct tr_tape_out *t, const char *path, struct tr_error *err)
	TR_MUST_CHECK;
int tr_tape_link(struct tr_tape_out *t, const char *path, const char *target,
		 struct tr_error *err) TR_MUST_CHECK;
/*
 * A file.  Its data follows in tr_tape_put calls, and tr_tape_skip calls for
 * the holes between the extents, `size` bytes in all.  Without extents there
 * are no holes.  `dense` tells that the data does not compress.
 */
int tr_tape_file(struct tr_tape_out *t, const char *path, uint64_t size,
		 const struct tr_extent *extents, size_t n, bool dense,
		 struct tr_error *err) TR_MUST_CHECK;
int tr_tape_put(struct tr_tape_out *t, const void *data, size_t n,
		struct tr_error *err) TR_MUST_CHECK;
int tr_tape_skip(struct tr_tape_out *t, uint64_t n, struct tr_error *err)
	TR_MUST_CHECK;
/* Write the end of the archive.  Frees t in any case. */
int tr_tape_finish(struct tr_tape_out *t, struct tr_error *err) TR_MUST_CHECK;
/* Stop without an end. */
void tr_tape_abandon(struct tr_tape_out *t);

/* ---- reading ---- */

struct tr_tape_in;

enum tr_tape_type { TR_TAPE_FILE, TR_TAPE_DIR, TR_TAPE_LINK, TR_TAPE_OTHER };

struct tr_tape_member {
	enum tr_tape_type type;
	const char *path;   /* as the archive says; valid until the next */
	const char *target; /* LINK: of a hard link */
	uint64_t size;      /* FILE and LINK */
	bool sparse;        /* it has holes */
};

/*
 * Read from the open descriptor fd, which stays the caller's.  With `seek`,
 * data nobody reads is skipped by seeking where fd can.  TR_ECORRUPT when it
 * is no archive.
 */
struct tr_tape_in *tr_tape_open(int fd, bool seek, struct tr_error *err)
	TR_MUST_CHECK;
/*
 * If the file open as `in` is compressed, write what it holds, of at most
 * `max` bytes, to `out` and return 1; 0 when it is plain.  Both start at their
 * beginning, and in is left anywhere.
 */
int tr_tape_decompress(int in, int out, uint64_t max, struct tr_error *err)
	TR_MUST_CHECK;
void tr_tape_close(struct tr_tape_in *t);
/* The next member: 1, or 0 at the end, which is checked to be one. */
int tr_tape_next(struct tr_tape_in *t, struct tr_tape_member *m,
		 struct tr_error *err) TR_MUST_CHECK;
/*
 * The next piece of the member's data and where in the file it belongs: 1, or
 * 0 at its end.  Valid until the next call.
 */
int tr_tape_data(struct tr_tape_in *t, const void **data, size_t *n,
		 uint64_t *offset, struct tr_error *err) TR_MUST_CHECK;
/* Members read so far. */
uint64_t tr_tape_members(const struct tr_tape_in *t);
/*
 * Where the data of the member just read begins in fd; false when that has no
 * answer because the archive is compressed.
 */
bool tr_tape_position(const struct tr_tape_in *t, uint64_t *at);

#endif
