/* Hash tables from 64-bit keys to pointers, for keys that traces chose. */
#ifndef TR_BASE_TABLE_H
#define TR_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct tr_table_slot {
	uint64_t key;
	void *value; /* NULL: free */
};

/* Zeroed memory is an empty table. */
struct tr_table {
	struct tr_table_slot *slots;
	size_t n, size; /* size: 0 or a power of two */
};

/* NULL when the key is not there. */
void *tr_table_get(const struct tr_table *t, uint64_t key);
/* Add or replace; value is not NULL and stays the caller's. */
void tr_table_set(struct tr_table *t, uint64_t key, void *value);
/* Frees the table, not the values. */
void tr_table_release(struct tr_table *t);

/* Visit every slot in use: `s` is a struct tr_table_slot *. */
#define TR_TABLE_EACH(t, s)                                                \
	for (struct tr_table_slot *s = (t)->slots;                         \
	     s && s < (t)->slots + (t)->size; s++)                         \
		if (s->value)

#endif
