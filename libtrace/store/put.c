/* Putting one file into a directory: clone, else hard link, else copy. */
#include "libtrace/store/put.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"
#include "libtrace/base/sha256.h"

struct source {
	int fd;          /* readable */
	bool own_offset; /* not shared with another holder of the file */
	char path[32];   /* under /proc/self/fd */
	struct stat st;
};

/*
 * Opening /proc/self/fd/N makes a new open file description of the same
 * file, deleted ones and memfds included (proc(5)).  Where that is refused
 * the given descriptor serves, if it can read.
 */
static int source_open(struct source *src, int fd, struct tr_error *err)
{
	int flags;

	snprintf(src->path, sizeof src->path, "/proc/self/fd/%d", fd);
	if (fstat(fd, &src->st) < 0)
		return tr_fail_errno(err, "stat");
	if (!S_ISREG(src->st.st_mode))
		return tr_fail(err, TR_EINVAL, "not a regular file");
	src->fd = open(src->path, O_RDONLY | O_CLOEXEC);
	src->own_offset = src->fd >= 0;
	if (src->fd >= 0)
		return 0;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY ||
	    (src->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return tr_fail_errno(err, "cannot open for reading");
	return 0;
}

/* Capabilities with which file modes do not protect a file. */
static bool privileged(void)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {{0}};
	const uint32_t bad = 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER |
			     1u << CAP_CHOWN;

	if (geteuid() == 0 || syscall(SYS_capget, &h, d) < 0)
		return true;
	return d[0].effective & bad || d[0].permitted & bad;
}

/*
 * A link shares the inode, so it is safe only when nobody running as this
 * user can write the file: not its mode, and not after a chmod, which its
 * owner may do.
 */
static bool may_link(const struct source *src)
{
	if (src->st.st_nlink == 0 || privileged() ||
	    src->st.st_uid == geteuid() || src->st.st_uid == getuid())
		return false;
	return faccessat(AT_FDCWD, src->path, W_OK, AT_EACCESS) < 0 &&
	       errno == EACCES;
}

static bool put_link(const struct source *src, int dir, const char *name)
{
	return !tr_fault("store-link") &&
	       linkat(AT_FDCWD, src->path, dir, name, AT_SYMLINK_FOLLOW) == 0;
}

static bool put_clone(const struct source *src, int out)
{
	return !tr_fault("store-clone") && ioctl(out, FICLONE, src->fd) == 0;
}

/* Bytes moved, 0 at the end of the source, -1. */
static ssize_t copy_some(int in, int out, off_t at, size_t n, bool *in_kernel)
{
	enum { BLOCK = 1 << 18, CALL = 1 << 30 };
	TR_AUTOFREE uint8_t *block = NULL;
	loff_t from = at, to = at;
	ssize_t r;

	if (*in_kernel && !tr_fault("store-copy-range")) {
		r = copy_file_range(in, &from, out, &to,
				    n < CALL ? n : CALL, 0);
		if (r > 0 || (r < 0 && (errno == ENOSPC || errno == EDQUOT)))
			return r;
	}
	/* Other errors mean "not for these files" (copy_file_range(2)); 0 is
	 * what some kernels answer for files of proc and sysfs. */
	*in_kernel = false;
	block = tr_alloc_buffer(BLOCK);
	r = tr_pread_full(in, block, n < BLOCK ? n : BLOCK, at);
	if (r > 0 && (tr_fault("store-write") ||
		      tr_pwrite_all(out, block, (size_t)r, at) < 0))
		return -1;
	return r;
}

static int copy_range(int in, int out, off_t at, off_t end, bool *in_kernel)
{
	while (at < end) {
		ssize_t n = copy_some(in, out, at, (size_t)(end - at),
				      in_kernel);

		if (n < 0)
			return -1;
		if (n == 0)
			return 0;
		at += n;
	}
	return 0;
}

static int put_copy(const struct source *src, int out)
{
	const off_t max = (off_t)1 << 62, size = src->st.st_size;
	bool in_kernel = true;
	off_t at = 0, end = size;

	if (size == 0) /* proc(5) files tell no size: read to the end */
		return copy_range(src->fd, out, 0, max, &in_kernel);
	/* Seeking would move the offset that another holder relies on. */
	while (at < size &&
	       (!src->own_offset || tr_next_data(src->fd, size, &at, &end))) {
		if (copy_range(src->fd, out, at, end, &in_kernel) < 0)
			return -1;
		at = end;
	}
	return ftruncate(out, size);
}

/* Was the file written while it was copied?  Then the copy may be a mixture. */
static bool unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int copy_stable(struct source *src, int out)
{
	enum { TRIES = 3 };
	struct stat before;

	for (int i = 0; i < TRIES; i++) {
		before = src->st;
		if (ftruncate(out, 0) < 0 || put_copy(src, out) < 0 ||
		    fstat(src->fd, &src->st) < 0)
			return -1;
		if (unchanged(&before, &src->st))
			return 0;
	}
	return 0; /* always being written: the digest tells what was kept */
}

/* A new file, filled by a clone or, if allowed, by a copy. */
static int put_bytes(struct source *src, int dir, const char *name,
		     bool may_copy, enum tr_store_method *method,
		     struct stat *stored)
{
	TR_AUTOCLOSE int out = -1;
	int saved;

	if (tr_fault("store-write"))
		return -1;
	out = openat(dir, name,
		     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (out < 0)
		return -1;
	*method = put_clone(src, out) ? TR_STORE_CLONE : TR_STORE_COPY;
	if ((*method == TR_STORE_CLONE ? fstat(src->fd, &src->st) == 0 :
	     may_copy && copy_stable(src, out) == 0) &&
	    fstat(out, stored) == 0)
		return 0;
	saved = errno;
	unlinkat(dir, name, 0);
	errno = saved;
	return -1;
}

static int put(struct source *src, int dir, const char *name,
	       enum tr_store_method *method, struct stat *stored)
{
	if (!may_link(src))
		return put_bytes(src, dir, name, true, method, stored);
	if (put_bytes(src, dir, name, false, method, stored) == 0)
		return 0;
	if (!put_link(src, dir, name))
		return put_bytes(src, dir, name, true, method, stored);
	*method = TR_STORE_LINK;
	if (fstat(src->fd, &src->st) < 0)
		return -1;
	*stored = src->st;
	return 0;
}

int tr_store_put(int files_fd, uint32_t id, int fd,
		 enum tr_store_method *method, struct stat *st,
		 struct stat *stored, struct tr_error *err)
{
	struct source src = {.fd = -1};
	char name[16];
	int r;

	if (source_open(&src, fd, err) < 0)
		return -1;
	snprintf(name, sizeof name, "%u", id);
	r = put(&src, files_fd, name, method, stored);
	if (r < 0)
		tr_fail_errno(err, "write");
	*st = src.st;
	close(src.fd);
	return r;
}

int tr_store_private(int files_fd, const char *name, int fd,
		     enum tr_store_method *method, struct tr_error *err)
{
	struct source src = {.fd = -1};
	struct stat stored;
	int r;

	if (source_open(&src, fd, err) < 0)
		return -1;
	r = put_bytes(&src, files_fd, name, true, method, &stored);
	if (r < 0)
		tr_fail_errno(err, "write");
	close(src.fd);
	return r;
}
