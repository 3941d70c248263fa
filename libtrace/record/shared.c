/*
 * Shared mappings of files: which domains see each other's writes.
 *
 * A file that only readers map shared joins nobody.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/maps.h"

void rec_shared_forget(struct recorder *r, const struct domain *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->nshared; i++)
		if (r->shared[i].domain != d)
			r->shared[kept++] = r->shared[i];
	r->nshared = kept;
}

/* The first other domain that must be joined because of this mapping. */
static struct domain *to_join(const struct recorder *r, const struct domain *d,
			      const struct stat *st, bool writable)
{
	for (size_t i = 0; i < r->nshared; i++) {
		const struct shared_file *s = &r->shared[i];

		if (s->dev == st->st_dev && s->ino == st->st_ino &&
		    s->domain != d && (writable || s->writable))
			return s->domain;
	}
	return NULL;
}

void rec_map_shared(struct recorder *r, struct task *t, const struct stat *st,
		    uint32_t file, bool writable)
{
	struct domain *d = t->as->domain, *other;

	while ((other = to_join(r, d, st, writable))) {
		for (size_t i = 0; i < r->nshared; i++)
			if (r->shared[i].domain == other)
				r->shared[i].domain = d;
		rec_domain_join(r, t, other);
	}
	for (size_t i = 0; i < r->nshared; i++) {
		struct shared_file *s = &r->shared[i];

		if (s->dev != st->st_dev || s->ino != st->st_ino ||
		    s->domain != d)
			continue;
		if (writable && !s->writable) {
			s->writable = true;
			rec_note(r, t->as->stream, t->id,
				 TR_NOTE_SHARED_WRITABLE, "");
		}
		return;
	}
	if (writable)
		rec_note(r, t->as->stream, t->id, TR_NOTE_SHARED_WRITABLE, "");
	/* Writes to the file must be seen from now on. */
	for (struct task *o = r->tasks; o; o = o->next)
		rec_calls_forget_fds(o);
	TR_GROW(r->shared, r->nshared, r->shared_cap);
	r->shared[r->nshared++] =
		(struct shared_file){st->st_dev, st->st_ino, file, d, writable};
}

static const struct shared_file *find(const struct recorder *r,
				      const struct stat *st)
{
	for (size_t i = 0; i < r->nshared; i++)
		if (r->shared[i].dev == st->st_dev &&
		    r->shared[i].ino == st->st_ino)
			return &r->shared[i];
	return NULL;
}

/* The descriptor's file, if it is mapped shared, and what stat(2) says of it. */
static const struct shared_file *find_fd(const struct recorder *r,
					 const struct task *t, int fd,
					 struct stat *st)
{
	char path[64];

	if (!r->nshared)
		return NULL;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)t->tid, fd);
	return stat(path, st) == 0 ? find(r, st) : NULL;
}

int64_t rec_shared_file(const struct recorder *r, const struct stat *st)
{
	const struct shared_file *s = find(r, st);

	return s ? s->file : 0;
}

/* Does the task map the inode shared, elsewhere than at [start, end)?  The device
 * of /proc/PID/maps is not that of stat(2) everywhere (btrfs). */
static bool maps_inode(const struct task *t, uint64_t ino, uint64_t start,
		       uint64_t end)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct tr_error err;

	if (tr_vmas_read(t->tid, &vmas, &err) < 0)
		return false;
	for (size_t i = 0; i < vmas.n; i++) {
		const struct tr_vma *v = &vmas.v[i];

		if (v->ino == ino && v->flags & MAP_SHARED &&
		    (v->end <= start || v->start >= end))
			return true;
	}
	return false;
}

/* One task of each address space; a leader that has ended has none. */
static bool stands_for_space(const struct recorder *r, const struct task *t)
{
	const struct task *o = r->tasks;

	while (o->as != t->as || o->exiting)
		o = o->next;
	return o == t;
}

int64_t rec_shared_now(const struct recorder *r, const struct task *t, int fd,
		       const struct tr_map *m, struct stat *st)
{
	const struct shared_file *s = find_fd(r, t, fd, st);

	if (!s)
		return 0;
	for (const struct task *o = r->tasks; o; o = o->next)
		if (o->as->domain == s->domain && !o->exiting &&
		    stands_for_space(r, o) &&
		    maps_inode(o, st->st_ino,
			       o->as == t->as ? m->start : 0,
			       o->as == t->as ? m->end : 0))
			return s->file;
	return 0;
}

bool rec_maps_shared(const struct recorder *r, const struct task *t, int fd)
{
	struct stat st;

	return find_fd(r, t, fd, &st) != NULL;
}

bool rec_file_position(pid_t tid, int fd, uint64_t *pos)
{
	TR_AUTOFREE char *path = tr_printf("/proc/%d/fdinfo/%d", (int)tid, fd);
	TR_AUTOFCLOSE FILE *f = fopen(path, "re");

	return f && fscanf(f, "pos: %" SCNu64, pos) == 1;
}

bool rec_file_offset(const struct task *t, uint64_t *offset, bool *writes)
{
	const struct tr_call *c = &t->fl.call;

	*writes = tr_sys_write_fd(c->nr) == 0;
	switch (c->nr) {
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pread64:
	case SYS_preadv:
		*offset = c->args[3];
		return true;
	case SYS_write:
	case SYS_writev:
	case SYS_read:
	case SYS_readv:
		if (!rec_file_position(t->tid, (int)c->args[0], offset))
			return false;
		*offset -= (uint64_t)c->result;
		return true;
	default:
		return false;
	}
}

void rec_write_shared(struct recorder *r, const struct task *t,
		      struct tr_event *ev)
{
	const struct tr_call *c = &t->fl.call;
	bool resizes = c->nr == SYS_ftruncate || c->nr == SYS_fallocate;
	const struct shared_file *s;
	uint64_t offset;
	struct stat st;
	bool writes;

	if (c->result < 0 || (!resizes && tr_sys_write_fd(c->nr) != 0))
		return;
	s = find_fd(r, t, (int)c->args[0], &st);
	if (!s || (!resizes && !rec_file_offset(t, &offset, &writes)))
		return;
	tr_event_set(ev, TR_F_FILE, s->file);
	tr_event_set(ev, TR_F_SIZE, (uint64_t)st.st_size);
	if (!resizes)
		tr_event_set(ev, TR_F_OFFSET, offset);
}
