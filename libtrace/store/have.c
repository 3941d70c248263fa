/* Lists of files that somebody has. */
#include "libtrace/store/have.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/io.h"
#include "libtrace/base/json.h"
#include "libtrace/base/table.h"
#include "libtrace/store/catalogue.h"

/* Lists of a million files are well below this. */
#define MAX_LIST ((size_t)1 << 30)
/* Directories deeper than this are a loop of mounts, or malice. */
#define MAX_DEPTH 64

struct entry {
	uint8_t sha256[TR_SHA256_SIZE];
	char *path; /* or NULL */
	struct entry *next; /* with the same key */
};

struct tr_have {
	struct tr_table by_key; /* the digest's first eight bytes */
};

struct tr_have *tr_have_new(void)
{
	return tr_alloc(sizeof(struct tr_have));
}

void tr_have_free(struct tr_have *h)
{
	if (!h)
		return;
	TR_TABLE_EACH(&h->by_key, s) {
		for (struct entry *e = s->value, *next; e; e = next) {
			next = e->next;
			free(e->path);
			free(e);
		}
	}
	tr_table_release(&h->by_key);
	free(h);
}

static uint64_t key_of(const uint8_t sha256[TR_SHA256_SIZE])
{
	return tr_get_le64(sha256);
}

void tr_have_add(struct tr_have *h, const uint8_t sha256[TR_SHA256_SIZE],
		 const char *path)
{
	struct entry *e = tr_alloc(sizeof *e);

	memcpy(e->sha256, sha256, TR_SHA256_SIZE);
	e->path = path ? tr_strdup(path) : NULL;
	e->next = tr_table_get(&h->by_key, key_of(sha256));
	tr_table_set(&h->by_key, key_of(sha256), e);
}

static const struct entry *next_match(const struct entry *e,
				      const uint8_t sha256[TR_SHA256_SIZE])
{
	while (e && memcmp(e->sha256, sha256, TR_SHA256_SIZE) != 0)
		e = e->next;
	return e;
}

bool tr_have_contains(const struct tr_have *h,
		      const uint8_t sha256[TR_SHA256_SIZE])
{
	return h && next_match(tr_table_get(&h->by_key, key_of(sha256)),
			       sha256) != NULL;
}

const char *tr_have_path(const struct tr_have *h,
			 const uint8_t sha256[TR_SHA256_SIZE], size_t i)
{
	const struct entry *e = h ? tr_table_get(&h->by_key, key_of(sha256)) :
				    NULL;

	for (e = next_match(e, sha256); e; e = next_match(e->next, sha256))
		if (e->path && i-- == 0)
			return e->path;
	return NULL;
}

/* ---- reading a list ---- */

/* Null where a file has no digest yet: nothing to go by. */
static int add_object(struct tr_have *h, const struct tr_json *j,
		      const char *where, struct tr_error *err)
{
	const struct tr_json *digest = tr_json_get(j, "sha256");
	uint8_t sha256[TR_SHA256_SIZE];
	const char *type, *text;
	char *path = NULL;
	size_t n;

	if (!tr_json_get_string(tr_json_get(j, "type"), &type) ||
	    (strcmp(type, "have") != 0 && strcmp(type, "file") != 0))
		return 0;
	if (!tr_json_get_string(digest, &text))
		return 0;
	if (!tr_parse_hex(text, sha256, sizeof sha256))
		return tr_fail(err, TR_EINVAL, "%s: \"sha256\" is not 64 "
			       "hexadecimal digits", where);
	if (tr_json_get_bytes(tr_json_get(j, "path"), &path, &n) &&
	    memchr(path, '\0', n)) {
		free(path);
		path = NULL;
	}
	tr_have_add(h, sha256, path);
	free(path);
	return 0;
}

static int add_line(struct tr_have *h, const char *line, size_t n,
		    const char *where, struct tr_error *err)
{
	struct tr_json *j;
	int r;

	if (n == 0)
		return 0;
	j = tr_json_parse(line, n, where, err);
	if (!j)
		return -1;
	r = tr_json_is_object(j) ? add_object(h, j, where, err) :
		tr_fail(err, TR_EINVAL, "%s: not a JSON object", where);
	tr_json_free(j);
	return r;
}

int tr_have_load(struct tr_have *h, int fd, const char *what,
		 struct tr_error *err)
{
	TR_AUTOBUF struct tr_buf b = {0};
	unsigned long number = 1;
	ssize_t n;

	do {
		if (b.len > MAX_LIST)
			return tr_fail(err, TR_EINVAL, "%s: too long", what);
		n = tr_read_full(fd, tr_buf_reserve(&b, 1 << 16), 1 << 16);
		if (n < 0)
			return tr_fail_errno(err, "%s", what);
		b.len += (size_t)n;
	} while (n > 0);
	for (const char *p = (char *)b.data, *end = p + b.len; p < end;
	     number++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		TR_AUTOFREE char *where = tr_printf("%s:%lu", what, number);

		stop = stop ? stop : end;
		if (add_line(h, p, (size_t)(stop - p), where, err) < 0)
			return -1;
		p = stop + 1;
	}
	return 0;
}

/* ---- finding files ---- */

static int report(int fd, const char *path, uint64_t size, tr_have_fn *fn,
		  void *arg)
{
	struct tr_have_file f = {.path = path, .size = size};
	struct tr_error ignored;

	if (tr_sha256_fd(fd, f.sha256, &ignored) < 0)
		return 0; /* it cannot be read: not had */
	return fn(arg, &f);
}

/* Stored files are as the trace says unless they have changed. */
static int find_in_trace(const char *path, struct tr_reader *r, tr_have_fn *fn,
			 void *arg)
{
	struct tr_catalogue c;
	struct tr_error err;
	int stop = 0;

	tr_catalogue_read_some(&c, r);
	for (size_t i = 0; stop == 0 && i < c.n; i++) {
		const struct tr_stored *s = &c.files[i];
		TR_AUTOFREE char *name = tr_printf("%s/files/%u", path, s->id);
		TR_AUTOCLOSE int fd = open(name, O_RDONLY | O_NOFOLLOW |
					   O_NONBLOCK | O_CLOEXEC);
		struct tr_have_file f = {.path = name, .size = s->size};

		if (fd < 0 || !s->has_digest ||
		    tr_stored_changed(s, fd, &err) != 0)
			continue;
		memcpy(f.sha256, s->sha256, TR_SHA256_SIZE);
		stop = fn(arg, &f);
	}
	tr_catalogue_release(&c);
	return stop;
}

static int find_at(int at, const char *name, const char *path, int depth,
		   tr_have_fn *fn, void *arg);

static int find_below(int fd, const char *path, int depth, tr_have_fn *fn,
		      void *arg)
{
	struct tr_reader *r = NULL;
	struct tr_error err;
	const struct dirent *e;
	int stop = 0;
	DIR *d;

	if (faccessat(fd, "manifest.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = tr_reader_open(path, &err);
	if (r) {
		stop = find_in_trace(path, r, fn, arg);
		tr_reader_close(r);
		close(fd);
		return stop;
	}
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return 0;
	}
	while (stop == 0 && (e = readdir(d)) != NULL) {
		TR_AUTOFREE char *below = tr_printf("%s/%s", path, e->d_name);

		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			stop = find_at(dirfd(d), e->d_name, below, depth + 1,
				       fn, arg);
	}
	closedir(d);
	return stop;
}

/* O_NONBLOCK: what was a file a moment ago may be a pipe. */
static int find_at(int at, const char *name, const char *path, int depth,
		   tr_have_fn *fn, void *arg)
{
	struct stat st;
	int fd, r = 0;

	if (fstatat(at, name, &st, depth ? AT_SYMLINK_NOFOLLOW : 0) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) ||
	    depth > MAX_DEPTH)
		return 0;
	fd = openat(at, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
		    (depth ? O_NOFOLLOW : 0));
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return find_below(fd, path, depth, fn, arg); /* takes fd */
	if (S_ISREG(st.st_mode) && st.st_size > 0)
		r = report(fd, path, (uint64_t)st.st_size, fn, arg);
	close(fd);
	return r;
}

int tr_have_find(const char *path, tr_have_fn *fn, void *arg,
		 struct tr_error *err)
{
	TR_AUTOFREE char *real = realpath(path, NULL);

	/* Whoever reads the list may stand elsewhere: names are absolute. */
	if (!real)
		return tr_fail_errno(err, "%s", path);
	return find_at(AT_FDCWD, real, real, 0, fn, arg);
}

/* Only what has the right digest is there. */
static int check(const struct entry *e, tr_have_fn *fn, void *arg)
{
	struct tr_have_file f = {.path = e->path};
	struct tr_error ignored;
	TR_AUTOCLOSE int fd = -1;
	struct stat st;

	if (!e->path || e->path[0] != '/' || stat(e->path, &st) < 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	fd = open(e->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || tr_sha256_fd(fd, f.sha256, &ignored) < 0 ||
	    memcmp(f.sha256, e->sha256, TR_SHA256_SIZE) != 0)
		return 0;
	f.size = (uint64_t)st.st_size;
	return fn(arg, &f);
}

int tr_have_check(const struct tr_have *h, tr_have_fn *fn, void *arg)
{
	int stop = 0;

	TR_TABLE_EACH(&h->by_key, s)
		for (const struct entry *e = s->value; e && stop == 0;
		     e = e->next)
			stop = check(e, fn, arg);
	return stop;
}
