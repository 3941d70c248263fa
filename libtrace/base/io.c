/* File input and output that finishes what it starts. */
#include "libtrace/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"

int tr_write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -1;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

int tr_pwrite_all(int fd, const void *data, size_t n, off_t at)
{
	const char *p = data;

	while (n > 0) {
		ssize_t w = pwrite(fd, p, n, at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -1;
		p += w;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

ssize_t tr_read_full(int fd, void *data, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)data + got, n - got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

ssize_t tr_pread_full(int fd, void *data, size_t n, off_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, (char *)data + got, n - got,
				  at + (off_t)got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

int tr_read_file(int dirfd, const char *path, size_t max, struct tr_buf *b,
		 struct tr_error *err)
{
	TR_AUTOCLOSE int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	size_t start = b->len;

	if (fd < 0)
		return tr_fail_errno(err, "%s", path);
	for (;;) {
		size_t want = 65536;
		ssize_t r = tr_read_full(fd, tr_buf_reserve(b, want), want);

		if (r < 0)
			return tr_fail_errno(err, "%s", path);
		b->len += (size_t)r;
		if (b->len - start > max)
			return tr_fail(err, TR_ECORRUPT,
				       "%s: larger than %zu bytes", path, max);
		if ((size_t)r < want)
			return 0;
	}
}

int tr_replace_file(int dirfd, const char *path, const void *data, size_t n,
		    bool sync, struct tr_error *err)
{
	TR_AUTOFREE char *tmp = tr_printf("%s.tmp", path);
	TR_AUTOCLOSE int fd = openat(dirfd, tmp,
				     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
				     0600);

	if (fd < 0)
		return tr_fail_errno(err, "%s", tmp);
	if (tr_fault("replace-file") || tr_write_all(fd, data, n) < 0 ||
	    (sync && fsync(fd) < 0) || renameat(dirfd, tmp, dirfd, path) < 0) {
		tr_fail_errno(err, "%s", path);
		unlinkat(dirfd, tmp, 0);
		return -1;
	}
	return 0;
}

int tr_make_dirs(const char *path, mode_t mode, struct tr_error *err)
{
	TR_AUTOFREE char *p = tr_strdup(path);

	for (char *s = p + 1; *s; s++) {
		if (*s != '/')
			continue;
		*s = '\0';
		if (mkdir(p, mode) < 0 && errno != EEXIST)
			return tr_fail_errno(err, "%s", p);
		*s = '/';
	}
	if (mkdir(p, mode) < 0 && errno != EEXIST)
		return tr_fail_errno(err, "%s", p);
	return 0;
}

uint64_t tr_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
