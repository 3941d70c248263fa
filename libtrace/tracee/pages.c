/* Comparing a task's memory before and after. */
#include "libtrace/tracee/pages.h"

#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/pagemap.h"

struct page {
	uint64_t addr, hash;
	uint8_t *data; /* when contents are kept */
};

struct tr_pages {
	bool contents;
	uint64_t layout; /* hash over the mappings */
	struct page *p;  /* ascending addresses */
	size_t n, cap;
};

void tr_pages_free(struct tr_pages *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->n; i++)
		free(ps->p[i].data);
	free(ps->p);
	free(ps);
}

/* Where mappings are and what may be done there.  A stack that grows by itself
 * changes nothing that replay would not change by itself. */
static uint64_t layout_hash(const struct tr_vmas *vmas)
{
	XXH3_state_t *state = XXH3_createState();
	uint64_t hash;

	XXH3_64bits_reset(state);
	for (size_t i = 0; i < vmas->n; i++) {
		const struct tr_vma *v = &vmas->v[i];
		uint64_t words[] = {v->start, v->end, v->prot, v->flags, v->ino};

		if (tr_is_engine(v->start, v->end))
			continue;
		if (strcmp(v->name, "[stack]") == 0)
			words[0] = 0;
		XXH3_64bits_update(state, words, sizeof words);
	}
	hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return hash;
}

static bool is_watched(const struct tr_vma *v)
{
	return (v->prot & PROT_WRITE) && !tr_is_engine(v->start, v->end);
}

static void take_page(pid_t tid, uint64_t addr, struct tr_pages *ps)
{
	uint8_t data[TR_PAGE];

	if (tr_memory_read(tid, addr, data, TR_PAGE) < 0)
		return;
	TR_GROW(ps->p, ps->n, ps->cap);
	ps->p[ps->n++] = (struct page){
		addr, XXH3_64bits(data, TR_PAGE),
		ps->contents ? tr_memdup(data, TR_PAGE) : NULL};
}

struct take {
	pid_t tid;
	struct tr_pages *ps;
};

static int take_run(void *ctx, uint64_t addr, const uint64_t *entries, size_t n,
		    struct tr_error *err)
{
	const struct take *t = ctx;

	(void)err;
	for (size_t i = 0; i < n; i++)
		if (entries[i] & TR_PM_EXISTS)
			take_page(t->tid, addr + i * TR_PAGE, t->ps);
	return 0;
}

struct tr_pages *tr_pages_take(pid_t tid, bool contents, struct tr_error *err)
{
	TR_AUTOCLOSE int pagemap = tr_pagemap_open(tid, err);
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct take take = {.tid = tid};
	struct tr_pages *ps;

	if (pagemap < 0 || tr_vmas_read(tid, &vmas, err) < 0)
		return NULL;
	ps = take.ps = tr_alloc(sizeof *ps);
	ps->contents = contents;
	ps->layout = layout_hash(&vmas);
	for (size_t i = 0; i < vmas.n; i++)
		if (is_watched(&vmas.v[i]) &&
		    tr_pagemap_walk(pagemap, vmas.v[i].start, vmas.v[i].end,
				    take_run, &take, err) < 0) {
			tr_pages_free(ps);
			return NULL;
		}
	return ps;
}

static void add_range(struct tr_ranges *rs, uint64_t addr, uint64_t len)
{
	TR_GROW(rs->r, rs->n, rs->cap);
	rs->r[rs->n++] = (struct tr_range){.addr = addr, .len = len};
}

/* Runs of bytes in which two pages differ. */
static void add_differences(struct tr_ranges *rs, uint64_t addr,
			    const uint8_t *a, const uint8_t *b)
{
	for (size_t i = 0; i < TR_PAGE;) {
		size_t start = i;

		while (i < TR_PAGE && a[i] != b[i])
			i++;
		if (i > start)
			add_range(rs, addr + start, i - start);
		else
			i++;
	}
}

int tr_pages_changes(pid_t tid, const struct tr_pages *before,
		     struct tr_ranges *changed, bool *layout_changed,
		     struct tr_error *err)
{
	static const uint8_t zero[TR_PAGE];
	struct tr_pages *now = tr_pages_take(tid, before->contents, err);
	uint64_t zero_hash = XXH3_64bits(zero, TR_PAGE);
	size_t k = 0;

	if (!now)
		return -1;
	*layout_changed = now->layout != before->layout;
	for (size_t i = 0; i < now->n; i++) {
		const struct page *p = &now->p[i], *old = NULL;

		while (k < before->n && before->p[k].addr < p->addr)
			k++;
		if (k < before->n && before->p[k].addr == p->addr)
			old = &before->p[k];
		if (p->hash == (old ? old->hash : zero_hash))
			continue;
		if (before->contents)
			add_differences(changed, p->addr,
					old ? old->data : zero, p->data);
		else
			add_range(changed, p->addr, TR_PAGE);
	}
	tr_pages_free(now);
	return 0;
}
