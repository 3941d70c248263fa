/* SHA-256. The only user of libcrypto. */
#ifndef TR_BASE_SHA256_H
#define TR_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

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

#endif
