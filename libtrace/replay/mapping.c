/*
 * Calls that change the address space, made again in the vessel with the
 * recorded results as fixed addresses.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "libtrace/replay/replayer.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/image.h"
#include "libtrace/tracee/remote.h"

#define PAGE_UP(x) (((x) + 0xfff) & ~(uint64_t)0xfff)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#define MADV_GUARD_INSTALL_ADVICE 102
#define MADV_GUARD_REMOVE_ADVICE 103

/* Make a call that must give `want`. */
static enum applied again(struct tr_replay *r, struct rtask *t, uint64_t nr,
			  const uint64_t a[6], int64_t want,
			  struct tr_error *err)
{
	int64_t got;

	if (tr_remote_call(t->tid, &got, nr, a[0], a[1], a[2], a[3], a[4], a[5],
			   err) < 0)
		return TROUBLE;
	if (got == want)
		return AGREED;
	return rep_diverged(r, t, "call %" PRIu64 " gave %" PRId64
			    " where it gave %" PRId64 " when recorded", nr, got,
			    want);
}

enum applied rep_patch_mappings(struct tr_replay *r, struct rtask *t,
				struct tr_error *err)
{
	uint64_t changed = tr_event_get(&r->ev, TR_F_CHANGED), n = 0;

	for (size_t i = 0; i < r->ev.nmap; i++) {
		const struct tr_map *m = &r->ev.map[i];

		if (tr_calls_patch_mapping(t->tid, &t->as->calls,
					   &t->as->patches, &r->sites,
					   changed ? &r->known : NULL, m, &n,
					   err) < 0)
			return TROUBLE;
	}
	/* Where a site became known may be in a chunk that was not sealed. */
	if (n != changed && !tr_reader_complete(r->reader))
		r->cut = true;
	if (n == changed || r->cut)
		return AGREED;
	return rep_diverged(r, t, "%" PRIu64 " places in the code changed, not "
			    "%" PRIu64 " as when recorded", n, changed);
}

static enum applied replay_mmap(struct tr_replay *r, struct rtask *t,
				struct tr_error *err)
{
	const struct tr_map *m = r->ev.map;

	if (r->ev.nmap != 1) {
		tr_fail(err, TR_ECORRUPT, "event %" PRIu64 ": mmap without its "
			"mapping", r->ev.number);
		return TROUBLE;
	}
	if (tr_image_map(t->tid, m, 1, &r->source, err) < 0)
		return TROUBLE;
	return rep_patch_mappings(r, t, err);
}

/* shmdt(2) names only the start of the segment. */
static enum applied replay_shmdt(struct tr_replay *r, struct rtask *t,
				 uint64_t addr, struct tr_error *err)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	const struct tr_vma *v;

	if (tr_vmas_read(t->tid, &vmas, err) < 0)
		return TROUBLE;
	v = tr_vmas_find(&vmas, addr);
	if (!v)
		return rep_diverged(r, t, "no mapping at 0x%" PRIx64, addr);
	return again(r, t, SYS_munmap,
		     (const uint64_t[6]){v->start, v->end - v->start}, 0, err);
}

static enum applied replay_mremap(struct tr_replay *r, struct rtask *t,
				  const uint64_t a[6], struct tr_error *err)
{
	uint64_t to = tr_event_get(&r->ev, TR_F_RESULT);
	uint64_t args[6] = {a[0], a[1], a[2], a[3], to};

	if (to == a[0])
		args[3] &= ~(uint64_t)(MREMAP_MAYMOVE | MREMAP_FIXED);
	else
		args[3] |= MREMAP_MAYMOVE | MREMAP_FIXED;
	tr_calls_unpatch(t->tid, &t->as->calls, a[0], a[0] + a[1]);
	tr_patches_drop(&t->as->patches, a[0], a[0] + a[1]);
	return again(r, t, SYS_mremap, args, (int64_t)to, err);
}

/* Advice that changes what memory holds, or whether children get it; all
 * other advice has no effect a program can see. */
static bool advice_matters(uint64_t advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_REMOVE:
	case MADV_DONTFORK:
	case MADV_DOFORK:
	case MADV_WIPEONFORK:
	case MADV_KEEPONFORK:
	case MADV_GUARD_INSTALL_ADVICE:
	case MADV_GUARD_REMOVE_ADVICE:
		return true;
	default:
		return false;
	}
}

static void plan_call(struct tr_batch *b, int64_t want, uint64_t nr,
		      uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
		      uint64_t a4)
{
	unsigned i = tr_batch_add(b, nr, a0, a1, a2, a3, a4, 0);

	b->call[i].result = want;
}

/* The heap is ordinary anonymous memory at the addresses brk(2) gave it. */
static void plan_brk(struct tr_batch *b, uint64_t *brk, uint64_t to)
{
	uint64_t old = PAGE_UP(*brk), new = PAGE_UP(to);

	if (new > old)
		plan_call(b, (int64_t)old, SYS_mmap, old, new - old,
			  PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
			  MAP_NORESERVE, (uint64_t)-1);
	else if (new < old)
		plan_call(b, 0, SYS_munmap, new, old - new, 0, 0, 0);
	*brk = to;
}

static bool failed(const struct tr_event *ev)
{
	int64_t result = (int64_t)tr_event_get(ev, TR_F_RESULT);

	return result < 0 && result > -4096;
}

/* Neither shared nor code, whose sites are changed once it is there. */
static bool is_plain(const struct tr_event *ev)
{
	const struct tr_map *m = ev->map;

	return ev->nmap == 1 && !(m->flags & MAP_SHARED) &&
	       !(m->file && m->prot & PROT_EXEC);
}

bool rep_mapping_plan(const struct tr_event *ev, uint64_t *brk,
		      struct tr_batch *b)
{
	const struct tr_regs *g = &ev->regs;
	uint64_t result = tr_event_get(ev, TR_F_RESULT);

	b->n = b->data_len = 0;
	if (failed(ev))
		return true;
	switch (tr_event_get(ev, TR_F_NR)) {
	case SYS_mmap:
		if (!is_plain(ev))
			return false;
		tr_image_batch(b, ev->map);
		return true;
	case SYS_brk:
		plan_brk(b, brk, result);
		return true;
	case SYS_munmap:
		plan_call(b, 0, SYS_munmap, g->rdi, g->rsi, 0, 0, 0);
		return true;
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		plan_call(b, 0, SYS_mprotect, g->rdi, g->rsi, g->rdx, 0, 0);
		return true;
	case SYS_madvise:
		if (advice_matters(g->rdx))
			plan_call(b, (int64_t)result, SYS_madvise, g->rdi,
				  g->rsi, g->rdx, 0, 0);
		return true;
	default:
		return false;
	}
}

void rep_mapping_made(struct rtask *t, const struct tr_event *ev)
{
	const struct tr_regs *g = &ev->regs;
	struct rspace *as = t->as;

	if (failed(ev))
		return;
	switch (tr_event_get(ev, TR_F_NR)) {
	case SYS_mmap:
		for (size_t i = 0; i < ev->nmap; i++) {
			tr_calls_map(&as->calls, &ev->map[i]);
			tr_patches_drop(&as->patches, ev->map[i].start,
					ev->map[i].end);
		}
		break;
	case SYS_brk:
		as->brk = tr_event_get(ev, TR_F_RESULT);
		break;
	case SYS_munmap:
		tr_calls_unmap(&as->calls, g->rdi, g->rdi + g->rsi);
		tr_patches_drop(&as->patches, g->rdi, g->rdi + g->rsi);
		break;
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		if (g->rdx & PROT_WRITE)
			tr_calls_leave(&as->calls, g->rdi, g->rdi + g->rsi);
		break;
	}
}

enum applied rep_apply_mapping(struct tr_replay *r, struct rtask *t,
			       struct tr_error *err)
{
	const struct tr_regs *g = &r->ev.regs;
	const uint64_t a[6] = {g->rdi, g->rsi, g->rdx, g->r10, g->r8, g->r9};
	enum applied how = AGREED;
	uint64_t brk = t->as->brk;
	struct tr_batch b;

	if (failed(&r->ev))
		return AGREED;
	switch (tr_event_get(&r->ev, TR_F_NR)) {
	case SYS_mmap:
	case SYS_shmat:
		return replay_mmap(r, t, err);
	case SYS_shmdt:
		return replay_shmdt(r, t, a[0], err);
	case SYS_mremap:
		return replay_mremap(r, t, a, err);
	}
	rep_mapping_plan(&r->ev, &brk, &b);
	for (unsigned i = 0; i < b.n && how == AGREED; i++)
		how = again(r, t, b.call[i].nr, b.call[i].args,
			    b.call[i].result, err);
	if (how == AGREED)
		rep_mapping_made(t, &r->ev);
	return how;
}
