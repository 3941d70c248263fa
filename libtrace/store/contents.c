/* The stored files an archive brings, compared with what its trace says. */
#include "libtrace/store/contents.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/table.h"
#include "libtrace/format/check.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/reader.h"

struct content {
	uint8_t sha256[TR_SHA256_SIZE];
};

struct tr_contents {
	bool loaded, complete;
	bool redacted; /* there are no stored files */
	struct tr_catalogue catalogue;
	struct tr_table by_id; /* struct content */
};

struct tr_contents *tr_contents_new(void)
{
	return tr_alloc(sizeof(struct tr_contents));
}

void tr_contents_free(struct tr_contents *c)
{
	TR_TABLE_EACH(&c->by_id, s)
		free(s->value);
	tr_table_release(&c->by_id);
	tr_catalogue_release(&c->catalogue);
	free(c);
}

static int load(struct tr_contents *c, struct tr_reader *r, const char *name,
		struct tr_error *err)
{
	c->complete = tr_reader_complete(r);
	c->redacted = tr_reader_manifest(r)->redacted;
	if (tr_reader_manifest(r)->complete && !c->complete)
		return tr_fail(err, TR_ECORRUPT, "%s: its manifest says that "
			       "it is complete, but events are missing", name);
	if (tr_catalogue_read(&c->catalogue, r, err) < 0 && c->complete)
		return tr_error_prefix(err, "%s", name);
	return 0;
}

int tr_contents_load(struct tr_contents *c, const char *path, const char *name,
		     struct tr_error *err)
{
	struct tr_reader *r;
	int n;

	if (c->loaded)
		return 0;
	c->loaded = true;
	r = tr_reader_open(path, err);
	if (!r)
		return tr_error_prefix(err, "%s", name);
	n = load(c, r, name, err);
	tr_reader_close(r);
	return n;
}

/* What no event names cannot be checked and has no place in the trace. */
int tr_contents_expect(const struct tr_contents *c, uint32_t id,
		       const char *name, const struct tr_stored **s,
		       struct tr_error *err)
{
	*s = tr_catalogue_find(&c->catalogue, id);
	if (c->redacted || (!*s && c->complete))
		return tr_fail(err, TR_EHOSTILE, "%s/files/%u: no event of the "
			       "trace names it", name, id);
	return 0;
}

int tr_contents_add(struct tr_contents *c, uint32_t id,
		    const uint8_t sha256[TR_SHA256_SIZE], const char *name,
		    struct tr_error *err)
{
	const struct tr_stored *s = tr_catalogue_find(&c->catalogue, id);
	struct content *k;

	if (s && s->has_digest &&
	    memcmp(s->sha256, sha256, TR_SHA256_SIZE) != 0)
		return tr_fail(err, TR_ECORRUPT, "%s/files/%u: does not have "
			       "the digest recorded for it", name, id);
	k = tr_alloc(sizeof *k);
	memcpy(k->sha256, sha256, TR_SHA256_SIZE);
	tr_table_set(&c->by_id, id, k);
	return 0;
}

const uint8_t *tr_contents_get(const struct tr_contents *c, uint32_t id)
{
	const struct content *k = tr_table_get(&c->by_id, id);

	return k ? k->sha256 : NULL;
}

/* A recording that was cut short may lack a file that has no digest yet. */
const struct tr_stored *tr_contents_missing(const struct tr_contents *c,
					    size_t *i)
{
	while (*i < c->catalogue.n && !c->redacted) {
		const struct tr_stored *s = &c->catalogue.files[(*i)++];

		if (!tr_table_get(&c->by_id, s->id) &&
		    (c->complete || s->has_digest))
			return s;
	}
	return NULL;
}

/* The first problem found, as an error. */
struct finding {
	const char *name;
	struct tr_error *err;
};

static void on_problem(void *arg, const struct tr_problem *p)
{
	const struct finding *f = arg;

	if (f->err->code == TR_OK)
		tr_fail(f->err, p->code, "%s/%s: %s", f->name, p->where,
			p->what);
}

int tr_contents_check(const struct tr_contents *c, const char *path,
		      const char *name, struct tr_error *err)
{
	struct finding f = {name, err};
	struct tr_check_stats stats;

	if (!c->complete)
		return 0;
	*err = (struct tr_error){0};
	if (tr_check_events_of(path, on_problem, &f, &stats, err) < 0)
		return -1;
	return stats.problems ? -1 : 0;
}
