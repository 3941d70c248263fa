/* Hash tables from 64-bit keys to pointers: open addressing, half full. */
#include "libtrace/base/table.h"

#include <stdlib.h>

#include "libtrace/base/alloc.h"

/* Keys may be dense, or chosen to collide: mix every bit into every other. */
static uint64_t mix(uint64_t k)
{
	k ^= k >> 32;
	k *= 0xd6e8feb86659fd93u;
	k ^= k >> 32;
	k *= 0xd6e8feb86659fd93u;
	return k ^ k >> 32;
}

static struct tr_table_slot *find(const struct tr_table *t, uint64_t key)
{
	size_t i = (size_t)mix(key) & (t->size - 1);

	while (t->slots[i].value && t->slots[i].key != key)
		i = (i + 1) & (t->size - 1);
	return &t->slots[i];
}

static void grow(struct tr_table *t)
{
	struct tr_table old = *t;

	t->size = old.size ? 2 * old.size : 64;
	t->slots = tr_alloc(t->size * sizeof *t->slots);
	TR_TABLE_EACH(&old, s)
		*find(t, s->key) = *s;
	free(old.slots);
}

void *tr_table_get(const struct tr_table *t, uint64_t key)
{
	return t->size ? find(t, key)->value : NULL;
}

void tr_table_set(struct tr_table *t, uint64_t key, void *value)
{
	struct tr_table_slot *s;

	if (2 * (t->n + 1) > t->size)
		grow(t);
	s = find(t, key);
	if (!s->value)
		t->n++;
	s->key = key;
	s->value = value;
}

void tr_table_release(struct tr_table *t)
{
	free(t->slots);
	*t = (struct tr_table){0};
}
