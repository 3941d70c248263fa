/* The event feed of a replay. */
#include "libtrace/replay/feed.h"

#include <string.h>

#include "libtrace/base/alloc.h"

/* A stream that has begun and not ended. */
struct open_stream {
	uint32_t stream;
	struct tr_cursor *cursor;
	const struct tr_event *ev;
};

/* Where a stream begins. */
struct origin {
	uint32_t stream;
	uint64_t first;
};

struct tr_feed {
	struct tr_reader *reader;
	struct origin *origins; /* ascending by first */
	size_t norigins, next_origin;
	struct open_stream *open;
	size_t nopen, open_cap;
};

static int by_first(const void *a, const void *b)
{
	const struct origin *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

struct tr_feed *tr_feed_new(struct tr_reader *r)
{
	struct tr_feed *f = tr_alloc(sizeof *f);
	const struct tr_chunk_ref *chunks;
	size_t n = tr_reader_chunks(r, &chunks);
	size_t nstreams = tr_reader_stream_count(r);
	TR_AUTOFREE uint64_t *first = tr_alloc((nstreams + 1) * sizeof *first);

	f->reader = r;
	f->origins = tr_alloc((nstreams + 1) * sizeof *f->origins);
	for (size_t i = 0; i < n; i++) {
		uint32_t s = chunks[i].stream;

		if (!first[s] || chunks[i].first < first[s])
			first[s] = chunks[i].first;
	}
	for (uint32_t s = 0; s < nstreams; s++)
		if (first[s])
			f->origins[f->norigins++] = (struct origin){s, first[s]};
	qsort(f->origins, f->norigins, sizeof *f->origins, by_first);
	return f;
}

void tr_feed_free(struct tr_feed *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nopen; i++)
		tr_cursor_free(f->open[i].cursor);
	free(f->open);
	free(f->origins);
	free(f);
}

static int step(struct tr_feed *f, size_t i, struct tr_error *err)
{
	int got = tr_cursor_next(f->open[i].cursor, &f->open[i].ev, err);

	if (got > 0)
		return 0;
	tr_cursor_free(f->open[i].cursor);
	f->open[i] = f->open[--f->nopen];
	return got;
}

static size_t earliest(const struct tr_feed *f)
{
	size_t best = 0;

	for (size_t i = 1; i < f->nopen; i++)
		if (f->open[i].ev->number < f->open[best].ev->number)
			best = i;
	return best;
}

int tr_feed_next(struct tr_feed *f, const struct tr_event **ev,
		 struct tr_error *err)
{
	size_t i = f->nopen ? earliest(f) : 0;

	/* Open every stream that begins before the earliest event known. */
	while (f->next_origin < f->norigins &&
	       (!f->nopen ||
		f->origins[f->next_origin].first < f->open[i].ev->number)) {
		uint32_t s = f->origins[f->next_origin++].stream;

		TR_GROW(f->open, f->nopen, f->open_cap);
		f->open[f->nopen++] = (struct open_stream){
			s, tr_cursor_stream(f->reader, s), NULL};
		if (step(f, f->nopen - 1, err) < 0)
			return -1;
		i = f->nopen ? earliest(f) : 0;
	}
	if (!f->nopen)
		return 0;
	*ev = f->open[i].ev;
	return 1;
}

int tr_feed_advance(struct tr_feed *f, uint32_t stream,
		    const struct tr_event **ev, struct tr_error *err)
{
	*ev = NULL;
	for (size_t i = 0; i < f->nopen; i++) {
		struct tr_cursor *c = f->open[i].cursor;

		if (f->open[i].stream != stream)
			continue;
		if (step(f, i, err) < 0)
			return -1;
		if (i < f->nopen && f->open[i].cursor == c)
			*ev = f->open[i].ev;
		return 0;
	}
	return 0;
}
