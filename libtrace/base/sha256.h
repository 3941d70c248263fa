/* SHA-256. The only user of nettle. */
#ifndef TR_BASE_SHA256_H
#define TR_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"

#define TR_SHA256_SIZE 32

/* A digest in the making. */
struct tr_sha256;
struct tr_sha256 *tr_sha256_new(void);
void tr_sha256_update(struct tr_sha256 *h, const void *data, size_t n);
/* Give the digest of what was added and free h. */
void tr_sha256_final(struct tr_sha256 *h, uint8_t out[TR_SHA256_SIZE]);
void tr_sha256_free(struct tr_sha256 *h); /* NULL is fine */

/* Of everything fd gives from its start; the offset of fd is left alone. */
int tr_sha256_fd(int fd, uint8_t out[TR_SHA256_SIZE], struct tr_error *err)
	TR_MUST_CHECK;

/* Of n bytes from `start` on, or fewer when the file ends before. */
int tr_sha256_range(int fd, off_t start, uint64_t n,
		    uint8_t out[TR_SHA256_SIZE], struct tr_error *err)
	TR_MUST_CHECK;

/*
 * Of a file that is mostly holes: of each page of 4096 bytes that holds other
 * bytes than zero its number, a u64, and the page, in order, the last one
 * filled up with zeroes; and of the file's size, a u64.  Holes cost nothing,
 * and where a filesystem has holes does not matter.  Moves the offset of fd.
 */
int tr_sha256_pages_fd(int fd, uint8_t out[TR_SHA256_SIZE],
		       struct tr_error *err) TR_MUST_CHECK;

/*
 * The next run of data at or after *at in a file of `size` bytes, in *at and
 * *end; without SEEK_DATA all that is left.  False when there is none.
 */
bool tr_next_data(int fd, off_t size, off_t *at, off_t *end);

#endif
