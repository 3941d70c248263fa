/* State digests of a stopped task. */
#include "libtrace/tracee/digest.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/memory.h"

#define PAGE 4096u
#define RUN 64u /* pages read at a time */

/* proc_pid_pagemap(5) */
#define PM_EXISTS ((uint64_t)3 << 62)
#define PM_FILE ((uint64_t)1 << 61)

struct walk {
	pid_t tid;
	int pagemap;
	XXH3_state_t *state;
	tr_digest_page_fn *page;
	void *ctx;
	uint64_t zero_hash;
	uint8_t buf[RUN * PAGE];
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
	uint64_t words[2] = {addr, XXH3_64bits(data, PAGE)};

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
	return (entry & PM_EXISTS) && !(entry & PM_FILE);
}

static void add_run(struct walk *w, const struct tr_vma *v, uint64_t addr,
		    const uint64_t *entries, size_t n)
{
	bool any = false;
	size_t got;

	for (size_t i = 0; i < n; i++)
		any |= wanted(v, entries[i]);
	if (!any)
		return;
	/* Reading stops where a shared mapping reaches beyond its file. */
	got = tr_memory_read_some(w->tid, addr, w->buf, n * PAGE) / PAGE;
	for (size_t i = 0; i < got; i++)
		if (wanted(v, entries[i]))
			add_page(w, addr + i * PAGE, w->buf + i * PAGE);
}

static int add_mapping(struct walk *w, const struct tr_vma *v,
		       struct tr_error *err)
{
	uint64_t entries[RUN];

	for (uint64_t a = v->start; a < v->end;) {
		size_t n = (v->end - a) / PAGE;

		if (n > RUN)
			n = RUN;
		if (tr_pread_full(w->pagemap, entries, n * 8,
				  (off_t)(a / PAGE * 8)) != (ssize_t)(n * 8))
			return tr_fail_errno(err, "task %d: pagemap",
					     (int)w->tid);
		add_run(w, v, a, entries, n);
		a += n * PAGE;
	}
	return 0;
}

int tr_digest_pages(pid_t tid, tr_digest_page_fn *page, void *ctx,
		    uint64_t *digest, struct tr_error *err)
{
	TR_AUTOFREE char *path = tr_printf("/proc/%d/pagemap", (int)tid);
	TR_AUTOCLOSE int pagemap = open(path, O_RDONLY | O_CLOEXEC);
	TR_AUTOFREE struct walk *w = tr_alloc(sizeof *w);
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	int failed = 0;

	if (pagemap < 0)
		return tr_fail_errno(err, "%s", path);
	if (tr_vmas_read(tid, &vmas, err) < 0)
		return -1;
	w->tid = tid;
	w->pagemap = pagemap;
	w->page = page;
	w->ctx = ctx;
	w->zero_hash = XXH3_64bits(w->buf, PAGE);
	w->state = XXH3_createState();
	XXH3_64bits_reset(w->state);
	for (size_t i = 0; i < vmas.n && !failed; i++)
		if (is_covered(&vmas.v[i]))
			failed = add_mapping(w, &vmas.v[i], err);
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
