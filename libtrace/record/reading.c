/*
 * What large reads are from, so that the trace can share their blocks with the
 * file (format/clone.h).
 *
 * The files that were read last are kept open, and where their descriptors stand
 * is followed by what is read from them.  That can be wrong, when others move
 * them: the writer compares, and says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/clone.h"
#include "libtrace/record/recorder.h"

/* After so many wrong guesses there are no more. */
#define WRONG_MAX 100u

static void forget(struct reading *rd)
{
	tr_source_release(rd->source);
	*rd = (struct reading){0};
}

void rec_reading_release(struct recorder *r, const struct aspace *as)
{
	for (size_t i = 0; i < REC_READINGS; i++)
		if (r->reading[i].as == as)
			forget(&r->reading[i]);
}

static struct reading *find(struct recorder *r, const struct aspace *as, int fd)
{
	for (size_t i = 0; i < REC_READINGS; i++)
		if (r->reading[i].as == as && r->reading[i].fd == fd)
			return &r->reading[i];
	return NULL;
}

void rec_reading_moved(struct recorder *r, const struct aspace *as, uint64_t fd)
{
	struct reading *rd = find(r, as, (int)fd);

	if (rd)
		forget(rd);
}

/* Only a file where the trace is can share its blocks with it.  Opening it
 * anew leaves the program's descriptor and its locks alone. */
static struct tr_source *open_source(const struct recorder *r,
				     const struct task *t, int fd)
{
	TR_AUTOFREE char *path = tr_printf("/proc/%d/fd/%d", (int)t->tid, fd);
	struct stat st, home;
	int own;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    fstat(r->dirfd, &home) < 0 || st.st_dev != home.st_dev)
		return NULL;
	own = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return own < 0 ? NULL : tr_source_new(own);
}

/* Has trying shown that there is nothing to be had? */
static bool has_failed(struct recorder *r, const struct reading *rd)
{
	if (!rd->source || tr_source_state(rd->source) == TR_SOURCE_GOOD)
		return false;
	if (tr_source_state(rd->source) == TR_SOURCE_UNABLE ||
	    ++r->wrong_sources == WRONG_MAX)
		r->no_clones = true;
	return true;
}

/* In place of what was read least recently. */
static struct reading *begin(struct recorder *r, const struct task *t, int fd,
			     uint64_t behind)
{
	struct reading *rd = r->reading;
	uint64_t at;

	for (size_t i = 1; i < REC_READINGS; i++)
		if (r->reading[i].used < rd->used)
			rd = &r->reading[i];
	forget(rd);
	rd->as = t->as;
	rd->fd = fd;
	if (rec_file_position(t->tid, fd, &at) && at >= behind) {
		rd->next = at - behind;
		rd->source = open_source(r, t, fd);
	}
	return rd;
}

bool rec_reads_much(const struct tr_call *c)
{
	return (c->nr == SYS_read || c->nr == SYS_pread64) &&
	       c->result >= (int64_t)TR_CLONE_MIN;
}

void rec_reading(struct recorder *r, const struct task *t,
		 const struct tr_call *c, uint64_t later)
{
	bool moves = c->nr == SYS_read;
	uint64_t n = (uint64_t)c->result;
	struct tr_read_from from = {.addr = c->args[1], .len = n};
	struct reading *rd;
	int fd = (int)c->args[0];

	if (!r->writer || r->no_clones)
		return;
	rd = find(r, t->as, fd);
	if (rd && has_failed(r, rd)) {
		forget(rd);
		rd = NULL;
	}
	if (!rd)
		rd = begin(r, t, fd, later + (moves ? n : 0));
	rd->used = ++r->readings;
	if (!rd->source)
		return;
	from.source = rd->source;
	from.offset = moves ? rd->next : c->args[3];
	if (moves)
		rd->next += n;
	tr_writer_read_from(r->writer, &from);
}

void rec_reading_over(struct recorder *r)
{
	if (r->writer)
		tr_writer_read_from(r->writer, NULL);
}
