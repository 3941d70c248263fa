/* Comparing two executions: reading events of a trace again. */
#include <inttypes.h>
#include <stdlib.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/event_copy.h"
#include "libtrace/model/compare_impl.h"

void tr_compare_want(struct tr_compare_wanted *w, uint64_t number)
{
	if (number == 0)
		return;
	TR_GROW(w->number, w->n, w->cap);
	w->number[w->n++] = number;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void make_unique(struct tr_compare_wanted *w)
{
	size_t n = 0;

	if (w->n)
		qsort(w->number, w->n, sizeof *w->number, ascending);
	for (size_t i = 0; i < w->n; i++)
		if (n == 0 || w->number[n - 1] != w->number[i])
			w->number[n++] = w->number[i];
	w->n = n;
}

int tr_compare_load(struct tr_compare_wanted *w, struct tr_reader *r,
		    struct tr_error *err)
{
	const struct tr_event *ev;
	struct tr_cursor *cur;
	size_t i = 0;
	int got = 1;

	make_unique(w);
	w->event = tr_alloc((w->n + 1) * sizeof *w->event);
	if (w->n == 0)
		return 0;
	cur = tr_cursor_from(r, w->number[0]);
	while (i < w->n && (got = tr_cursor_next(cur, &ev, err)) > 0)
		if (ev->number == w->number[i] && ev->type != TR_EV_MORE)
			w->event[i++] = tr_event_copy(ev);
	tr_cursor_free(cur);
	if (got == 0)
		return tr_fail(err, TR_ECORRUPT, "%s: event %" PRIu64
			       " has vanished", tr_reader_path(r),
			       w->number[i]);
	return got < 0 ? -1 : 0;
}

const struct tr_event *tr_compare_wanted_get(const struct tr_compare_wanted *w,
					     uint64_t number)
{
	const uint64_t *at = w->n ? bsearch(&number, w->number, w->n,
					    sizeof *w->number, ascending)
				  : NULL;

	return at ? w->event[at - w->number] : NULL;
}

void tr_compare_wanted_release(struct tr_compare_wanted *w)
{
	for (size_t i = 0; w->event && i < w->n; i++)
		tr_event_free(w->event[i]);
	free(w->event);
	free(w->number);
	*w = (struct tr_compare_wanted){0};
}
