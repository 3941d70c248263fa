/* The stored files an archive brought, compared with what its trace says. */
#include "libtrace/store/contents.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/table.h"
#include "libtrace/format/event.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/reader.h"

struct content {
	bool named; /* a file event names it */
	uint8_t sha256[TR_SHA256_SIZE];
};

struct tr_contents {
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
	free(c);
}

void tr_contents_add(struct tr_contents *c, uint32_t id,
		     const uint8_t sha256[TR_SHA256_SIZE])
{
	struct content *k = tr_alloc(sizeof *k);

	memcpy(k->sha256, sha256, TR_SHA256_SIZE);
	tr_table_set(&c->by_id, id, k);
}

const uint8_t *tr_contents_get(const struct tr_contents *c, uint32_t id)
{
	const struct content *k = tr_table_get(&c->by_id, id);

	return k ? k->sha256 : NULL;
}

/* A file or digest event of the catalogue. */
static int check_event(struct tr_contents *c, const struct tr_event *ev,
		       bool complete, const char *name, struct tr_error *err)
{
	bool digest = ev->type == TR_EV_DIGEST;
	uint64_t id = tr_event_get(ev, TR_F_FILE);
	struct content *k = tr_table_get(&c->by_id, id);

	if (!k && (complete || digest))
		return tr_fail(err, TR_ECORRUPT, "%s/files/%" PRIu64
			       ": missing from the archive", name, id);
	if (!k)
		return 0;
	k->named = true;
	if (digest && (ev->sha256.len != TR_SHA256_SIZE ||
		       memcmp(ev->sha256.data, k->sha256,
			      TR_SHA256_SIZE) != 0))
		return tr_fail(err, TR_ECORRUPT, "%s/files/%" PRIu64
			       ": does not have the digest recorded for it",
			       name, id);
	return 0;
}

static int check_catalogue(struct tr_contents *c, struct tr_reader *r,
			   const char *name, struct tr_error *err)
{
	struct tr_cursor *cur = tr_cursor_stream(r, 0);
	bool complete = tr_reader_complete(r);
	const struct tr_event *ev;
	int n;

	while ((n = tr_cursor_next(cur, &ev, err)) > 0) {
		if (ev->type != TR_EV_FILE && ev->type != TR_EV_DIGEST)
			continue;
		n = check_event(c, ev, complete, name, err);
		if (n < 0)
			break;
	}
	tr_cursor_free(cur);
	return n;
}

/* What no event names cannot be checked and has no place in the trace. */
static int check_all_named(const struct tr_contents *c, const char *name,
			   struct tr_error *err)
{
	TR_TABLE_EACH(&c->by_id, s)
		if (!((struct content *)s->value)->named)
			return tr_fail(err, TR_EHOSTILE, "%s/files/%" PRIu64
				       ": no event of the trace names it",
				       name, s->key);
	return 0;
}

int tr_contents_check(struct tr_contents *c, const char *path,
		      const char *name, struct tr_error *err)
{
	struct tr_reader *r = tr_reader_open(path, err);
	int n;

	if (!r)
		return tr_error_prefix(err, "%s", name);
	if (tr_reader_manifest(r)->complete && !tr_reader_complete(r)) {
		tr_reader_close(r);
		return tr_fail(err, TR_ECORRUPT, "%s: its manifest says that "
			       "it is complete, but events are missing", name);
	}
	n = check_catalogue(c, r, name, err);
	if (n == 0 && tr_reader_complete(r))
		n = check_all_named(c, name, err);
	tr_reader_close(r);
	return n;
}
