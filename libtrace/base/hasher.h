/* SHA-256 computed beside the caller, who goes on with the next block. */
#ifndef TR_BASE_HASHER_H
#define TR_BASE_HASHER_H

#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/sha256.h"

struct tr_hasher;

struct tr_hasher *tr_hasher_new(void);
void tr_hasher_free(struct tr_hasher *h); /* NULL is fine */
/* Forget what was added before. `size` is what will be, as far as known. */
void tr_hasher_begin(struct tr_hasher *h, uint64_t size);
/* The data is copied. */
void tr_hasher_update(struct tr_hasher *h, const void *data, size_t n);
/* The digest of what was added since tr_hasher_begin. */
void tr_hasher_final(struct tr_hasher *h, uint8_t out[TR_SHA256_SIZE]);

#endif
