/* Memory behind shared file mappings. */
#include "libtrace/replay/backing.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/base/sha256.h"
#include "libtrace/format/home.h"

void tr_backing_add(struct tr_backing *b, const struct tr_event *ev)
{
	TR_GROW(b->f, b->n, b->cap);
	b->f[b->n++] = (struct tr_backed){
		(uint32_t)tr_event_get(ev, TR_F_FILE),
		tr_event_get(ev, TR_F_DEV), tr_event_get(ev, TR_F_INO), -1};
}

void tr_backing_release(struct tr_backing *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->f[i].fd >= 0)
			close(b->f[i].fd);
	free(b->f);
}

/* Holes stay holes: there may be a terabyte of them. */
static int clear(int fd, off_t at, off_t end)
{
	return at == end ? 0 : fallocate(fd, FALLOC_FL_PUNCH_HOLE |
					 FALLOC_FL_KEEP_SIZE, at, end - at);
}

/* Give the memory, which may have held something else, the stored file's size
 * and contents. */
static int fill(const struct tr_backing *b, uint32_t file, int fd,
		struct tr_error *err)
{
	TR_AUTOCLOSE int from = tr_stored_open(b->trace_dirfd, file);
	struct stat st;
	off_t done = 0, at = 0, end;

	if (from < 0 || fstat(from, &st) < 0)
		return tr_fail_errno(err, "files/%u", file);
	if (ftruncate(fd, st.st_size) < 0)
		goto failed;
	while (tr_next_data(from, st.st_size, &at, &end)) {
		if (clear(fd, done, at) < 0 || lseek(fd, at, SEEK_SET) < 0)
			goto failed;
		while (at < end)
			if (sendfile(fd, from, &at, (size_t)(end - at)) <= 0)
				goto failed;
		done = end;
	}
	if (clear(fd, done, st.st_size) < 0)
		goto failed;
	return 0;
failed:
	return tr_fail_errno(err, "files/%u: copying into memory", file);
}

/* The memory of an earlier entry for the same inode, or new memory. */
static int memory_of(const struct tr_backing *b, const struct tr_backed *e)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->f[i].fd >= 0 && b->f[i].dev == e->dev &&
		    b->f[i].ino == e->ino)
			return dup(b->f[i].fd);
	return memfd_create("shared", MFD_CLOEXEC);
}

/*
 * The first mapping of a store entry fills the memory with it.  For the first
 * entry of a file that is how it begins.  A later entry of the same inode is
 * there because the file was written meanwhile: its contents are what the
 * memory must hold now, whether others still have it mapped (then they are
 * there already) or the file changed while nobody did, or is another file
 * that got the inode's number.
 */
static struct tr_backed *get(struct tr_backing *b, uint32_t file,
			     struct tr_error *err)
{
	struct tr_backed *e = NULL;

	for (size_t i = 0; i < b->n; i++)
		if (b->f[i].file == file)
			e = &b->f[i];
	if (!e) {
		tr_fail(err, TR_ECORRUPT, "file %u is not declared", file);
		return NULL;
	}
	if (e->fd < 0) {
		e->fd = memory_of(b, e);
		if (e->fd < 0) {
			tr_fail_errno(err, "memory for file %u", file);
			return NULL;
		}
		if (fill(b, file, e->fd, err) < 0)
			return NULL;
	}
	return e;
}

const char *tr_backing_path(void *backing, uint32_t file, struct tr_error *err)
{
	struct tr_backing *b = backing;
	const struct tr_backed *e = get(b, file, err);

	if (!e)
		return NULL;
	snprintf(b->path, sizeof b->path, "/proc/%d/fd/%d", (int)getpid(),
		 e->fd);
	return b->path;
}

int tr_backing_write(struct tr_backing *b, uint32_t file, const void *data,
		     size_t n, uint64_t offset, struct tr_error *err)
{
	const struct tr_backed *e = get(b, file, err);

	if (!e)
		return -1;
	if (tr_pwrite_all(e->fd, data, n, (off_t)offset) < 0)
		return tr_fail_errno(err, "memory of file %u", file);
	return 0;
}

int tr_backing_resize(struct tr_backing *b, uint32_t file, uint64_t size,
		      struct tr_error *err)
{
	const struct tr_backed *e = get(b, file, err);

	if (!e)
		return -1;
	if (ftruncate(e->fd, (off_t)size) < 0)
		return tr_fail_errno(err, "memory of file %u", file);
	return 0;
}
