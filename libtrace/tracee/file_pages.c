/* Hashes of the pages of mapped files. */
#include "libtrace/tracee/file_pages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/tracee/page_hash.h"

/* Files kept open at a time. */
#define KEPT 192u
#define BLOCK (64u * TR_PAGE)

struct file {
	unsigned major, minor;
	uint64_t ino;
	char *name; /* subvolumes of one device have the same numbers */
	int fd; /* holds the inode, so that its number names this file */
	struct stat st;
	bool fresh; /* it may change again within the clock's tick */
	uint64_t *hash;
	size_t n;
	struct tr_page_extent *extent;
	size_t nextents, extent_cap;
};

struct tr_file_pages {
	struct file kept[KEPT];
	size_t n, next; /* next: the one to give up when all are in use */
	uint8_t block[BLOCK];
};

struct tr_file_pages *tr_file_pages_new(void)
{
	return tr_alloc(sizeof(struct tr_file_pages));
}

static void release(struct file *f)
{
	close(f->fd);
	free(f->name);
	free(f->hash);
	free(f->extent);
}

void tr_file_pages_free(struct tr_file_pages *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		release(&f->kept[i]);
	free(f);
}

/* Opening a device or a pipe could have effects: look before. */
static int open_regular(const char *path, struct stat *st)
{
	TR_AUTOCLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	char own[64];

	if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
		return -1;
	snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
	return open(own, O_RDONLY | O_CLOEXEC);
}

/* Some file systems (btrfs, overlayfs) show other device numbers in maps than
 * in stat, both of them anonymous ones. */
static bool is_same(const struct stat *st, const struct tr_vma *v)
{
	return st->st_ino == v->ino &&
	       ((major(st->st_dev) == v->major && minor(st->st_dev) == v->minor) ||
		(major(st->st_dev) == 0 && v->major == 0));
}

/* A file without a name, when a process still holds a descriptor of it. */
static int find_memory_file(const char *fds, const struct tr_vma *v)
{
	DIR *d = opendir(fds);
	const struct dirent *e;
	struct stat st;
	int fd = -1;

	while (d && fd < 0 && (e = readdir(d)))
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
		    S_ISREG(st.st_mode) && is_same(&st, v))
			fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC);
	if (d)
		closedir(d);
	return fd;
}

/* /proc/PID/map_files is exact but needs CAP_CHECKPOINT_RESTORE; otherwise the
 * path must still name the same inode. */
int tr_vma_open(pid_t tid, const struct tr_vma *v)
{
	struct stat st;
	char path[4200];
	int fd;

	if (!v->ino)
		return -1;
	snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		 (int)tid, v->start, v->end);
	fd = open_regular(path, &st);
	if (fd >= 0 || v->name[0] != '/')
		return fd;
	if (strncmp(v->name, "/memfd:", 7) == 0) {
		snprintf(path, sizeof path, "/proc/%d/fd", (int)tid);
		fd = find_memory_file(path, v);
		return fd >= 0 ? fd : find_memory_file("/proc/self/fd", v);
	}
	snprintf(path, sizeof path, "/proc/%d/root%s", (int)tid, v->name);
	fd = open_regular(path, &st);
	if (fd >= 0 && !is_same(&st, v)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_file_of(const struct file *f, const struct tr_vma *v)
{
	return f->ino == v->ino && f->major == v->major &&
	       f->minor == v->minor && strcmp(f->name, v->name) == 0;
}

static bool is_unchanged(const struct file *f, const struct stat *now)
{
	return f->hash && !f->fresh && f->st.st_size == now->st_size &&
	       f->st.st_mtim.tv_sec == now->st_mtim.tv_sec &&
	       f->st.st_mtim.tv_nsec == now->st_mtim.tv_nsec &&
	       f->st.st_ctim.tv_sec == now->st_ctim.tv_sec &&
	       f->st.st_ctim.tv_nsec == now->st_ctim.tv_nsec;
}

/* Times have the resolution of the kernel's tick, at most 10 ms: of what was
 * just written they do not tell the next write. */
static bool is_fresh(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (now.tv_sec - st->st_ctim.tv_sec) * INT64_C(1000) +
	       (now.tv_nsec - st->st_ctim.tv_nsec) / 1000000 < 100;
}

/* One extent of data.  A file that shrinks meanwhile has zeros there, as a
 * mapping of it. */
static int hash_extent(struct tr_file_pages *fp, struct file *f, size_t from,
		       size_t to)
{
	TR_GROW(f->extent, f->nextents, f->extent_cap);
	f->extent[f->nextents++] = (struct tr_page_extent){from, to};
	for (size_t i = from, n; i < to; i += n) {
		ssize_t got;

		n = to - i < BLOCK / TR_PAGE ? to - i : BLOCK / TR_PAGE;
		got = tr_pread_full(f->fd, fp->block, n * TR_PAGE,
				    (off_t)(i * TR_PAGE));
		if (got < 0)
			return -1;
		memset(fp->block + got, 0, n * TR_PAGE - (size_t)got);
		for (size_t k = 0; k < n; k++)
			f->hash[i + k] = tr_page_hash(fp->block + k * TR_PAGE);
	}
	return 0;
}

/* The hashes of holes are never touched, so that a file of holes takes address
 * space alone. */
static int hash_file(struct tr_file_pages *fp, struct file *f,
		     const struct stat *st)
{
	size_t done = 0;

	free(f->hash);
	f->st = *st;
	f->fresh = is_fresh(st);
	f->n = ((size_t)st->st_size + TR_PAGE - 1) / TR_PAGE;
	f->hash = tr_alloc((f->n + 1) * sizeof *f->hash);
	f->nextents = 0;
	while (done < f->n) {
		off_t data = lseek(f->fd, (off_t)(done * TR_PAGE), SEEK_DATA);
		off_t hole = data < 0 ? -1 : lseek(f->fd, data, SEEK_HOLE);
		size_t from = (size_t)data / TR_PAGE;
		size_t to = ((size_t)hole + TR_PAGE - 1) / TR_PAGE;

		if (data < 0)
			return errno == ENXIO ? 0 : -1;
		if (hole < 0 || to > f->n)
			to = f->n;
		if (from < done)
			from = done;
		if (hash_extent(fp, f, from, to) < 0)
			return -1;
		done = to;
	}
	return 0;
}

/* Room for one more. */
static struct file *new_entry(struct tr_file_pages *fp)
{
	struct file *f;

	if (fp->n < KEPT)
		return &fp->kept[fp->n++];
	f = &fp->kept[fp->next++ % KEPT];
	release(f);
	return f;
}

static struct file *find(struct tr_file_pages *fp, pid_t tid,
			 const struct tr_vma *v)
{
	struct file *f;
	int fd;

	for (size_t i = 0; i < fp->n; i++)
		if (is_file_of(&fp->kept[i], v))
			return &fp->kept[i];
	fd = tr_vma_open(tid, v);
	if (fd < 0)
		return NULL;
	f = new_entry(fp);
	*f = (struct file){.major = v->major, .minor = v->minor, .ino = v->ino,
			   .name = tr_strdup(v->name), .fd = fd};
	return f;
}

bool tr_file_pages_get(struct tr_file_pages *fp, pid_t tid,
		       const struct tr_vma *v, struct tr_file_hashes *hashes)
{
	struct file *f = find(fp, tid, v);
	struct stat st;

	if (!f || fstat(f->fd, &st) < 0)
		return false;
	if (!is_unchanged(f, &st) && hash_file(fp, f, &st) < 0) {
		free(f->hash);
		f->hash = NULL;
		return false;
	}
	*hashes = (struct tr_file_hashes){f->hash, f->n, f->extent,
					  f->nextents};
	return true;
}
