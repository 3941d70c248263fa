/* Traces being unpacked: names, files and the final rename. */
#include "libtrace/store/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"
#include "libtrace/store/contents.h"
#include "libtrace/store/fetch.h"
#include "libtrace/store/put.h"
#include "libtrace/store/remove.h"

struct part {
	char name[TR_TRACE_NAME_MAX + 1];
	char temporary[TR_TRACE_NAME_MAX + 40];
	struct tr_member last;             /* member met; kind 0: none */
	bool declared[TR_MEMBER_FILE + 1]; /* directories made */
	bool renamed;
	struct tr_contents *files;
};

struct tr_tree {
	char *target;
	int fd;
	struct part *parts;
	size_t n, cap;
	bool committed;
};

/*
 * Open a path of one to three components below dirfd that may not leave it.
 * Before openat2(2) (Linux 5.6), or where a filter refuses it, component by
 * component with O_NOFOLLOW does the same, as no component is "..".
 */
static int walk_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	TR_AUTOFREE char *copy = tr_strdup(path);
	char *p = copy, *slash;
	int at = dirfd, next, saved;

	while ((slash = strchr(p, '/')) != NULL && slash[1]) {
		*slash = '\0';
		next = openat(at, p, O_PATH | O_DIRECTORY | O_NOFOLLOW |
			      O_CLOEXEC);
		if (at != dirfd)
			close(at);
		if (next < 0)
			return -1;
		at = next;
		p = slash + 1;
	}
	next = openat(at, p, flags | O_NOFOLLOW | O_CLOEXEC, mode);
	saved = errno;
	if (at != dirfd)
		close(at);
	errno = saved;
	return next;
}

static int open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (!tr_fault("openat2")) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
		if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
			return (int)fd;
	}
	return walk_beneath(dirfd, path, flags, mode);
}

struct tr_tree *tr_tree_open(const char *target, struct tr_error *err)
{
	struct tr_tree *t;
	int fd;

	if (tr_make_dirs(target, 0777, err) < 0)
		return NULL;
	fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		tr_fail_errno(err, "%s", target);
		return NULL;
	}
	t = tr_alloc(sizeof *t);
	t->fd = fd;
	t->target = tr_strdup(target);
	return t;
}

void tr_tree_close(struct tr_tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct part *p = &t->parts[i];

		if (!t->committed)
			tr_remove_dir(t->fd, p->renamed ? p->name :
				      p->temporary, 1);
		tr_contents_free(p->files);
	}
	free(t->parts);
	free(t->target);
	close(t->fd);
	free(t);
}

static bool name_exists(const struct tr_tree *t, const char *name)
{
	struct stat st;

	return fstatat(t->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int refuse_existing(const struct tr_tree *t, const char *name,
			   struct tr_error *err)
{
	return tr_fail(err, TR_EEXIST, "%s/%s: exists already; unpack "
		       "elsewhere or remove it", t->target, name);
}

static struct part *new_part(struct tr_tree *t, const char *name,
			     struct tr_error *err)
{
	struct part p = {0};

	if (t->n >= TR_MAX_UNPACK_TRACES) {
		tr_fail(err, TR_EHOSTILE, "%s: more than %u traces in one "
			"archive", name, TR_MAX_UNPACK_TRACES);
		return NULL;
	}
	if (name_exists(t, name)) {
		refuse_existing(t, name, err);
		return NULL;
	}
	memcpy(p.name, name, sizeof p.name);
	snprintf(p.temporary, sizeof p.temporary, ".%s.unpacking-%ld", name,
		 (long)getpid());
	if (mkdirat(t->fd, p.temporary, 0700) < 0) {
		if (errno == EEXIST)
			refuse_existing(t, p.temporary, err);
		else
			tr_fail_errno(err, "%s/%s", t->target, p.temporary);
		return NULL;
	}
	p.files = tr_contents_new();
	TR_GROW(t->parts, t->n, t->cap);
	t->parts[t->n] = p;
	return &t->parts[t->n++];
}

static struct part *find_part(const struct tr_tree *t, const char *name)
{
	/* Members of one trace follow each other. */
	for (size_t i = t->n; i-- > 0;)
		if (strcmp(t->parts[i].name, name) == 0)
			return &t->parts[i];
	return NULL;
}

static int out_of_order(const struct tr_member *m, struct tr_error *err)
{
	char path[TR_MEMBER_PATH_MAX];

	tr_member_path(m, path);
	return tr_fail(err, TR_EHOSTILE, "%s: twice in the archive, or out of "
		       "order", path);
}

/*
 * The part a member belongs to, which is the last one or a new one.  Canonical
 * order is what lets a trace's own events say what its files must be.
 */
static struct part *part_of(struct tr_tree *t, const struct tr_member *m,
			    struct tr_error *err)
{
	struct part *p = find_part(t, m->trace);

	if (!p)
		p = new_part(t, m->trace, err);
	else if (p != &t->parts[t->n - 1] || m->kind < p->last.kind ||
		 (m->kind == p->last.kind && m->number <= p->last.number))
		p = out_of_order(m, err) < 0 ? NULL : p;
	if (p)
		p->last = *m;
	return p;
}

static void below_target(const struct part *p, const struct tr_member *m,
			 char out[TR_MEMBER_PATH_MAX + 40])
{
	char rest[32];

	tr_member_rest(m, rest);
	snprintf(out, TR_MEMBER_PATH_MAX + 40, "%s/%s", p->temporary, rest);
}

/* Make the directory of a member unless it is there. */
static int make_dir(struct tr_tree *t, struct part *p, enum tr_member_kind kind,
		    struct tr_error *err)
{
	const struct tr_member dir = {.kind = kind};
	char path[TR_MEMBER_PATH_MAX + 40];
	TR_AUTOCLOSE int fd = open_beneath(t->fd, p->temporary,
					   O_PATH | O_DIRECTORY, 0);

	below_target(p, &dir, path);
	if (fd < 0 || (mkdirat(fd, kind == TR_MEMBER_FILES ? "files" :
			       "chunks", 0700) < 0 && errno != EEXIST))
		return tr_fail_errno(err, "%s/%s", t->target, path);
	return 0;
}

int tr_tree_mkdir(struct tr_tree *t, const struct tr_member *m,
		  struct tr_error *err)
{
	struct part *p = part_of(t, m, err);

	if (!p)
		return -1;
	p->declared[m->kind] = true;
	return m->kind == TR_MEMBER_TRACE ? 0 : make_dir(t, p, m->kind, err);
}

/* Find or make the trace and directory of a file member. */
static struct part *place(struct tr_tree *t, const struct tr_member *m,
			  struct tr_error *err)
{
	struct part *p = part_of(t, m, err);
	enum tr_member_kind dir = m->kind == TR_MEMBER_FILE ? TR_MEMBER_FILES :
							      TR_MEMBER_CHUNKS;

	if (!p)
		return NULL;
	if (m->kind != TR_MEMBER_FILE && m->kind != TR_MEMBER_CHUNK)
		return p;
	if (!p->declared[dir] && make_dir(t, p, dir, err) < 0)
		return NULL;
	p->declared[dir] = true;
	return p;
}

/* The directory that a part is, until it has its name. */
static char *path_of(const struct tr_tree *t, const struct part *p)
{
	return tr_printf("%s/%s", t->target, p->temporary);
}

static int create(struct tr_tree *t, const struct part *p,
		  const struct tr_member *m, struct tr_error *err)
{
	char path[TR_MEMBER_PATH_MAX + 40];
	int fd;

	below_target(p, m, path);
	fd = open_beneath(t->fd, path, O_RDWR | O_CREAT | O_EXCL,
			  m->kind == TR_MEMBER_FILE ? 0400 : 0600);
	return fd >= 0 ? fd : tr_fail_errno(err, "%s/%s", t->target, path);
}

int tr_tree_create(struct tr_tree *t, const struct tr_member *m,
		   const struct tr_stored **s, struct tr_error *err)
{
	const struct part *p = place(t, m, err);
	TR_AUTOFREE char *path = p ? path_of(t, p) : NULL;

	*s = NULL;
	if (!p)
		return -1;
	if (m->kind == TR_MEMBER_FILE &&
	    (tr_contents_load(p->files, path, p->name, err) < 0 ||
	     tr_contents_expect(p->files, m->number, p->name, s, err) < 0))
		return -1;
	return create(t, p, m, err);
}

int tr_tree_written(struct tr_tree *t, const struct tr_member *m,
		    const uint8_t sha256[TR_SHA256_SIZE], struct tr_error *err)
{
	const struct part *p = find_part(t, m->trace);

	return tr_contents_add(p->files, m->number, sha256, p->name, err);
}

/*
 * Clone, else link, else copy.  A link is safe here: stored files are mode
 * 0400 and nothing in a trace is ever written again.
 */
static int share_bytes(struct tr_tree *t, const struct part *p,
		       const struct tr_member *m, int from, int out,
		       uint64_t size, uint64_t *room, struct tr_error *err)
{
	char path[TR_MEMBER_PATH_MAX + 40], name[16], source[32];
	TR_AUTOCLOSE int dir = -1;
	enum tr_store_method method;
	struct stat st;

	below_target(p, m, path);
	if (!tr_fault("unpack-clone") && ioctl(out, FICLONE, from) == 0)
		return 0;
	*strrchr(path, '/') = '\0';
	dir = open_beneath(t->fd, path, O_RDONLY | O_DIRECTORY, 0);
	snprintf(name, sizeof name, "%u", m->number);
	snprintf(source, sizeof source, "/proc/self/fd/%d", from);
	if (dir < 0 || unlinkat(dir, name, 0) < 0)
		return tr_fail_errno(err, "%s/%s", t->target, path);
	if (!tr_fault("unpack-link") &&
	    linkat(AT_FDCWD, source, dir, name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	if (size > *room)
		return tr_fail(err, TR_EHOSTILE, "%s/%s/%s: unpacks to more "
			       "than the limit", t->target, path, name);
	*room -= size;
	return tr_store_put(dir, m->number, from, &method, &st, &st, err);
}

int tr_tree_share(struct tr_tree *t, const struct tr_member *m,
		  const struct tr_member *of, uint64_t *size, uint64_t *room,
		  struct tr_error *err)
{
	const struct tr_stored *stored;
	TR_AUTOCLOSE int out = tr_tree_create(t, m, &stored, err), from = -1;
	char path[TR_MEMBER_PATH_MAX + 40], target[TR_MEMBER_PATH_MAX];
	const struct part *p = find_part(t, of->trace);
	const uint8_t *sha256;
	struct stat st;

	if (out < 0)
		return -1;
	sha256 = p ? tr_contents_get(p->files, of->number) : NULL;
	if (!sha256) {
		tr_member_path(of, target);
		tr_member_path(m, path);
		return tr_fail(err, TR_EHOSTILE, "%s: a link to %s, which is "
			       "not before it in the archive", path, target);
	}
	below_target(p, of, path);
	from = open_beneath(t->fd, path, O_RDONLY, 0);
	if (from < 0 || fstat(from, &st) < 0)
		return tr_fail_errno(err, "%s/%s", t->target, path);
	*size = (uint64_t)st.st_size;
	if (tr_tree_written(t, m, sha256, err) < 0)
		return -1;
	return share_bytes(t, find_part(t, m->trace), m, from, out, *size, room,
			   err);
}

/*
 * RENAME_NOREPLACE is not there on every filesystem (renameat2(2), EINVAL);
 * then a look before must do.  An empty directory that appears in between is
 * replaced, anything else refuses.
 */
static int rename_new(int dirfd, const char *from, const char *to)
{
	struct stat st;

	if (renameat2(dirfd, from, dirfd, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (fstatat(dirfd, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(dirfd, from, dirfd, to);
}

static int fetch_missing(struct tr_tree *t, struct part *p,
			 const struct tr_stored *s, struct tr_fetcher *from,
			 uint64_t *room, uint64_t *cloned, struct tr_error *err)
{
	const struct tr_member m = {.kind = TR_MEMBER_FILE, .number = s->id};
	TR_AUTOCLOSE int fd = -1;
	enum tr_fetched how;

	if (!p->declared[TR_MEMBER_FILES] &&
	    make_dir(t, p, TR_MEMBER_FILES, err) < 0)
		return -1;
	p->declared[TR_MEMBER_FILES] = true;
	fd = create(t, p, &m, err);
	if (fd < 0)
		return -1;
	if (tr_fetch(from, fd, s, room, &how, err) < 0)
		return tr_error_prefix(err, "%s/files/%u", p->name, s->id);
	if (how == TR_FETCH_NONE)
		return tr_fail(err, TR_ECORRUPT, "%s/files/%u: missing from "
			       "the archive, and not found here (%.200s)",
			       p->name, s->id, s->path);
	if (how == TR_FETCH_CLONED)
		*cloned += s->size;
	return tr_contents_add(p->files, s->id, s->sha256, p->name, err);
}

static int check_part(struct tr_tree *t, struct part *p,
		      struct tr_fetcher *from, uint64_t *room,
		      uint64_t *cloned, struct tr_error *err)
{
	TR_AUTOFREE char *path = path_of(t, p);
	const struct tr_stored *s;
	size_t i = 0;

	if (tr_contents_load(p->files, path, p->name, err) < 0)
		return -1;
	while ((s = tr_contents_missing(p->files, &i)))
		if (fetch_missing(t, p, s, from, room, cloned, err) < 0)
			return -1;
	return tr_contents_check(p->files, path, p->name, err);
}

static char **names_of(const struct tr_tree *t)
{
	char **names = tr_alloc((t->n + 1) * sizeof *names);

	for (size_t i = 0; i < t->n; i++)
		names[i] = tr_strdup(t->parts[i].name);
	return names;
}

int tr_tree_commit(struct tr_tree *t, struct tr_fetcher *from, bool sync,
		   uint64_t *room, uint64_t *cloned, char ***names,
		   struct tr_error *err)
{
	for (size_t i = 0; i < t->n; i++)
		if (check_part(t, &t->parts[i], from, room, cloned, err) < 0)
			return -1;
	if (sync && (tr_fault("unpack-sync") || syncfs(t->fd) < 0))
		return tr_fail_errno(err, "%s", t->target);
	for (size_t i = 0; i < t->n; i++) {
		struct part *p = &t->parts[i];

		if (rename_new(t->fd, p->temporary, p->name) < 0)
			return errno == EEXIST || errno == ENOTEMPTY ?
				refuse_existing(t, p->name, err) :
				tr_fail_errno(err, "%s/%s", t->target, p->name);
		p->renamed = true;
	}
	t->committed = true;
	*names = names_of(t);
	return 0;
}
