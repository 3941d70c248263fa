/* Calls that map files and memory: what they mapped, and what follows. */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "libtrace/record/recorder.h"

int rec_describe_mapping(struct recorder *r, struct task *t, struct tr_map *m,
			 struct stat *st, struct tr_error *err)
{
	const uint64_t *a = t->fl.call.args;
	uint64_t start = (uint64_t)t->fl.call.result;
	int64_t id;

	if (t->fl.call.nr == SYS_shmat) {
		id = rec_store_segment(r, t, start, m, st, err);
		m->file = id < 0 ? 0 : (uint32_t)id;
		return id < 0 ? -1 : 0;
	}
	*m = (struct tr_map){
		.start = start,
		.end = start + ((a[1] + 0xfff) & ~(uint64_t)0xfff),
		.prot = (uint32_t)a[2],
		.flags = (uint32_t)a[3] &
			 (MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS |
			  MAP_GROWSDOWN),
	};
	/* MAP_SHARED_VALIDATE is both bits. */
	if ((m->flags & (MAP_SHARED | MAP_PRIVATE)) ==
	    (MAP_SHARED | MAP_PRIVATE))
		m->flags &= ~(uint32_t)MAP_PRIVATE;
	if (m->flags & MAP_ANONYMOUS)
		return 0;
	id = rec_store_fd(r, t, (int)a[4], st, err);
	if (id > 0) {
		m->file = (uint32_t)id;
		m->offset = a[5];
	} else {
		m->flags |= MAP_ANONYMOUS;
	}
	return id < 0 ? -1 : 0;
}

void rec_after_mapping(struct recorder *r, struct task *t,
		       const struct tr_map *m, const struct stat *st)
{
	bool writable = m->prot & PROT_WRITE;

	if (m->flags & MAP_SHARED) {
		if (writable)
			t->as->shared = true;
		if (m->file)
			rec_map_shared(r, t, st, m->file, writable);
	}
	rec_growth_mapped(r, t, m, st);
	rec_portable_mapped(r, t, m);
}

int rec_patch_mapping(struct recorder *r, struct task *t,
		      const struct tr_map *m, uint64_t *changed,
		      struct tr_error *err)
{
	tr_calls_map(&t->as->calls, m);
	tr_patches_drop(&t->as->patches, m->start, m->end);
	if (tr_patch_mapping(t->tid, m, &r->sites, &t->as->patches, err) < 0)
		return -1;
	*changed += rec_calls_patch_known(r, t, m);
	return 0;
}
