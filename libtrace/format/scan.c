/*
 * Recovery by scanning: chunk headers follow each other, and where they do
 * not, the next valid one is searched for.
 */
#include "libtrace/format/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/format/chunk.h"

#define WINDOW ((size_t)1 << 20)

struct file {
	int fd;
	uint32_t number;
	uint64_t size;
	uint8_t *window; /* for searching; allocated when needed */
};

int tr_chunk_file_open(int dirfd, uint32_t file, off_t *size,
		       struct tr_error *err)
{
	char name[TR_CHUNK_NAME];
	struct stat st;
	int fd;

	tr_chunk_name(name, file);
	/* The trace may come from anywhere: no link is followed, no FIFO
	 * waited for. */
	fd = openat(dirfd, name,
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
		*size = st.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

/* The number in a chunk file's name, or -1. */
static long name_number(const char *name)
{
	if (strlen(name) != 6 || strspn(name, "0123456789") != 6)
		return -1;
	return strtol(name, NULL, 10);
}

int tr_chunk_file_count(int dirfd, uint32_t *n, struct tr_error *err)
{
	int fd = openat(dirfd, "chunks",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	*n = 0;
	if (!d) {
		tr_fail_errno(err, "chunks");
		if (fd >= 0)
			close(fd);
		/* A recorder killed at once leaves only the manifest. */
		return err->sys_errno == ENOENT ? 0 : -1;
	}
	for (errno = 0; (e = readdir(d)) != NULL; errno = 0) {
		long number = name_number(e->d_name);

		if (number >= (long)*n)
			*n = (uint32_t)number + 1;
	}
	if (errno)
		tr_fail_errno(err, "chunks");
	fd = errno ? -1 : 0;
	closedir(d);
	return fd;
}

/* Is a whole chunk at this offset?  1 yes, 0 no, -1 failure. */
static int chunk_at(const struct file *f, uint64_t at,
		    struct tr_chunk_header *h, struct tr_error *err)
{
	uint8_t bytes[TR_CHUNK_HEADER];
	ssize_t r;

	if (f->size - at < sizeof bytes)
		return 0;
	r = tr_pread_full(f->fd, bytes, sizeof bytes, (off_t)at);
	if (r < 0) {
		char name[TR_CHUNK_NAME];

		tr_chunk_name(name, f->number);
		return tr_fail_errno(err, "%s", name);
	}
	if ((size_t)r < sizeof bytes)
		return 0;
	if (tr_chunk_decode(bytes, h, err) < 0)
		return err->code == TR_EFEATURE ? -1 : 0;
	return h->stored_size <= f->size - at - sizeof bytes;
}

static void note_chunk(struct tr_scan *s, const struct file *f, uint64_t at,
		       const struct tr_chunk_header *h)
{
	TR_GROW(s->refs, s->n, s->cap);
	s->refs[s->n++] = tr_chunk_ref(h, f->number, at);
}

/* The first whole chunk in the window's n bytes, which stand at `base`;
 * 1 with *at set, 0 when there is none. */
static int search_window(const struct file *f, uint64_t base, size_t n,
			 uint64_t *at, struct tr_error *err)
{
	const uint8_t *p = f->window, *end = p + n;

	while ((p = memmem(p, (size_t)(end - p), TR_CHUNK_MAGIC, 4)) != NULL) {
		struct tr_chunk_header h;
		int r = chunk_at(f, base + (uint64_t)(p - f->window), &h, err);

		if (r != 0) {
			*at = base + (uint64_t)(p - f->window);
			return r;
		}
		p++;
	}
	return 0;
}

/* The offset of the next whole chunk from `from` on, or the file's size. */
static int resync(struct file *f, uint64_t from, uint64_t *at,
		  struct tr_error *err)
{
	size_t room = f->size < WINDOW ? (size_t)f->size : WINDOW;

	if (!f->window)
		f->window = tr_alloc(room);
	while (f->size - from >= TR_CHUNK_HEADER) {
		ssize_t n = tr_pread_full(f->fd, f->window, room, (off_t)from);
		int r;

		if (n < 4)
			break;
		r = search_window(f, from, (size_t)n, at, err);
		if (r != 0)
			return r < 0 ? -1 : 0;
		from += (uint64_t)n - 3; /* a magic across the border */
	}
	*at = f->size;
	return 0;
}

static int scan_file(struct file *f, struct tr_scan *s, struct tr_error *err)
{
	uint64_t at = 0;

	while (at < f->size) {
		struct tr_chunk_header h;
		uint64_t next;
		int r = chunk_at(f, at, &h, err);

		if (r < 0)
			return -1;
		if (r > 0) {
			note_chunk(s, f, at, &h);
			at += TR_CHUNK_HEADER + h.stored_size;
			continue;
		}
		if (resync(f, at + 1, &next, err) < 0)
			return -1;
		s->lost += next - at;
		at = next;
	}
	return 0;
}

static int scan_number(int dirfd, uint32_t number, struct tr_scan *s,
		       struct tr_error *err)
{
	struct file f = {.number = number};
	off_t size;
	int r;

	f.fd = tr_chunk_file_open(dirfd, number, &size, err);
	if (f.fd < 0 && err->code == TR_ESYS && err->sys_errno == ENOENT) {
		s->missing = true;
		return 0;
	}
	if (f.fd < 0)
		return -1;
	f.size = (uint64_t)size;
	r = scan_file(&f, s, err);
	free(f.window);
	close(f.fd);
	return r;
}

int tr_scan(int dirfd, struct tr_scan *s, struct tr_error *err)
{
	uint32_t files;

	*s = (struct tr_scan){0};
	if (tr_chunk_file_count(dirfd, &files, err) < 0)
		return -1;
	s->missing = files == 0;
	for (uint32_t i = 0; i < files; i++) {
		if (scan_number(dirfd, i, s, err) < 0) {
			free(s->refs);
			return -1;
		}
	}
	return 0;
}
