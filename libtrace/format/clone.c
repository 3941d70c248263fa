/*
 * Writing a chunk around a clone.
 *
 * Only whole blocks of the file system can be cloned, to a place that is a
 * multiple of their size.  So the payload begins with a record that readers skip,
 * as long as it takes for the block's bytes to come to stand there:
 *
 *	header, padding, head of the record, bytes before the first whole block
 *	whole blocks, cloned
 *	bytes after them
 *
 * Where the bytes are from is the caller's belief.  So the file is read after it
 * has been cloned, from the page cache, where what was read of it just now still
 * is; what is not the same is written over.  (The clone itself would have to come
 * from the disk.  A change of the file that is undone again in the moment between
 * would show as a wrong checksum of the chunk.)
 */
#include "libtrace/format/clone.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"
#include "libtrace/format/blocks.h"

#define FS_BLOCK 4096u

/* The padding's type, its size in two bytes, and the three integers that every
 * record begins with, all 0. */
#define PADDING_MIN 6u

struct tr_source {
	int fd;
	atomic_uint holders;
	atomic_uint state;
};

struct tr_source *tr_source_new(int fd)
{
	struct tr_source *s = tr_alloc(sizeof *s);

	s->fd = fd;
	atomic_init(&s->holders, 1);
	atomic_init(&s->state, TR_SOURCE_GOOD);
	return s;
}

struct tr_source *tr_source_hold(struct tr_source *s)
{
	atomic_fetch_add(&s->holders, 1);
	return s;
}

void tr_source_release(struct tr_source *s)
{
	if (!s || atomic_fetch_sub(&s->holders, 1) > 1)
		return;
	close(s->fd);
	free(s);
}

enum tr_source_state tr_source_state(const struct tr_source *s)
{
	return (enum tr_source_state)atomic_load(&s->state);
}

/* Where in the file of chunks the parts of one come to stand. */
struct layout {
	size_t padding;
	size_t front; /* header, padding and what is not cloned before it */
	size_t cloned;
	uint64_t from; /* offset in the source of what is */
};

static bool lay_out(struct layout *l, uint64_t at, size_t payload,
		    const struct tr_clone *c)
{
	size_t skip = (size_t)(-c->offset % FS_BLOCK);
	size_t front = TR_CHUNK_HEADER + payload - c->len + skip + PADDING_MIN;

	if (c->len < skip + TR_CLONE_MIN)
		return false;
	l->padding = PADDING_MIN + (size_t)(-(at + front) % FS_BLOCK);
	l->front = front - PADDING_MIN + l->padding;
	l->cloned = (c->len - skip) / FS_BLOCK * FS_BLOCK;
	l->from = c->offset + skip;
	return true;
}

static void put_padding(uint8_t *to, size_t n)
{
	size_t body = n - 3;

	memset(to, 0, n);
	to[0] = TR_PADDING_TYPE;
	to[1] = (uint8_t)(body | 0x80);
	to[2] = (uint8_t)(body >> 7);
}

static int clone_range(int fd, uint64_t at, struct tr_source *s,
		       const struct layout *l)
{
	struct file_clone_range range = {
		.src_fd = s->fd, .src_offset = l->from,
		.src_length = l->cloned, .dest_offset = at,
	};

	if (!tr_fault("chunk-clone") && ioctl(fd, FICLONERANGE, &range) == 0)
		return 0;
	/* The file may be shorter than was believed; or this is not how it is
	 * done here: another file system, none with reflinks, a swap file. */
	atomic_store(&s->state, errno == EINVAL ? TR_SOURCE_WRONG
						: TR_SOURCE_UNABLE);
	return -1;
}

/* Put right what was not what it was believed to be. */
static int check_range(int fd, uint64_t at, struct tr_source *s,
		       const struct layout *l, const uint8_t *bytes)
{
	TR_AUTOFREE uint8_t *found = tr_alloc(l->cloned);

	if (tr_pread_full(s->fd, found, l->cloned, (off_t)l->from) ==
		    (ssize_t)l->cloned &&
	    memcmp(found, bytes, l->cloned) == 0)
		return 0;
	atomic_store(&s->state, TR_SOURCE_WRONG);
	return tr_pwrite_all(fd, bytes, l->cloned, (off_t)at);
}

int tr_clone_write(int fd, uint64_t at, struct tr_chunk_header *h,
		   const struct tr_buf *payload, const struct tr_clone *clone,
		   struct tr_error *err)
{
	size_t n = payload->len - TR_CHUNK_HEADER, size;
	struct tr_chunk_header own = *h;
	TR_AUTOFREE uint8_t *whole = NULL;
	struct layout l;

	if (tr_source_state(clone->source) != TR_SOURCE_GOOD ||
	    !lay_out(&l, at, n, clone) || n + l.padding > TR_MAX_CHUNK_RAW)
		return 0;
	size = TR_CHUNK_HEADER + l.padding + n;
	whole = tr_alloc(size);
	put_padding(whole + TR_CHUNK_HEADER, l.padding);
	memcpy(whole + TR_CHUNK_HEADER + l.padding,
	       payload->data + TR_CHUNK_HEADER, n);
	own.records++;
	own.raw_size = own.stored_size = (uint32_t)(size - TR_CHUNK_HEADER);
	own.payload = XXH3_64bits(whole + TR_CHUNK_HEADER, own.raw_size);
	tr_chunk_encode(&own, whole);
	/* First of all: where it fails, nothing has been written. */
	if (clone_range(fd, at + l.front, clone->source, &l) < 0)
		return 0;
	if (tr_pwrite_all(fd, whole, l.front, (off_t)at) < 0 ||
	    check_range(fd, at + l.front, clone->source, &l,
			whole + l.front) < 0 ||
	    tr_pwrite_all(fd, whole + l.front + l.cloned,
			  size - l.front - l.cloned,
			  (off_t)(at + l.front + l.cloned)) < 0)
		return tr_fail_errno(err, "cannot write");
	*h = own;
	return 1;
}
