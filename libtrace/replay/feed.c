/* The event feed of a replay. */
#include "libtrace/replay/feed.h"

#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/event_copy.h"

/* A stream that has begun and not ended. */
struct open_stream {
	uint32_t stream;
	struct tr_cursor *cursor;
	const struct tr_event *ev;
	/* Copies of the current event and those after it that were looked at
	 * already; the last is the one the cursor stands at. */
	struct tr_event **ahead;
	size_t first, nahead, cap;
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

		if (s < nstreams &&
		    (!first[s] || chunks[i].first < first[s]))
			first[s] = chunks[i].first;
	}
	for (uint32_t s = 0; s < nstreams; s++)
		if (first[s])
			f->origins[f->norigins++] = (struct origin){s, first[s]};
	qsort(f->origins, f->norigins, sizeof *f->origins, by_first);
	return f;
}

static void release(struct open_stream *s)
{
	for (size_t i = s->first; i < s->nahead; i++)
		tr_event_free(s->ahead[i]);
	free(s->ahead);
	tr_cursor_free(s->cursor);
}

void tr_feed_free(struct tr_feed *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nopen; i++)
		release(&f->open[i]);
	free(f->open);
	free(f->origins);
	free(f);
}

static int step(struct tr_feed *f, size_t i, struct tr_error *err)
{
	struct open_stream *s = &f->open[i];
	int got;

	if (s->first < s->nahead) {
		tr_event_free(s->ahead[s->first++]);
		if (s->first < s->nahead) {
			s->ev = s->ahead[s->first];
			return 0;
		}
		s->first = s->nahead = 0;
	}
	got = tr_cursor_next(s->cursor, &s->ev, err);
	if (got > 0)
		return 0;
	release(s);
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
			.stream = s,
			.cursor = tr_cursor_stream(f->reader, s)};
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

static void look_at(struct open_stream *s, const struct tr_event *ev)
{
	TR_GROW(s->ahead, s->nahead, s->cap);
	s->ahead[s->nahead++] = tr_event_copy(ev);
}

static int peek(struct open_stream *s, size_t n, const struct tr_event **ev,
		struct tr_error *err)
{
	if (s->first == s->nahead) {
		look_at(s, s->ev);
		s->ev = s->ahead[s->first];
	}
	while (s->nahead - s->first <= n) {
		const struct tr_event *next;
		int got = tr_cursor_next(s->cursor, &next, err);

		if (got <= 0)
			return got;
		look_at(s, next);
	}
	*ev = s->ahead[s->first + n];
	return 0;
}

int tr_feed_peek(struct tr_feed *f, uint32_t stream, size_t n,
		 const struct tr_event **ev, struct tr_error *err)
{
	*ev = NULL;
	for (size_t i = 0; i < f->nopen; i++)
		if (f->open[i].stream == stream)
			return peek(&f->open[i], n, ev, err);
	return 0;
}
