/*
 * Packing a trace where it is.
 *
 * Every step leaves a whole trace: a stored file is replaced by rename(2) with
 * one of the same contents, and the manifest, which says that the trace is
 * packed, comes last.  What a kill leaves over has a name that readers ignore
 * and that the next packing removes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/table.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/reader.h"
#include "libtrace/store/archive.h"
#include "libtrace/store/catalogue.h"
#include "libtrace/store/member.h"
#include "libtrace/store/put.h"

/* "4294967295.tmp" */
#define NAME_SIZE 24

/* A stored file with contents that others may have as well. */
struct first {
	uint8_t sha256[TR_SHA256_SIZE];
	char *path;
	size_t trace;
	uint32_t id;
	struct first *next; /* with the same key */
};

struct job {
	const struct tr_pack_options *o;
	struct tr_pack_stats stats;
	struct tr_table firsts; /* struct first by the digest's first bytes */
	/* The trace at work. */
	const char *path;
	size_t trace;
	int dirfd, files_fd;
	struct tr_reader *reader;
	struct tr_catalogue catalogue;
	struct tr_buf added; /* struct tr_manifest_digest */
};

static void tell(struct job *j, const char *member)
{
	const struct tr_pack_progress p = {member, j->stats.bytes};

	if (j->o->progress)
		j->o->progress(j->o->arg, &p);
}

static int file_error(const struct job *j, const struct tr_stored *s,
		      struct tr_error *err)
{
	return tr_error_prefix(err, "%s/files/%u", j->path, s->id);
}

static int file_errno(const struct job *j, const struct tr_stored *s,
		      struct tr_error *err)
{
	tr_fail_errno(err, "%.200s", s->path);
	return file_error(j, s, err);
}

/* ---- what others have the same of ---- */

static uint64_t key_of(const struct tr_stored *s)
{
	return tr_get_le64(s->sha256);
}

static const struct first *find_first(const struct job *j,
				      const struct tr_stored *s)
{
	const struct first *f = tr_table_get(&j->firsts, key_of(s));

	while (f && memcmp(f->sha256, s->sha256, TR_SHA256_SIZE) != 0)
		f = f->next;
	return f;
}

static void add_first(struct job *j, const struct tr_stored *s)
{
	struct first *f = tr_alloc(sizeof *f);

	memcpy(f->sha256, s->sha256, TR_SHA256_SIZE);
	f->path = tr_printf("%s/files/%u", j->path, s->id);
	f->trace = j->trace;
	f->id = s->id;
	f->next = tr_table_get(&j->firsts, key_of(s));
	tr_table_set(&j->firsts, key_of(s), f);
}

static void free_firsts(struct job *j)
{
	TR_TABLE_EACH(&j->firsts, slot) {
		for (struct first *f = slot->value, *next; f; f = next) {
			next = f->next;
			free(f->path);
			free(f);
		}
	}
	tr_table_release(&j->firsts);
}

/*
 * Let two equal files share their blocks.  The kernel compares them first and
 * changes neither's contents (ioctl_fideduperange(2)); btrfs takes 16 MiB at
 * a time.
 */
static bool share_blocks(int from, int to, uint64_t size)
{
	enum { PIECE = 16 << 20 };
	TR_AUTOFREE struct file_dedupe_range *d =
		tr_alloc(sizeof *d + sizeof d->info[0]);

	d->dest_count = 1;
	d->info[0].dest_fd = to;
	while (d->src_offset < size) {
		uint64_t left = size - d->src_offset;

		d->src_length = left < PIECE ? left : PIECE;
		d->info[0].dest_offset = d->src_offset;
		if (ioctl(from, FIDEDUPERANGE, d) < 0 ||
		    d->info[0].status != FILE_DEDUPE_RANGE_SAME ||
		    d->info[0].bytes_deduped == 0)
			return false;
		d->src_offset += d->info[0].bytes_deduped;
	}
	return true;
}

/* ---- one file ---- */

/* Links to the file from this trace's own files/ do no harm. */
static bool is_private(const struct job *j, const struct stat *st)
{
	nlink_t own = 0;

	if (st->st_nlink == 1)
		return true;
	for (size_t i = 0; i < j->catalogue.n; i++) {
		char name[NAME_SIZE];
		struct stat other;

		snprintf(name, sizeof name, "%u", j->catalogue.files[i].id);
		if (fstatat(j->files_fd, name, &other, AT_SYMLINK_NOFOLLOW) == 0
		    && other.st_dev == st->st_dev && other.st_ino == st->st_ino)
			own++;
	}
	return own == st->st_nlink;
}

/* The private copy NAME must be what was recorded: then it is the file. */
static int put_in_place(struct job *j, const struct tr_stored *s,
			const char *name, const char *final,
			struct tr_error *err)
{
	uint8_t sha256[TR_SHA256_SIZE];
	TR_AUTOCLOSE int fd = openat(j->files_fd, name, O_RDONLY | O_NOFOLLOW |
				     O_CLOEXEC);

	if (fd < 0)
		return file_errno(j, s, err);
	if (tr_stored_digest(s, fd, sha256, err) < 0)
		return file_error(j, s, err);
	if (s->has_digest && memcmp(sha256, s->sha256, TR_SHA256_SIZE) != 0)
		return tr_fail(err, TR_ECORRUPT, "%s/files/%u: %.200s: changed "
			       "since it was recorded", j->path, s->id,
			       s->path);
	if (tr_fault("inplace-sync") || fsync(fd) < 0 ||
	    tr_fault("inplace-rename") ||
	    renameat(j->files_fd, name, j->files_fd, final) < 0)
		return file_errno(j, s, err);
	return 0;
}

static int make_private(struct job *j, const struct tr_stored *s, int fd,
			struct tr_error *err)
{
	char name[NAME_SIZE], final[NAME_SIZE];
	enum tr_store_method method;
	int r;

	snprintf(final, sizeof final, "%u", s->id);
	snprintf(name, sizeof name, "%u.tmp", s->id);
	unlinkat(j->files_fd, name, 0);
	if (tr_store_private(j->files_fd, name, fd, &method, err) < 0)
		return file_error(j, s, err);
	r = tr_fault("inplace-copied") ? file_errno(j, s, err) :
		put_in_place(j, s, name, final, err);
	if (r < 0)
		unlinkat(j->files_fd, name, 0);
	else if (method == TR_STORE_CLONE)
		j->stats.cloned_bytes += s->size;
	else
		j->stats.bytes += s->size;
	return r;
}

/*
 * Make the file the same as the trace's earlier one with its contents.  Not
 * across traces: then each could be reached by the other's name.
 */
static int link_to(struct job *j, const struct tr_stored *s,
		   const struct first *f, struct tr_error *err)
{
	char name[NAME_SIZE], final[NAME_SIZE], from[NAME_SIZE];

	snprintf(from, sizeof from, "%u", f->id);
	snprintf(final, sizeof final, "%u", s->id);
	snprintf(name, sizeof name, "%u.tmp", s->id);
	unlinkat(j->files_fd, name, 0);
	if (tr_fault("inplace-link") ||
	    linkat(j->files_fd, from, j->files_fd, name, 0) < 0 ||
	    tr_fault("inplace-rename") ||
	    renameat(j->files_fd, name, j->files_fd, final) < 0)
		return file_errno(j, s, err);
	/* rename(2) does nothing when both are the same file already. */
	unlinkat(j->files_fd, name, 0);
	return 0;
}

/* Share with an equal file if that is possible; 1 when the file itself has
 * become another and is private now. */
static int share(struct job *j, const struct tr_stored *s, int fd,
		 const struct stat *st, struct tr_error *err)
{
	const struct first *f = s->size ? find_first(j, s) : NULL;
	TR_AUTOCLOSE int from = -1;
	struct stat other;

	if (!f)
		return 0;
	from = open(f->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 || fstat(from, &other) < 0)
		return 0;
	if (other.st_dev == st->st_dev && other.st_ino == st->st_ino)
		return 1;
	if (is_private(j, st) && !tr_fault("inplace-dedupe") &&
	    share_blocks(from, fd, s->size)) {
		j->stats.shared_bytes += s->size;
		return 1;
	}
	if (f->trace != j->trace)
		return 0;
	j->stats.shared_bytes += s->size;
	return link_to(j, s, f, err) < 0 ? -1 : 1;
}

static int add_digest(struct job *j, struct tr_stored *s, int fd,
		      struct tr_error *err)
{
	struct tr_manifest_digest d = {.file = s->id};

	if (s->has_digest)
		return 0;
	if (tr_sha256_fd(fd, d.sha256, err) < 0)
		return file_error(j, s, err);
	memcpy(s->sha256, d.sha256, TR_SHA256_SIZE);
	s->has_digest = true;
	tr_buf_put(&j->added, &d, sizeof d);
	return 0;
}

static int pack_open_file(struct job *j, struct tr_stored *s, int fd,
			  struct tr_error *err)
{
	struct stat st;
	int r = tr_stored_changed(s, fd, err);

	if (r < 0 || fstat(fd, &st) < 0)
		return r < 0 ? file_error(j, s, err) : file_errno(j, s, err);
	if (r > 0)
		return tr_fail(err, TR_ECORRUPT, "%s/files/%u: %.200s: changed "
			       "since it was recorded", j->path, s->id,
			       s->path);
	if (add_digest(j, s, fd, err) < 0)
		return -1;
	r = share(j, s, fd, &st, err);
	if (r != 0)
		return r < 0 ? -1 : 0;
	if (!is_private(j, &st) && make_private(j, s, fd, err) < 0)
		return -1;
	if (!find_first(j, s))
		add_first(j, s);
	return 0;
}

static int pack_file(struct job *j, struct tr_stored *s, bool complete,
		     struct tr_error *err)
{
	TR_AUTOFREE char *shown = tr_printf("%s/files/%u", j->path, s->id);
	char name[NAME_SIZE];
	TR_AUTOCLOSE int fd = -1;
	struct stat st;

	tell(j, shown);
	snprintf(name, sizeof name, "%u", s->id);
	fd = openat(j->files_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
		    O_CLOEXEC);
	/* What a recorder that was killed did not come to is not there. */
	if (fd < 0 && errno == ENOENT && !complete)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return file_errno(j, s, err);
	if (!S_ISREG(st.st_mode))
		return tr_fail(err, TR_ECORRUPT, "%s: not a regular file",
			       shown);
	j->stats.members++;
	return pack_open_file(j, s, fd, err);
}

/* ---- one trace ---- */

static bool ends_in_tmp(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && strcmp(name + n - 4, ".tmp") == 0;
}

/* Leftovers, and in a complete trace stored files that no event names. */
static bool unreferenced(const struct job *j, const char *name, bool complete)
{
	uint32_t id;

	if (ends_in_tmp(name))
		return true;
	return complete && tr_file_name_parse(name, &id) &&
	       !tr_catalogue_find(&j->catalogue, id);
}

static int drop_unreferenced(struct job *j, bool complete,
			     struct tr_error *err)
{
	int fd = openat(j->files_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	int r = 0;

	if (!d)
		return tr_fail_errno(err, "%s/files", j->path);
	while (r == 0 && (e = readdir(d)) != NULL)
		if (unreferenced(j, e->d_name, complete) &&
		    (tr_fault("inplace-drop") ||
		     unlinkat(j->files_fd, e->d_name, 0) < 0))
			r = tr_fail_errno(err, "%s/files/%s", j->path,
					  e->d_name);
	closedir(d);
	return r;
}

/* The manifest again, with what has been done. */
static int finish(struct job *j, struct tr_error *err)
{
	struct tr_manifest m = *tr_reader_manifest(j->reader);
	size_t added = j->added.len / sizeof *m.digests;
	TR_AUTOFREE struct tr_manifest_digest *all =
		tr_alloc((m.ndigests + added + 1) * sizeof *all);

	if (m.ndigests)
		memcpy(all, m.digests, m.ndigests * sizeof *all);
	if (added)
		memcpy(all + m.ndigests, j->added.data, j->added.len);
	m.digests = all;
	m.ndigests += added;
	m.packed = true;
	if (tr_fault("inplace-manifest") || syncfs(j->dirfd) < 0)
		return tr_fail_errno(err, "%s", j->path);
	if (tr_manifest_write(j->dirfd, &m, err) < 0)
		return tr_error_prefix(err, "%s", j->path);
	return 0;
}

static int pack_files(struct job *j, struct tr_error *err)
{
	bool complete = tr_reader_complete(j->reader);

	if (complete) {
		if (tr_catalogue_read(&j->catalogue, j->reader, err) < 0)
			return -1;
	} else {
		tr_catalogue_read_some(&j->catalogue, j->reader);
	}
	/* A redacted trace has the events of its files, but not these. */
	if (tr_reader_manifest(j->reader)->redacted)
		tr_catalogue_release(&j->catalogue);
	for (size_t i = 0; i < j->catalogue.n; i++)
		if (pack_file(j, &j->catalogue.files[i], complete, err) < 0)
			return -1;
	if (drop_unreferenced(j, complete, err) < 0)
		return -1;
	return finish(j, err);
}

/*
 * A recorder holds a lock on the trace it writes, whose manifest it is going
 * to replace.
 */
static int lock(int fd, const char *path, struct tr_error *err)
{
	if (fd < 0)
		return errno == ENOTDIR ?
			tr_fail(err, TR_ENOTRACE, "%s: not a trace directory; "
				"trace-pack -x unpacks an archive", path) :
			tr_fail_errno(err, "%s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return tr_fail(err, TR_EINVAL, "%s: in use: it is being "
			       "recorded or packed", path);
	return tr_fail_errno(err, "%s: lock", path);
}

static int open_trace(struct job *j, struct tr_error *err)
{
	j->reader = tr_reader_open(j->path, err);
	if (!j->reader)
		return -1;
	j->files_fd = openat(j->dirfd, "files", O_RDONLY | O_DIRECTORY |
			     O_NOFOLLOW | O_CLOEXEC);
	if (j->files_fd < 0)
		return tr_fail_errno(err, "%s/files", j->path);
	return 0;
}

static int pack_trace(struct job *j, const char *path, struct tr_error *err)
{
	TR_AUTOCLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	j->path = path;
	j->dirfd = fd;
	j->files_fd = -1;
	r = lock(fd, path, err);
	if (r == 0)
		r = open_trace(j, err);
	if (r == 0)
		r = pack_files(j, err);
	if (j->files_fd >= 0)
		close(j->files_fd);
	tr_reader_close(j->reader);
	j->reader = NULL;
	tr_catalogue_release(&j->catalogue);
	tr_buf_release(&j->added);
	j->added = (struct tr_buf){0};
	return r;
}

int tr_pack_in_place(const char *const *dirs, size_t n,
		     const struct tr_pack_options *o,
		     struct tr_pack_stats *stats, struct tr_error *err)
{
	struct job j = {.o = o};
	int r = 0;

	for (; r == 0 && j.trace < n; j.trace++) {
		r = pack_trace(&j, dirs[j.trace], err);
		if (r == 0)
			j.stats.traces++;
	}
	free_firsts(&j);
	*stats = j.stats;
	return r;
}
