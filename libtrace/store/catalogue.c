/* What a trace says of its stored files. */
#include "libtrace/store/catalogue.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/manifest.h"

struct tr_stored *tr_catalogue_find(const struct tr_catalogue *c, uint64_t id)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->files[mid].id == id)
			return &c->files[mid];
		if (c->files[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static int add_file(struct tr_catalogue *c, const struct tr_event *ev,
		    struct tr_error *err)
{
	uint64_t id = tr_event_get(ev, TR_F_FILE);

	if (id == 0 || id > UINT32_MAX || (c->n && c->files[c->n - 1].id >= id))
		return tr_fail(err, TR_ECORRUPT, "event %llu: stored files are "
			       "not declared in order",
			       (unsigned long long)ev->number);
	TR_GROW(c->files, c->n, c->cap);
	c->files[c->n++] = (struct tr_stored){
		.id = (uint32_t)id,
		.method = (enum tr_store_method)tr_event_get(ev, TR_F_METHOD),
		.size = tr_event_get(ev, TR_F_SIZE),
		.mtime = (int64_t)tr_event_get(ev, TR_F_MTIME),
		.path = memchr(ev->text.data ? ev->text.data : "", '\0',
			       ev->text.len) ? tr_strdup("") :
			tr_strndup(ev->text.data ? ev->text.data : "",
				   ev->text.len),
	};
	return 0;
}

static int add_digest(struct tr_catalogue *c, const struct tr_event *ev,
		      struct tr_error *err)
{
	struct tr_stored *s = tr_catalogue_find(c, tr_event_get(ev, TR_F_FILE));

	if (!s || ev->sha256.len != TR_SHA256_SIZE)
		return tr_fail(err, TR_ECORRUPT, "event %llu: a digest of no "
			       "stored file", (unsigned long long)ev->number);
	memcpy(s->sha256, ev->sha256.data, TR_SHA256_SIZE);
	s->has_digest = true;
	s->pages = tr_event_get(ev, TR_F_PAGES) == 1;
	return 0;
}

/* What packing found out later.  Events stand before the manifest. */
static void add_manifest_digests(struct tr_catalogue *c,
				 const struct tr_manifest *m)
{
	for (size_t i = 0; i < m->ndigests; i++) {
		struct tr_stored *s = tr_catalogue_find(c, m->digests[i].file);

		if (!s || s->has_digest)
			continue;
		memcpy(s->sha256, m->digests[i].sha256, TR_SHA256_SIZE);
		s->has_digest = true;
	}
}

int tr_catalogue_read(struct tr_catalogue *c, struct tr_reader *r,
		      struct tr_error *err)
{
	struct tr_cursor *cur = tr_cursor_stream(r, 0);
	const struct tr_event *ev;
	int n;

	*c = (struct tr_catalogue){0};
	while ((n = tr_cursor_next(cur, &ev, err)) > 0) {
		if (ev->type == TR_EV_FILE)
			n = add_file(c, ev, err);
		else if (ev->type == TR_EV_DIGEST)
			n = add_digest(c, ev, err);
		if (n < 0)
			break;
	}
	tr_cursor_free(cur);
	add_manifest_digests(c, tr_reader_manifest(r));
	return n;
}

void tr_catalogue_read_some(struct tr_catalogue *c, struct tr_reader *r)
{
	struct tr_error ignored;
	int n = tr_catalogue_read(c, r, &ignored);

	(void)n;
}

void tr_catalogue_release(struct tr_catalogue *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->files[i].path);
	free(c->files);
	*c = (struct tr_catalogue){0};
}

int tr_stored_digest(const struct tr_stored *s, int fd,
		     uint8_t sha256[TR_SHA256_SIZE], struct tr_error *err)
{
	return s->pages ? tr_sha256_pages_fd(fd, sha256, err) :
			  tr_sha256_fd(fd, sha256, err);
}

int tr_stored_changed(const struct tr_stored *s, int fd, struct tr_error *err)
{
	uint8_t sha256[TR_SHA256_SIZE];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return tr_fail_errno(err, "stat");
	/* Only a link is another's file, too.  Files of proc(5) say 0. */
	if (s->method != TR_STORE_LINK &&
	    (s->size == 0 || (uint64_t)st.st_size == s->size))
		return 0;
	if ((uint64_t)st.st_size == s->size &&
	    st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec ==
	    s->mtime)
		return 0;
	if (!s->has_digest)
		return (uint64_t)st.st_size != s->size;
	if (tr_stored_digest(s, fd, sha256, err) < 0)
		return -1;
	return memcmp(sha256, s->sha256, TR_SHA256_SIZE) != 0;
}

static int check_one(const struct tr_reader *r, const struct tr_stored *s,
		     struct tr_error *err)
{
	TR_AUTOFREE char *name = tr_printf("files/%u", s->id);
	TR_AUTOCLOSE int fd = openat(tr_reader_dirfd(r), name, O_RDONLY |
				     O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int changed;

	if (fd < 0) {
		tr_fail_errno(err, "%s (%.300s)", name, s->path);
		return tr_error_prefix(err, "%s", tr_reader_path(r));
	}
	changed = tr_stored_changed(s, fd, err);
	if (changed < 0)
		return tr_error_prefix(err, "%s/%s", tr_reader_path(r), name);
	if (changed)
		return tr_fail(err, TR_ECORRUPT, "%s/%s: %.300s: changed since "
			       "it was recorded", tr_reader_path(r), name,
			       s->path);
	return 0;
}

int tr_stored_check(struct tr_reader *r, struct tr_error *err)
{
	struct tr_catalogue c;
	int n = 0;

	/* Damage is met again, and told, by whoever reads the events. */
	tr_catalogue_read_some(&c, r);
	for (size_t i = 0; n == 0 && i < c.n; i++)
		n = check_one(r, &c.files[i], err);
	tr_catalogue_release(&c);
	return n;
}
