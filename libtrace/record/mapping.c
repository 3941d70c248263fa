/* Calls that map files and memory: what they mapped, and what follows. */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "libtrace/record/recorder.h"

/* The mapping a successful mmap or shmat made, and the file behind it; *why is set
 * when replay cannot make it. */
void rec_describe_mapping(struct recorder *r, struct task *t, struct tr_map *m,
			  struct stat *st, const char **why)
{
	const uint64_t *a = t->fl.call.args;

	if (t->fl.call.nr == SYS_shmat) {
		m->file = rec_store_segment(r, t, (uint64_t)t->fl.call.result,
					    m, st, why);
		return;
	}
	*m = (struct tr_map){
		.start = (uint64_t)t->fl.call.result,
		.end = (uint64_t)t->fl.call.result +
		       ((a[1] + 0xfff) & ~(uint64_t)0xfff),
		.prot = (uint32_t)a[2],
		.flags = (uint32_t)a[3] &
			 (MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS |
			  MAP_GROWSDOWN),
	};
	*why = NULL;
	/* MAP_SHARED_VALIDATE is both bits. */
	if ((m->flags & (MAP_SHARED | MAP_PRIVATE)) ==
	    (MAP_SHARED | MAP_PRIVATE))
		m->flags &= ~(uint32_t)MAP_PRIVATE;
	if (m->flags & MAP_ANONYMOUS)
		return;
	m->file = rec_store_fd(r, t, (int)a[4], st, why);
	m->offset = m->file ? a[5] : 0;
	if (!m->file)
		m->flags |= MAP_ANONYMOUS;
}

void rec_after_mapping(struct recorder *r, struct task *t,
		       const struct tr_map *m, const struct stat *st,
		       const char *why)
{
	bool writable = m->prot & PROT_WRITE;
	struct tr_error err;

	if (why) {
		rec_stop_replay(r, t, TR_NOTE_UNMODELLED, "%s", why);
		return;
	}
	if (m->flags & MAP_SHARED) {
		if (writable)
			t->as->shared = true;
		if (m->file)
			rec_map_shared(r, t, st, m->file, writable);
	}
	tr_patches_drop(&t->as->patches, m->start, m->end);
	if (tr_patch_mapping(t->tid, m, &r->sites, &t->as->patches, &err) < 0)
		rec_stop_replay(r, t, TR_NOTE_UNMODELLED, "%s", err.text);
}
