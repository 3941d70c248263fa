/* What an archive of some traces will hold: reading the directories. */
#include "libtrace/store/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/reader.h"

static const char *path_of(const struct tr_listing *l,
			   const struct tr_list_item *it, char rest[32])
{
	struct tr_member m = {.kind = it->kind, .number = it->number};

	tr_member_rest(&m, rest);
	return l->traces[it->trace].path;
}

static int add(struct tr_listing *l, size_t trace, enum tr_member_kind kind,
	       uint32_t number, struct tr_error *err)
{
	struct tr_list_item it = {
		.kind = kind, .number = number, .trace = (uint32_t)trace,
		.earlier = TR_NO_ITEM,
	};
	struct tr_member m = {.kind = kind, .number = number};
	const char *path;
	struct stat st;
	char rest[32];

	path = path_of(l, &it, rest);
	if (!tr_member_is_dir(&m)) {
		if (fstatat(l->traces[trace].dirfd, rest, &st,
			    AT_SYMLINK_NOFOLLOW) < 0)
			return tr_fail_errno(err, "%s/%s", path, rest);
		if (!S_ISREG(st.st_mode))
			return tr_fail(err, TR_ECORRUPT,
				       "%s/%s: not a regular file", path, rest);
		it.size = (uint64_t)st.st_size;
		it.dev = st.st_dev;
		it.ino = st.st_ino;
	}
	if (l->n >= TR_MAX_MEMBERS)
		return tr_fail(err, TR_EINVAL, "%s: more than %u files to pack;"
			       " pack fewer traces at a time", path,
			       TR_MAX_MEMBERS);
	TR_GROW(l->items, l->n, l->cap);
	l->items[l->n++] = it;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The numbers of the entries of d that have the right form, ascending. */
static int read_numbers(DIR *d, bool (*parse)(const char *, uint32_t *),
			uint32_t **numbers, size_t *n)
{
	const struct dirent *e;
	size_t cap = 0;

	*numbers = NULL;
	*n = 0;
	while (errno = 0, (e = readdir(d)) != NULL) {
		uint32_t v;

		if (!parse(e->d_name, &v))
			continue;
		TR_GROW(*numbers, *n, cap);
		(*numbers)[(*n)++] = v;
	}
	if (errno)
		return -1;
	if (*n)
		qsort(*numbers, *n, sizeof **numbers, by_number);
	return 0;
}

static int add_numbered(struct tr_listing *l, size_t trace,
			enum tr_member_kind dir, enum tr_member_kind kind,
			struct tr_error *err)
{
	bool chunks = kind == TR_MEMBER_CHUNK;
	const char *name = chunks ? "chunks" : "files";
	TR_AUTOFREE uint32_t *numbers = NULL;
	size_t n;
	int fd, r;
	DIR *d;

	fd = openat(l->traces[trace].dirfd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || !(d = fdopendir(fd)))
		return tr_fail_errno(err, "%s/%s", l->traces[trace].path, name);
	r = read_numbers(d, chunks ? tr_chunk_name_parse : tr_file_name_parse,
			 &numbers, &n);
	if (r < 0)
		tr_fail_errno(err, "%s/%s", l->traces[trace].path, name);
	else
		r = add(l, trace, dir, 0, err);
	closedir(d);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add(l, trace, kind, numbers[i], err);
	return r;
}

/*
 * The base name of path, in a form that every unpacker takes.  For "." and
 * the like the real path gives the name.
 */
static void base_name(const char *path, char name[TR_TRACE_NAME_MAX + 1])
{
	TR_AUTOFREE char *copy = tr_strdup(path), *real = NULL;
	size_t n = strlen(copy);
	const char *base;

	while (n > 1 && copy[n - 1] == '/')
		copy[--n] = '\0';
	base = strrchr(copy, '/');
	base = base ? base + 1 : copy;
	if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) {
		real = realpath(path, NULL);
		base = real ? strrchr(real, '/') + 1 : "trace";
	}
	/* 10 bytes are kept for "-N". */
	snprintf(name, TR_TRACE_NAME_MAX - 10, "%s", *base ? base : "trace");
	if (name[0] == '.')
		name[0] = '_';
	for (char *p = name; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '_';
}

static bool name_taken(const struct tr_listing *l, const char *name)
{
	for (size_t i = 0; i < l->ntraces; i++)
		if (strcmp(l->traces[i].name, name) == 0)
			return true;
	return false;
}

static void name_trace(const struct tr_listing *l, struct tr_list_trace *t)
{
	size_t n;

	base_name(t->path, t->name);
	n = strlen(t->name);
	for (unsigned i = 2; name_taken(l, t->name); i++)
		snprintf(t->name + n, sizeof t->name - n, "-%u", i);
}

/*
 * What the trace says of its files.  A damaged trace can be packed, too: then
 * digests that it does not tell are computed where they are needed.
 */
static int read_catalogue(struct tr_list_trace *t, struct tr_error *err)
{
	struct tr_reader *r = tr_reader_open(t->path, err);

	if (!r)
		return -1;
	tr_catalogue_read_some(&t->catalogue, r);
	tr_reader_close(r);
	return 0;
}

static int open_trace(struct tr_listing *l, const char *path,
		      struct tr_error *err)
{
	struct tr_list_trace *t = &l->traces[l->ntraces];

	t->path = path;
	name_trace(l, t);
	t->dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dirfd < 0 && errno == ENOTDIR)
		return tr_fail(err, TR_ENOTRACE, "%s: not a trace directory; "
			       "trace-pack -x unpacks an archive", path);
	if (t->dirfd < 0)
		return tr_fail_errno(err, "%s", path);
	l->ntraces++;
	return read_catalogue(t, err);
}

/* Take over what the trace says of a stored file, if that is still so. */
static int add_digest(struct tr_listing *l, size_t i, struct tr_error *err)
{
	struct tr_list_item *it = &l->items[i];
	const struct tr_list_trace *t = &l->traces[it->trace];
	const struct tr_stored *s = tr_catalogue_find(&t->catalogue,
						      it->number);
	TR_AUTOCLOSE int fd = -1;
	int changed;

	if (it->kind != TR_MEMBER_FILE || !s)
		return 0;
	fd = tr_listing_open(l, i, err);
	if (fd < 0)
		return -1;
	changed = tr_stored_changed(s, fd, err);
	if (changed < 0)
		return tr_error_prefix(err, "%s/files/%u", t->path, s->id);
	if (changed)
		return tr_fail(err, TR_ECORRUPT, "%s/files/%u: %s: changed "
			       "since it was recorded", t->path, s->id,
			       s->path);
	it->digested = s->has_digest;
	it->is_sparse = s->pages;
	memcpy(it->sha256, s->sha256, TR_SHA256_SIZE);
	return 0;
}

static int add_digests(struct tr_listing *l, struct tr_error *err)
{
	for (size_t i = 0; i < l->n; i++)
		if (add_digest(l, i, err) < 0)
			return -1;
	return 0;
}

static int add_trace(struct tr_listing *l, const char *path,
		     struct tr_error *err)
{
	size_t t = l->ntraces;

	if (open_trace(l, path, err) < 0 ||
	    add(l, t, TR_MEMBER_TRACE, 0, err) < 0 ||
	    add(l, t, TR_MEMBER_MANIFEST, 0, err) < 0)
		return -1;
	/* Without its index a trace is still whole: readers scan. */
	if (faccessat(l->traces[t].dirfd, "index", F_OK,
		      AT_SYMLINK_NOFOLLOW) == 0 &&
	    add(l, t, TR_MEMBER_INDEX, 0, err) < 0)
		return -1;
	if (add_numbered(l, t, TR_MEMBER_CHUNKS, TR_MEMBER_CHUNK, err) < 0)
		return -1;
	return add_numbered(l, t, TR_MEMBER_FILES, TR_MEMBER_FILE, err);
}

static int by_size(const void *a, const void *b, void *items)
{
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const struct tr_list_item *it = items, *x = &it[i], *y = &it[k];

	if (x->size != y->size)
		return (x->size > y->size) - (x->size < y->size);
	return (i > k) - (i < k);
}

/* Only files of equal size can be identical; empty ones are not worth it. */
static void link_sizes(struct tr_listing *l)
{
	TR_AUTOFREE size_t *order = tr_alloc(l->n * sizeof *order);
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].kind == TR_MEMBER_FILE && l->items[i].size)
			order[n++] = i;
	qsort_r(order, n, sizeof *order, by_size, l->items);
	for (size_t i = 1; i < n; i++) {
		struct tr_list_item *x = &l->items[order[i - 1]];
		struct tr_list_item *y = &l->items[order[i]];

		if (x->size != y->size)
			continue;
		y->earlier = order[i - 1];
		x->has_later = true;
	}
}

int tr_listing_init(struct tr_listing *l, const char *const *dirs, size_t n,
		    struct tr_error *err)
{
	*l = (struct tr_listing){0};
	if (n == 0)
		return tr_fail(err, TR_EINVAL, "no trace to pack");
	l->traces = tr_alloc(n * sizeof *l->traces);
	for (size_t i = 0; i < n; i++) {
		if (add_trace(l, dirs[i], err) < 0) {
			tr_listing_release(l);
			return -1;
		}
	}
	if (add_digests(l, err) < 0) {
		tr_listing_release(l);
		return -1;
	}
	link_sizes(l);
	return 0;
}

void tr_listing_release(struct tr_listing *l)
{
	for (size_t i = 0; i < l->ntraces; i++) {
		close(l->traces[i].dirfd);
		tr_catalogue_release(&l->traces[i].catalogue);
	}
	free(l->traces);
	free(l->items);
	*l = (struct tr_listing){0};
}

void tr_listing_member(const struct tr_listing *l, size_t i,
		       struct tr_member *m)
{
	const struct tr_list_item *it = &l->items[i];

	*m = (struct tr_member){.kind = it->kind, .number = it->number};
	memcpy(m->trace, l->traces[it->trace].name, sizeof m->trace);
}

int tr_listing_open(const struct tr_listing *l, size_t i, struct tr_error *err)
{
	const struct tr_list_item *it = &l->items[i];
	char rest[32];
	const char *path = path_of(l, it, rest);
	int fd = openat(l->traces[it->trace].dirfd, rest,
			O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 ? fd : tr_fail_errno(err, "%s/%s", path, rest);
}
