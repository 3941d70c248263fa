/* Where the parts of a trace are. */
#include "libtrace/format/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"

void tr_home_release(struct tr_home *p)
{
	if (p->dirfd >= 0)
		close(p->dirfd);
	if (p->archive >= 0)
		close(p->archive);
	free(p->entries);
	*p = (struct tr_home){.dirfd = -1, .archive = -1};
}

void tr_home_copy(struct tr_home *to, const struct tr_home *from)
{
	*to = *from;
	to->cap = from->n;
	to->archive = fcntl(from->archive, F_DUPFD_CLOEXEC, 0);
	to->entries = from->n ? tr_memdup(from->entries,
					  from->n * sizeof *from->entries) :
				NULL;
}

static int by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct tr_home_entry *)entry)->name);
}

static int open_member(const struct tr_home *p, const char *name,
		       struct tr_part *part, struct tr_error *err)
{
	const struct tr_home_entry *e =
		p->n ? bsearch(name, p->entries, p->n, sizeof *p->entries,
			       by_name) : NULL;

	if (!e) {
		errno = ENOENT;
		return tr_fail_errno(err, "%s", name);
	}
	if (!e->readable)
		return tr_fail(err, TR_EUNSUPPORTED, "%s: has holes: unpack the "
			       "archive to read it", name);
	*part = (struct tr_part){p->archive, false, e->start, e->size};
	return 0;
}

static int open_file(const struct tr_home *p, const char *name,
		     struct tr_part *part, struct tr_error *err)
{
	struct stat st;
	int fd = openat(p->dirfd, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno == ELOOP)
		return tr_fail(err, TR_ECORRUPT, "%s: a symbolic link", name);
	if (fd < 0)
		return tr_fail_errno(err, "%s", name);
	if (fstat(fd, &st) < 0) {
		tr_fail_errno(err, "%s", name);
	} else if (!S_ISREG(st.st_mode)) {
		tr_fail(err, TR_ECORRUPT, "%s: not a regular file", name);
	} else {
		*part = (struct tr_part){fd, true, 0, (uint64_t)st.st_size};
		return 0;
	}
	close(fd);
	return -1;
}

int tr_home_open(const struct tr_home *p, const char *name,
		  struct tr_part *part, struct tr_error *err)
{
	*part = (struct tr_part){.fd = -1};
	return p->dirfd < 0 ? open_member(p, name, part, err) :
			      open_file(p, name, part, err);
}

int tr_stored_open(int dirfd, uint32_t file)
{
	char name[32];

	snprintf(name, sizeof name, "files/%" PRIu32, file);
	return openat(dirfd, name,
		      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

void tr_part_close(struct tr_part *part)
{
	if (part->owned)
		close(part->fd);
	*part = (struct tr_part){.fd = -1};
}

/* A file may grow while it is read: what was there is read. */
ssize_t tr_part_read(const struct tr_part *part, void *buf, size_t n,
		     uint64_t at)
{
	if (at >= part->size)
		return 0;
	if (n > part->size - at)
		n = (size_t)(part->size - at);
	return tr_pread_full(part->fd, buf, n, (off_t)(part->start + at));
}

int tr_home_load(const struct tr_home *p, const char *name, size_t max,
		  struct tr_buf *b, struct tr_error *err)
{
	struct tr_part part;
	ssize_t n;

	if (p->dirfd >= 0)
		return tr_read_file(p->dirfd, name, max, b, err);
	if (tr_home_open(p, name, &part, err) < 0)
		return -1;
	if (part.size > max)
		return tr_fail(err, TR_ECORRUPT, "%s: too large", name);
	n = tr_part_read(&part, tr_buf_reserve(b, (size_t)part.size),
			 (size_t)part.size, 0);
	tr_part_close(&part);
	if (n < 0)
		return tr_fail_errno(err, "%s", name);
	b->len += (size_t)n;
	return 0;
}

/* The first component below dir, once for each. */
static int member_names(const struct tr_home *p, const char *dir,
			tr_name_fn *fn, void *arg, struct tr_error *err)
{
	size_t skip = *dir ? strlen(dir) + 1 : 0;
	char last[32] = "";
	bool any = false;

	for (size_t i = 0; i < p->n; i++) {
		const char *name = p->entries[i].name;
		char first[32];

		if (skip && (strncmp(name, dir, skip - 1) != 0 ||
			     name[skip - 1] != '/'))
			continue;
		snprintf(first, sizeof first, "%.*s",
			 (int)strcspn(name + skip, "/"), name + skip);
		any = true;
		if (*first && strcmp(first, last) != 0)
			fn(arg, first);
		memcpy(last, first, sizeof last);
	}
	if (any)
		return 0;
	errno = ENOENT;
	return tr_fail_errno(err, "%s", dir);
}

static int file_names(const struct tr_home *p, const char *dir,
		      tr_name_fn *fn, void *arg, struct tr_error *err)
{
	int fd = openat(p->dirfd, *dir ? dir : ".",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	int failed;

	if (!d) {
		tr_fail_errno(err, "%s", dir);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while (errno = 0, (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			fn(arg, e->d_name);
	failed = errno ? tr_fail_errno(err, "%s", dir) : 0;
	closedir(d);
	return failed;
}

int tr_home_names(const struct tr_home *p, const char *dir, tr_name_fn *fn,
		   void *arg, struct tr_error *err)
{
	return p->dirfd < 0 ? member_names(p, dir, fn, arg, err) :
			      file_names(p, dir, fn, arg, err);
}
