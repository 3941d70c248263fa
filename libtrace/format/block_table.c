/*
 * Which memory was written before.
 *
 * Bytes are known by a hash of 128 bits with a secret of this table's own, so
 * that nobody who does not know it, not even the recorded program, can make two
 * that are taken for one.  The table is of a fixed size: what was met long ago
 * may be forgotten, and is then written once more.
 */
#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/blocks.h"

#define SLOTS (1u << 16)
#define SECRET_SIZE 192u

struct slot {
	XXH128_hash_t hash;
	uint64_t number; /* 0: free */
	uint64_t len;
};

struct tr_block_table {
	uint8_t secret[SECRET_SIZE];
	uint64_t last; /* number given */
	struct slot slots[SLOTS];
};

struct tr_block_table *tr_block_table_new(void)
{
	struct tr_block_table *t = tr_alloc(sizeof *t);

	/* Up to 256 bytes always come whole: getrandom(2). */
	if (getrandom(t->secret, sizeof t->secret, 0) !=
	    (ssize_t)sizeof t->secret) {
		free(t);
		return NULL;
	}
	return t;
}

void tr_block_table_free(struct tr_block_table *t)
{
	free(t);
}

uint64_t tr_block_number(struct tr_block_table *t, const struct tr_bytes *b,
			 bool *is_new)
{
	XXH128_hash_t hash;
	struct slot *s;

	hash = XXH3_128bits_withSecret(b->data, b->len, t->secret,
				       sizeof t->secret);
	s = &t->slots[hash.low64 % SLOTS];
	*is_new = !s->number || s->len != b->len ||
		  !XXH128_isEqual(s->hash, hash);
	if (*is_new)
		*s = (struct slot){hash, ++t->last, b->len};
	return s->number;
}
