/* Stored files taken from this machine's own files. */
#include "libtrace/store/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"

/*
 * The path may come from an archive that is not to be trusted: only regular
 * files are opened, and only those of the right size are read.
 */
static int open_candidate(const char *path, uint64_t size)
{
	struct stat st;
	int fd;

	if (path[0] != '/' || stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size != size)
		return -1;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == size)
		return fd;
	close(fd);
	return -1;
}

static bool is_it(int fd, const struct tr_stored *s)
{
	uint8_t sha256[TR_SHA256_SIZE];
	struct tr_error ignored;

	return tr_stored_digest(s, fd, sha256, &ignored) == 0 &&
	       memcmp(sha256, s->sha256, TR_SHA256_SIZE) == 0;
}

/* The clone is private, so what was checked is what is kept. */
static bool try_clone(int out, int in, const struct tr_stored *s)
{
	return !tr_fault("unpack-clone") && ioctl(out, FICLONE, in) == 0 &&
	       is_it(out, s);
}

/* 1 copied and right, 0 not, -1 when writing failed. */
static int try_copy(int out, int in, const struct tr_stored *s)
{
	enum { BLOCK = 1 << 18 };
	TR_AUTOFREE uint8_t *block = tr_alloc_buffer(BLOCK);
	uint8_t sha256[TR_SHA256_SIZE];
	struct tr_sha256 *h = tr_sha256_new();
	uint64_t left = s->size;

	while (left > 0) {
		size_t want = left < BLOCK ? (size_t)left : BLOCK;
		ssize_t n = tr_read_full(in, block, want);

		if (n != (ssize_t)want)
			break;
		tr_sha256_update(h, block, want);
		if (tr_fault("unpack-write") ||
		    tr_write_all(out, block, want) < 0) {
			tr_sha256_free(h);
			return -1;
		}
		left -= want;
	}
	tr_sha256_final(h, sha256);
	return left == 0 && memcmp(sha256, s->sha256, TR_SHA256_SIZE) == 0;
}

static int fetch_from(int out, const char *path, const struct tr_stored *s,
		      uint64_t *room, enum tr_fetched *how,
		      struct tr_error *err)
{
	TR_AUTOCLOSE int in = open_candidate(path, s->size);
	int r;

	if (in < 0)
		return 0;
	if (try_clone(out, in, s)) {
		*how = TR_FETCH_CLONED;
		return 0;
	}
	if (ftruncate(out, 0) < 0 || lseek(out, 0, SEEK_SET) < 0)
		return tr_fail_errno(err, "truncate");
	if (!room || s->pages || s->size > *room)
		return 0;
	r = try_copy(out, in, s);
	if (r < 0)
		return tr_fail_errno(err, "write");
	if (r > 0) {
		*room -= s->size;
		*how = TR_FETCH_COPIED;
		return 0;
	}
	if (ftruncate(out, 0) < 0 || lseek(out, 0, SEEK_SET) < 0)
		return tr_fail_errno(err, "truncate");
	return 0;
}

static int on_found(void *arg, const struct tr_have_file *f)
{
	tr_have_add(arg, f->sha256, f->path);
	return 0;
}

/* A place that is not there has nothing. */
static const struct tr_have *search(struct tr_fetcher *f)
{
	struct tr_error ignored;
	int r;

	if (f->found || !f->places)
		return f->found;
	f->found = tr_have_new();
	for (const char *const *p = f->places; *p; p++) {
		r = tr_have_find(*p, on_found, f->found, &ignored);
		(void)r;
	}
	return f->found;
}

static int fetch_any(int out, const struct tr_have *have,
		     const struct tr_stored *s, uint64_t *room,
		     enum tr_fetched *how, struct tr_error *err)
{
	const char *path;

	for (size_t i = 0; *how == TR_FETCH_NONE &&
	     (path = tr_have_path(have, s->sha256, i)); i++)
		if (fetch_from(out, path, s, room, how, err) < 0)
			return -1;
	return 0;
}

int tr_fetch(struct tr_fetcher *f, int out, const struct tr_stored *s,
	     uint64_t *room, enum tr_fetched *how, struct tr_error *err)
{
	*how = TR_FETCH_NONE;
	if (!s->has_digest || s->size == 0)
		return 0;
	if (fetch_from(out, s->path, s, room, how, err) < 0 ||
	    fetch_any(out, f->have, s, room, how, err) < 0)
		return -1;
	if (room && *how == TR_FETCH_NONE)
		return fetch_any(out, search(f), s, room, how, err);
	return 0;
}

void tr_fetcher_release(struct tr_fetcher *f)
{
	tr_have_free(f->found);
	f->found = NULL;
}
