/*
 * Chunks that share their data with the file it was read from, where the file
 * system can (ioctl_ficlonerange(2): btrfs, XFS).
 */
#ifndef TR_FORMAT_CLONE_H
#define TR_FORMAT_CLONE_H

#include "libtrace/base/buf.h"
#include "libtrace/base/error.h"
#include "libtrace/format/chunk.h"

/* A file that is read, counted by those who hold it, on any thread. */
struct tr_source;
struct tr_source *tr_source_new(int fd); /* takes over fd, open for reading */
struct tr_source *tr_source_hold(struct tr_source *s);
void tr_source_release(struct tr_source *s); /* NULL is fine */

/* What has been found out by trying. */
enum tr_source_state {
	TR_SOURCE_GOOD,
	TR_SOURCE_WRONG,  /* other bytes are there than were said to be */
	TR_SOURCE_UNABLE, /* nothing can be cloned from there */
};
enum tr_source_state tr_source_state(const struct tr_source *s);

/* The last len bytes of a chunk's payload are those at offset; source NULL: it
 * is not known where they are from. */
struct tr_clone {
	struct tr_source *source;
	uint64_t offset;
	size_t len;
};

/* Fewer bytes in whole blocks are not worth the while. */
#define TR_CLONE_MIN (32u << 10)
/* A chunk becomes larger by less than this. */
#define TR_CLONE_ROOM 8192u

/*
 * Write the chunk, one record in `payload` behind room for a header, to `at`,
 * the end of fd, and complete the header, which has its `previous`.  Returns 1;
 * 0, and the file is as it was, when it cannot be a clone; -1 when writing fails.
 */
int tr_clone_write(int fd, uint64_t at, struct tr_chunk_header *h,
		   const struct tr_buf *payload, const struct tr_clone *clone,
		   struct tr_error *err) TR_MUST_CHECK;

#endif
