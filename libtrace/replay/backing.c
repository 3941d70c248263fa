/* Memory behind shared file mappings. */
#include "libtrace/replay/backing.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"

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

static int fill(struct tr_backing *b, uint32_t file, struct tr_error *err)
{
	TR_AUTOFREE char *name = tr_printf("files/%u", file);
	TR_AUTOCLOSE int from = openat(b->trace_dirfd, name,
				       O_RDONLY | O_CLOEXEC);
	struct stat st;
	off_t done = 0;
	int fd;

	if (from < 0 || fstat(from, &st) < 0)
		return tr_fail_errno(err, "%s", name);
	fd = memfd_create("shared", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, st.st_size) < 0)
		goto failed;
	while (done < st.st_size)
		if (sendfile(fd, from, &done, (size_t)(st.st_size - done)) <= 0)
			goto failed;
	return fd;
failed:
	tr_fail_errno(err, "%s: copying into memory", name);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The entry that already has memory for the same file, as stored earlier. */
static struct tr_backed *same_file(struct tr_backing *b,
				   const struct tr_backed *e)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->f[i].fd >= 0 && b->f[i].dev == e->dev &&
		    b->f[i].ino == e->ino)
			return &b->f[i];
	return NULL;
}

const char *tr_backing_path(void *backing, uint32_t file, struct tr_error *err)
{
	struct tr_backing *b = backing;
	struct tr_backed *e = NULL, *same;

	for (size_t i = 0; i < b->n; i++)
		if (b->f[i].file == file)
			e = &b->f[i];
	if (!e) {
		tr_fail(err, TR_ECORRUPT, "file %u is not declared", file);
		return NULL;
	}
	same = same_file(b, e);
	if (!same) {
		e->fd = fill(b, file, err);
		if (e->fd < 0)
			return NULL;
		same = e;
	}
	snprintf(b->path, sizeof b->path, "/proc/%d/fd/%d", (int)getpid(),
		 same->fd);
	return b->path;
}
