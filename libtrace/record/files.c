/* Mapped files: from descriptors and mappings to the store. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/tracee/memory.h"

#define SEGMENT_PIECE 65536u

static void emit_file(struct recorder *r, const struct tr_store_file *f)
{
	struct tr_event ev = {.type = TR_EV_FILE,
			      .text = {f->path, strlen(f->path)}};
	TR_AUTOBUF struct tr_buf known = {0};

	rec_learned_load(r, f, &known);
	if (known.len) {
		ev.known = (struct tr_bytes){known.data, known.len};
		tr_event_mark(&ev, TR_F_KNOWN);
	}

	tr_event_set(&ev, TR_F_FILE, f->id);
	tr_event_set(&ev, TR_F_METHOD, f->method);
	tr_event_set(&ev, TR_F_DEV, f->st.st_dev);
	tr_event_set(&ev, TR_F_INO, f->st.st_ino);
	tr_event_set(&ev, TR_F_MODE, f->st.st_mode);
	tr_event_set(&ev, TR_F_SIZE, (uint64_t)f->st.st_size);
	tr_event_set(&ev, TR_F_MTIME,
		     (uint64_t)(f->st.st_mtim.tv_sec * INT64_C(1000000000) +
				f->st.st_mtim.tv_nsec));
	tr_event_mark(&ev, TR_F_TEXT);
	rec_emit(r, &ev);
	r->files++;
}

static int64_t store(struct recorder *r, int fd, const char *path,
		     struct tr_error *err)
{
	bool is_new;
	const struct tr_store_file *f = tr_store_add(r->store, fd, path,
						     &is_new, err);

	if (!f)
		return -1;
	if (is_new)
		emit_file(r, f);
	return f->id;
}

int64_t rec_store_fd(struct recorder *r, const struct task *t, int fd,
		     struct stat *st, struct tr_error *err)
{
	char link[64], path[4096];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)t->tid, fd);
	n = readlink(link, path, sizeof path - 1);
	path[n < 0 ? 0 : n] = '\0';
	/* O_NONBLOCK: the descriptor may be a pipe or a device. */
	TR_AUTOCLOSE int own = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (own < 0 || fstat(own, st) < 0)
		return tr_fail_errno(err, "mapping of %.100s", path);
	/* A private mapping of /dev/zero is anonymous memory. */
	if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 5))
		return 0;
	if (!S_ISREG(st->st_mode))
		return tr_fail(err, TR_EUNSUPPORTED, "mapping of %.100s, which "
			       "is not a regular file", path);
	return store(r, own, path, err);
}

/*
 * Open the file behind a mapping.  /proc/PID/map_files is exact but needs
 * CAP_CHECKPOINT_RESTORE; otherwise the path must still name the same inode.
 */
static int open_vma(pid_t tid, const struct tr_vma *v)
{
	char path[4200];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		 (int)tid, v->start, v->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof path, "/proc/%d/exe", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == v->ino)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof path, "/proc/%d/root%s", (int)tid, v->name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == v->ino)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * The segment's bytes as the task sees them, where the file behind it cannot
 * be opened.  Who else has it attached is found by its device and inode.
 */
static int64_t store_bytes(struct recorder *r, const struct task *t,
			   const struct tr_vma *v, struct stat *st,
			   struct tr_error *err)
{
	TR_AUTOCLOSE int fd = memfd_create("segment", MFD_CLOEXEC);
	TR_AUTOFREE uint8_t *bytes = tr_alloc(SEGMENT_PIECE);
	int64_t known;

	*st = (struct stat){.st_dev = makedev(v->major, v->minor),
			    .st_ino = v->ino};
	known = rec_shared_file(r, st);
	if (known)
		return known;
	for (uint64_t at = v->start; at < v->end; at += SEGMENT_PIECE) {
		size_t n = v->end - at < SEGMENT_PIECE ? v->end - at
						       : SEGMENT_PIECE;

		if (tr_memory_read(t->tid, at, bytes, n) < 0 ||
		    tr_pwrite_all(fd, bytes, n, (off_t)(at - v->start)) < 0)
			return tr_fail_errno(err, "System V segment");
	}
	return store(r, fd, v->name, err);
}

int64_t rec_store_segment(struct recorder *r, const struct task *t,
			  uint64_t addr, struct tr_map *m, struct stat *st,
			  struct tr_error *err)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	const struct tr_vma *v;

	if (tr_vmas_read(t->tid, &vmas, err) < 0)
		return -1;
	v = tr_vmas_find(&vmas, addr);
	if (!v)
		return tr_fail(err, TR_EUNSUPPORTED, "shmat: nothing is mapped");
	*m = (struct tr_map){.start = v->start, .end = v->end, .prot = v->prot,
			     .flags = v->flags, .offset = v->offset};
	TR_AUTOCLOSE int fd = open_vma(t->tid, v);
	if (fd < 0 || fstat(fd, st) < 0)
		return store_bytes(r, t, v, st, err);
	return store(r, fd, v->name, err);
}

int64_t rec_store_vma(void *recorder, pid_t tid, const struct tr_vma *v,
		      struct tr_error *err)
{
	struct recorder *r = recorder;
	TR_AUTOCLOSE int fd = open_vma(tid, v);
	struct stat st;

	/* What cannot be opened is stored as memory contents instead. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return store(r, fd, v->name, err);
}
