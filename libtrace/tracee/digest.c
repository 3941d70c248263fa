/* State digests of a stopped task. */
#include "libtrace/tracee/digest.h"

#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/pagemap.h"

struct walk {
	pid_t tid;
	const struct tr_vma *v; /* the mapping being walked */
	XXH3_state_t *state;
	tr_digest_page_fn *page;
	void *ctx;
	uint64_t zero_hash;
	uint8_t buf[TR_PM_RUN * TR_PAGE];
};

static bool is_covered(const struct tr_vma *v)
{
	if (v->start >= TR_INJECT_BASE && v->end <= TR_INJECT_END)
		return false;
	if (v->name[0] == '[' && (strncmp(v->name, "[vvar", 5) == 0 ||
				  strcmp(v->name, "[vdso]") == 0 ||
				  strcmp(v->name, "[vsyscall]") == 0))
		return false;
	return !((v->prot & PROT_EXEC) && v->ino);
}

static void add_page(struct walk *w, uint64_t addr, const uint8_t *data)
{
	uint64_t words[2] = {addr, XXH3_64bits(data, TR_PAGE)};

	if (words[1] == w->zero_hash)
		return;
	XXH3_64bits_update(w->state, words, sizeof words);
	if (w->page)
		w->page(w->ctx, words[0], words[1]);
}

/* A private mapping's page counts when it is the process's own. */
static bool wanted(const struct tr_vma *v, uint64_t entry)
{
	if (v->flags & MAP_SHARED)
		return true;
	return (entry & TR_PM_EXISTS) && !(entry & TR_PM_FILE);
}

static int add_run(void *ctx, uint64_t addr, const uint64_t *entries, size_t n,
		   struct tr_error *err)
{
	struct walk *w = ctx;
	bool any = false;
	size_t got;

	(void)err;
	for (size_t i = 0; i < n; i++)
		any |= wanted(w->v, entries[i]);
	if (!any)
		return 0;
	/* Reading stops where a shared mapping reaches beyond its file. */
	got = tr_memory_read_some(w->tid, addr, w->buf, n * TR_PAGE) / TR_PAGE;
	for (size_t i = 0; i < got; i++)
		if (wanted(w->v, entries[i]))
			add_page(w, addr + i * TR_PAGE, w->buf + i * TR_PAGE);
	return 0;
}

int tr_digest_pages(pid_t tid, tr_digest_page_fn *page, void *ctx,
		    uint64_t *digest, struct tr_error *err)
{
	TR_AUTOCLOSE int pagemap = tr_pagemap_open(tid, err);
	TR_AUTOFREE struct walk *w = tr_alloc(sizeof *w);
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	int failed = 0;

	if (pagemap < 0 || tr_vmas_read(tid, &vmas, err) < 0)
		return -1;
	w->tid = tid;
	w->page = page;
	w->ctx = ctx;
	w->zero_hash = XXH3_64bits(w->buf, TR_PAGE);
	w->state = XXH3_createState();
	XXH3_64bits_reset(w->state);
	for (size_t i = 0; i < vmas.n && !failed; i++) {
		w->v = &vmas.v[i];
		if (is_covered(w->v))
			failed = tr_pagemap_walk(pagemap, w->v->start,
						 w->v->end, add_run, w, err);
	}
	*digest = XXH3_64bits_digest(w->state);
	XXH3_freeState(w->state);
	return failed;
}

int tr_digest_memory(pid_t tid, uint64_t *digest, struct tr_error *err)
{
	return tr_digest_pages(tid, NULL, NULL, digest, err);
}

uint64_t tr_digest_regs(const struct tr_regs *regs)
{
	struct tr_regs r = *regs;

	r.orig_rax = 0;
	return XXH3_64bits(&r, sizeof r);
}
