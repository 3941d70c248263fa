/* Events that outlive the cursor they came from. */
#include "libtrace/format/event_copy.h"

#include <stdint.h>

#include "libtrace/base/alloc.h"

static void copy_bytes(struct tr_bytes *b)
{
	b->data = b->len ? tr_memdup(b->data, b->len) : NULL;
}

static void free_bytes(const struct tr_bytes *b)
{
	free((void *)(uintptr_t)b->data);
}

struct tr_event *tr_event_copy(const struct tr_event *ev)
{
	struct tr_event *c = tr_memdup(ev, sizeof *ev);

	copy_bytes(&c->xstate);
	copy_bytes(&c->siginfo);
	copy_bytes(&c->text);
	copy_bytes(&c->sha256);
	copy_bytes(&c->digests);
	copy_bytes(&c->page_hashes);
	copy_bytes(&c->known);
	c->mem = tr_memdup(ev->mem, ev->nmem * sizeof *ev->mem);
	for (size_t i = 0; i < c->nmem; i++)
		copy_bytes(&c->mem[i].bytes);
	c->map = tr_memdup(ev->map, ev->nmap * sizeof *ev->map);
	for (size_t i = 0; i < c->nmap; i++)
		copy_bytes(&c->map[i].name);
	c->arg = tr_memdup(ev->arg, ev->narg * sizeof *ev->arg);
	for (size_t i = 0; i < c->narg; i++)
		copy_bytes(&c->arg[i].bytes);
	return c;
}

void tr_event_free(struct tr_event *ev)
{
	if (!ev)
		return;
	free_bytes(&ev->xstate);
	free_bytes(&ev->siginfo);
	free_bytes(&ev->text);
	free_bytes(&ev->sha256);
	free_bytes(&ev->digests);
	free_bytes(&ev->page_hashes);
	free_bytes(&ev->known);
	for (size_t i = 0; i < ev->nmem; i++)
		free_bytes(&ev->mem[i].bytes);
	for (size_t i = 0; i < ev->nmap; i++)
		free_bytes(&ev->map[i].name);
	for (size_t i = 0; i < ev->narg; i++)
		free_bytes(&ev->arg[i].bytes);
	free(ev->mem);
	free(ev->map);
	free(ev->arg);
	free(ev);
}
