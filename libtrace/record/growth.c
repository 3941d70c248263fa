/*
 * Privately mapped files that grow or shrink while they are mapped.
 *
 * A private mapping shows its file's size: pages beyond the end raise SIGBUS
 * until the file has grown, and do so again when it is cut.  Replay has the
 * file as it was when it was mapped.  So where that can be expected, because
 * the mapping reaches beyond the end or the file was opened for writing, its
 * size is looked at after every call that stops, and a change is recorded as a
 * poke: the pages that came, or their going.  Where a recorded task writes to
 * the file, or may, all calls of those who have it mapped stop.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/recorder.h"

#define PAGE UINT64_C(4096)
/* An offset at which no stored file has bytes: what is mapped from there
 * raises SIGBUS. */
#define BEYOND (UINT64_C(1) << 50)

static uint64_t page_up(uint64_t x)
{
	return (x + PAGE - 1) / PAGE * PAGE;
}

/* The permissions of the link say how the file was opened, proc(5). */
static bool is_open_for_writing(const char *link)
{
	struct stat st;

	return lstat(link, &st) == 0 && (st.st_mode & 0200);
}

/* The files recorded tasks write to, by inode number: a device more or less
 * only makes us more careful. */
static bool is_written(const struct recorder *r, uint64_t ino)
{
	return tr_table_get(&r->written, ino);
}

/* Its tasks' calls are looked at from here on, the one under way first. */
static void watch(struct recorder *r, struct aspace *as)
{
	as->grows = true;
	for (struct task *o = r->tasks; o; o = o->next)
		if (o->as == as)
			rec_calls_trace_this(o);
}

bool rec_growth_written(struct recorder *r, const struct task *t, int fd)
{
	bool follows = false;
	char link[64];
	struct stat st;

	snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)t->tid, fd);
	if (!r->intercept || stat(link, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	tr_table_set(&r->written, st.st_ino, r);
	for (struct task *o = r->tasks; o; o = o->next)
		for (size_t i = 0; o->as && i < o->as->nfollowed; i++) {
			if (o->as->followed[i].ino != st.st_ino)
				continue;
			follows = true;
			if (!o->as->grows)
				watch(r, o->as);
		}
	return follows;
}

void rec_growth_mapped(struct recorder *r, struct task *t,
		       const struct tr_call *c, const struct tr_map *m,
		       const struct stat *st)
{
	struct aspace *as = t->as;
	struct followed f = {.ino = st->st_ino, .file = m->file,
			     .size = (uint64_t)st->st_size};
	char link[64];

	if (c->nr != SYS_mmap || !m->file || (m->flags & MAP_SHARED) ||
	    (m->prot & PROT_EXEC))
		return;
	for (size_t i = 0; i < as->nfollowed; i++)
		if (as->followed[i].ino == f.ino)
			return;
	snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)t->tid,
		 (int)c->args[4]);
	if (m->offset + (m->end - m->start) <= page_up(f.size) &&
	    !is_open_for_writing(link))
		return;
	f.fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f.fd < 0)
		return;
	TR_GROW(as->followed, as->nfollowed, as->followed_cap);
	as->followed[as->nfollowed++] = f;
	if (is_open_for_writing(link))
		as->grows = true;
	if (!is_written(r, f.ino))
		return;
	/* Writes to the file must be seen from now on. */
	as->grows = true;
	for (struct task *o = r->tasks; o; o = o->next)
		rec_calls_forget_fds(o);
}

void rec_growth_copy(struct aspace *to, const struct aspace *from)
{
	to->grows = from->grows;
	for (size_t i = 0; i < from->nfollowed; i++) {
		struct followed f = from->followed[i];

		f.fd = fcntl(f.fd, F_DUPFD_CLOEXEC, 0);
		if (f.fd < 0)
			continue;
		TR_GROW(to->followed, to->nfollowed, to->followed_cap);
		to->followed[to->nfollowed++] = f;
	}
}

void rec_growth_release(struct aspace *as)
{
	for (size_t i = 0; i < as->nfollowed; i++)
		close(as->followed[i].fd);
	free(as->followed);
}

/* What of [from, to) of the file the mapping shows, as addresses. */
static bool shown(const struct tr_vma *v, uint64_t from, uint64_t to,
		  struct tr_range *rg)
{
	uint64_t end = v->offset + (v->end - v->start);

	from = from < v->offset ? v->offset : from;
	to = to > end ? end : to;
	if (from >= to)
		return false;
	*rg = (struct tr_range){.addr = v->start + (from - v->offset),
				.len = to - from};
	return true;
}

static void add_range(struct tr_ranges *rs, const struct tr_range *rg)
{
	TR_GROW(rs->r, rs->n, rs->cap);
	rs->r[rs->n++] = *rg;
}

static void record(struct recorder *r, struct task *t, const struct followed *f,
		   const struct tr_vma *v, uint64_t size)
{
	uint64_t old_end = page_up(f->size), end = page_up(size);
	uint64_t edge = (size < f->size ? size : f->size) / PAGE * PAGE;
	struct tr_event ev = rec_event(TR_EV_POKE, t);
	struct tr_map m = {.prot = v->prot, .flags = v->flags};
	struct tr_ranges contents = {0};
	struct tr_range rg;

	if (edge < end && edge < old_end && shown(v, edge, edge + PAGE, &rg))
		add_range(&contents, &rg);
	if (end > old_end ? shown(v, old_end, end, &rg)
			  : shown(v, end, old_end, &rg)) {
		m.start = rg.addr;
		m.end = rg.addr + rg.len;
		m.file = end > old_end ? 0 : f->file;
		m.flags |= end > old_end ? MAP_ANONYMOUS : 0;
		m.offset = end > old_end ? 0 : BEYOND;
		if (end > old_end)
			add_range(&contents, &rg);
		ev.map = &m;
		ev.nmap = 1;
		tr_event_mark(&ev, TR_F_MAP);
	}
	rec_read_ranges(r, t, &contents, &ev);
	if (ev.nmap || ev.nmem)
		rec_emit(r, &ev);
	tr_ranges_release(&contents);
}

static void resized(struct recorder *r, struct task *t, struct followed *f,
		    uint64_t size)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct tr_error ignored;

	if (tr_vmas_read(t->tid, &vmas, &ignored) < 0)
		return; /* SIGKILL took it */
	for (size_t i = 0; i < vmas.n; i++)
		if (vmas.v[i].ino == f->ino && vmas.v[i].flags == MAP_PRIVATE)
			record(r, t, f, &vmas.v[i], size);
	f->size = size;
}

void rec_growth_check(struct recorder *r, struct task *t)
{
	struct stat st;

	for (size_t i = 0; i < t->as->nfollowed; i++) {
		struct followed *f = &t->as->followed[i];

		if (fstat(f->fd, &st) == 0 && (uint64_t)st.st_size != f->size)
			resized(r, t, f, (uint64_t)st.st_size);
	}
}
