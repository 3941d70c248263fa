/* Calls that map files and memory: what they mapped, and what follows. */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "libtrace/record/recorder.h"

/* What mmap(2) made, but for the file. */
static struct tr_map mapping_of(uint64_t length, uint64_t prot, uint64_t flags,
				uint64_t start)
{
	struct tr_map m = {
		.start = start,
		.end = start + ((length + 0xfff) & ~(uint64_t)0xfff),
		.prot = (uint32_t)prot,
		.flags = (uint32_t)flags &
			 (MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS |
			  MAP_GROWSDOWN),
	};

	/* MAP_SHARED_VALIDATE is both bits. */
	if ((m.flags & (MAP_SHARED | MAP_PRIVATE)) ==
	    (MAP_SHARED | MAP_PRIVATE))
		m.flags &= ~(uint32_t)MAP_PRIVATE;
	return m;
}

static int find_mapping(struct recorder *r, struct task *t,
			const struct tr_call *c, struct tr_map *m,
			struct stat *st, struct tr_error *err)
{
	const uint64_t *a = c->args;
	uint64_t start = (uint64_t)c->result;
	int64_t id;

	if (c->nr == SYS_shmat) {
		id = rec_store_segment(r, t, start, m, st, err);
		m->file = id < 0 ? 0 : (uint32_t)id;
		return id < 0 ? -1 : 0;
	}
	*m = mapping_of(a[1], a[2], a[3], start);
	if (m->flags & MAP_ANONYMOUS)
		return 0;
	id = m->flags & MAP_SHARED ? rec_shared_now(r, t, (int)a[4], m, st) : 0;
	if (!id)
		id = rec_store_fd(r, t, (int)a[4], st, err);
	if (id > 0) {
		m->file = (uint32_t)id;
		m->offset = a[5];
	} else {
		m->flags |= MAP_ANONYMOUS;
	}
	return id < 0 ? -1 : 0;
}

int rec_describe_mapping(struct recorder *r, struct task *t,
			 const struct tr_call *c, struct tr_map *m,
			 struct stat *st, struct tr_event *ev,
			 struct tr_error *err)
{
	uint64_t changed = 0;
	int how;

	*m = (struct tr_map){0};
	*st = (struct stat){0};
	how = find_mapping(r, t, c, m, st, err);
	if (how == 0)
		how = rec_patch_mapping(r, t, m, &changed, err);
	if (changed)
		tr_event_set(ev, TR_F_CHANGED, changed);
	if (m->end) {
		ev->map = m;
		ev->nmap = 1;
		tr_event_mark(ev, TR_F_MAP);
	}
	return how;
}

void rec_after_mapping(struct recorder *r, struct task *t,
		       const struct tr_call *c, const struct tr_map *m,
		       const struct stat *st)
{
	bool writable = m->prot & PROT_WRITE;

	if (m->flags & MAP_SHARED) {
		if (writable)
			t->as->shared = true;
		if (m->file)
			rec_map_shared(r, t, st, m->file, writable);
	}
	rec_growth_mapped(r, t, c, m, st);
	rec_portable_mapped(r, t, m);
}

void rec_mapping_changed(struct task *t, const struct tr_call *c)
{
	uint64_t start = c->args[0], end = start + c->args[1];

	/* New memory is found when it is missed. */
	if (c->nr != SYS_mmap || c->args[3] & MAP_FIXED)
		rec_writable_forget(t->as);
	if (c->result != 0)
		return;
	if (c->nr == SYS_munmap) {
		tr_calls_unmap(&t->as->calls, start, end);
		tr_patches_drop(&t->as->patches, start, end);
	}
	if ((c->nr == SYS_mprotect || c->nr == SYS_pkey_mprotect) &&
	    c->args[2] & PROT_WRITE)
		tr_calls_leave(&t->as->calls, start, end);
}

int rec_patch_mapping(struct recorder *r, struct task *t,
		      const struct tr_map *m, uint64_t *changed,
		      struct tr_error *err)
{
	struct aspace *as = t->as;

	return tr_calls_patch_mapping(t->tid, &as->calls, &as->patches,
				      &r->sites,
				      as->intercept ? &r->known : NULL, m,
				      changed, err);
}
