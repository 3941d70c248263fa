/*
 * What large reads are from, so that the trace can share their blocks with the
 * file (format/clone.h).
 *
 * The descriptor that an address space reads last is kept open, and where it
 * stands is followed by what is read from it.  That can be wrong, when others
 * move it: the writer compares, and says so.
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

void rec_reading_release(struct aspace *as)
{
	forget(&as->reading);
}

void rec_reading_moved(struct aspace *as, uint64_t fd)
{
	if (as->reading.known && as->reading.fd == (int)fd)
		forget(&as->reading);
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
static bool has_failed(struct recorder *r, struct reading *rd)
{
	if (!rd->source || tr_source_state(rd->source) == TR_SOURCE_GOOD)
		return false;
	if (tr_source_state(rd->source) == TR_SOURCE_UNABLE ||
	    ++r->wrong_sources == WRONG_MAX)
		r->no_clones = true;
	forget(rd);
	return r->no_clones;
}

static bool begin(struct recorder *r, const struct task *t, int fd,
		  uint64_t behind)
{
	struct reading *rd = &t->as->reading;
	uint64_t at;

	forget(rd);
	rd->known = true;
	rd->fd = fd;
	if (!rec_file_position(t->tid, fd, &at) || at < behind)
		return false;
	rd->next = at - behind;
	rd->source = open_source(r, t, fd);
	return rd->source != NULL;
}

void rec_reading(struct recorder *r, const struct task *t,
		 const struct tr_call *c, uint64_t later)
{
	struct reading *rd = &t->as->reading;
	uint64_t n = (uint64_t)c->result;
	struct tr_read_from from = {.addr = c->args[1], .len = n};
	int fd = (int)c->args[0];

	if ((c->nr != SYS_read && c->nr != SYS_pread64) || !r->writer ||
	    c->result < (int64_t)TR_CLONE_MIN || r->no_clones ||
	    has_failed(r, rd))
		return;
	if ((!rd->known || rd->fd != fd) &&
	    !begin(r, t, fd, later + (c->nr == SYS_read ? n : 0)))
		return;
	if (!rd->source)
		return;
	from.source = rd->source;
	from.offset = c->nr == SYS_read ? rd->next : c->args[3];
	if (c->nr == SYS_read)
		rd->next += n;
	tr_writer_read_from(r->writer, &from);
}

void rec_reading_over(struct recorder *r)
{
	if (r->writer)
		tr_writer_read_from(r->writer, NULL);
}
