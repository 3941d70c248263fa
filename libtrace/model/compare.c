/*
 * Comparing two executions: pairs of tasks, and their differences.
 *
 * A pair joins the corresponding tasks of both sides; it holds the items by
 * which one side is ahead, or all that are needed to align a difference.
 */
#include "libtrace/model/compare.h"

#include <stdlib.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/model/align.h"
#include "libtrace/format/manifest.h"
#include "libtrace/model/compare_impl.h"
#include "libtrace/model/kin.h"

enum { LEFT, RIGHT };

/* Items of one side of a pair; hashes lie apart, as aligning wants them. */
struct queue {
	struct tr_compare_item *item;
	uint64_t *hash;
	size_t first, n, cap; /* n counts from 0, not from first */
	bool ended;           /* the task has, or the side */
};

/* A difference as it is kept until all are known; number 0: none there. */
struct kept {
	struct tr_compare_item item[2];
	uint64_t after[2];
};

struct hunk {
	uint64_t id;        /* in the order in which they were found */
	uint64_t place;     /* in the left side's order */
	struct kept *kept;
	size_t n, cap;
	uint64_t omitted;
	struct tr_compare_item *before, *behind;
	size_t nbefore, nbehind, behind_cap;
};

/* Corresponding tasks. */
struct pair {
	struct queue queue[2];
	size_t want;         /* items needed to align; at least RESUMES + 1 */
	uint64_t after[2];   /* numbers of the last common items */
	struct tr_compare_item *ring; /* the last left items that agreed */
	size_t nring, ring_cap;       /* nring counts all */
	struct hunk *hunk;   /* to which differences and what is behind go */
	size_t unshown;      /* items that agreed and are in no hunk */
};

struct end {
	struct tr_compare *c;
	int which;
};

struct tr_compare {
	struct tr_compare_input in[2];
	struct tr_compare_options options;
	struct tr_compare_side *side[2];
	struct end end[2];
	bool ended[2];
	struct tr_table pairs; /* by task name */
	struct tr_table kin[2]; /* what tr_kin_find gives */
	struct hunk **hunk;
	size_t nhunks, hunks_cap;
	size_t kept;           /* differences in hunks */
	uint64_t ids;
	struct tr_comparison result;
	/* What the caller is given. */
	struct tr_compare_wanted wanted[2];
	struct tr_hunk *shown;
};

static void take(void *ctx, uint64_t task, struct tr_compare_item *item,
		 bool last);

struct tr_compare *tr_compare_new(const struct tr_compare_input *left,
				  const struct tr_compare_input *right,
				  const struct tr_compare_options *options)
{
	struct tr_compare *c = tr_alloc(sizeof *c);

	c->in[LEFT] = *left;
	c->in[RIGHT] = *right;
	c->options = *options;
	if (c->options.max == 0)
		c->options.max = SIZE_MAX / 4;
	for (int i = LEFT; i <= RIGHT; i++) {
		c->end[i] = (struct end){c, i};
		c->side[i] = tr_compare_side_new(&c->in[i], options->ignore,
						 take, &c->end[i]);
	}
	return c;
}

static void items_free(struct tr_compare_item *item, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(item[i].line);
	free(item);
}

static void hunk_free(struct hunk *h)
{
	for (size_t i = 0; i < h->n; i++) {
		free(h->kept[i].item[LEFT].line);
		free(h->kept[i].item[RIGHT].line);
	}
	free(h->kept);
	items_free(h->before, h->nbefore);
	items_free(h->behind, h->nbehind);
	free(h);
}

static size_t ring_used(const struct tr_compare *c, const struct pair *p)
{
	return p->nring < c->options.context ? p->nring : c->options.context;
}

static void pair_free(struct tr_compare *c, struct pair *p)
{
	for (int i = LEFT; i <= RIGHT; i++) {
		struct queue *q = &p->queue[i];

		for (size_t k = q->first; k < q->n; k++)
			free(q->item[k].line);
		free(q->item);
		free(q->hash);
	}
	items_free(p->ring, ring_used(c, p));
	free(p);
}

void tr_compare_free(struct tr_compare *c)
{
	if (!c)
		return;
	TR_TABLE_EACH(&c->pairs, s)
		pair_free(c, s->value);
	tr_table_release(&c->pairs);
	tr_table_release(&c->kin[LEFT]);
	tr_table_release(&c->kin[RIGHT]);
	for (size_t i = 0; i < c->result.n; i++) {
		free(c->shown[i].d);
		free(c->shown[i].before);
		free(c->shown[i].behind);
	}
	free(c->shown);
	for (size_t i = 0; i < c->nhunks; i++)
		hunk_free(c->hunk[i]);
	free(c->hunk);
	for (int i = LEFT; i <= RIGHT; i++) {
		tr_compare_side_free(c->side[i]);
		tr_compare_wanted_release(&c->wanted[i]);
	}
	free(c);
}

/* ---- queues ---- */

static size_t waiting(const struct queue *q)
{
	return q->n - q->first;
}

static void push(struct queue *q, const struct tr_compare_item *item)
{
	size_t old = q->cap;

	if (q->n == q->cap && q->first > q->n / 2) {
		memmove(q->item, q->item + q->first,
			waiting(q) * sizeof *q->item);
		memmove(q->hash, q->hash + q->first,
			waiting(q) * sizeof *q->hash);
		q->n -= q->first;
		q->first = 0;
	}
	TR_GROW(q->item, q->n, q->cap);
	if (q->cap != old)
		q->hash = tr_realloc(q->hash, q->cap * sizeof *q->hash);
	q->item[q->n] = *item;
	q->hash[q->n++] = item->hash;
}

/* The next item, which is the caller's now. */
static struct tr_compare_item pop(struct queue *q)
{
	struct tr_compare_item item = q->item[q->first++];

	if (q->first == q->n)
		q->first = q->n = 0;
	return item;
}

/* ---- what agrees ---- */

static struct tr_compare_item copy_item(const struct tr_compare_item *item)
{
	struct tr_compare_item copy = *item;

	if (copy.line)
		copy.line = tr_strdup(copy.line);
	return copy;
}

static void remember(const struct tr_compare *c, struct pair *p,
		     struct tr_compare_item *item)
{
	struct tr_compare_item *place;

	if (c->options.context == 0) {
		free(item->line);
		return;
	}
	if (p->nring < c->options.context) {
		TR_GROW(p->ring, p->nring, p->ring_cap);
		place = &p->ring[p->nring];
	} else {
		place = &p->ring[p->nring % c->options.context];
		free(place->line);
	}
	*place = *item;
	p->nring++;
}

/* A common event closes a difference, and may be shown behind it. */
static void add_behind(const struct tr_compare *c, struct pair *p,
		       const struct tr_compare_item *item)
{
	struct hunk *h = p->hunk;

	if (h->nbehind == c->options.context) {
		p->hunk = NULL;
		return;
	}
	TR_GROW(h->behind, h->nbehind, h->behind_cap);
	h->behind[h->nbehind++] = copy_item(item);
	p->unshown--;
}

static void agree(struct tr_compare *c, struct pair *p)
{
	struct tr_compare_item left = pop(&p->queue[LEFT]);
	struct tr_compare_item right = pop(&p->queue[RIGHT]);

	c->result.compared++;
	p->after[LEFT] = left.number;
	p->after[RIGHT] = right.number;
	p->unshown++;
	if (p->hunk)
		add_behind(c, p, &left);
	remember(c, p, &left);
	free(right.line);
}

/* ---- what differs ---- */

static int by_place(const void *a, const void *b)
{
	const struct hunk *x = *(struct hunk *const *)a;
	const struct hunk *y = *(struct hunk *const *)b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void drop_last_hunk(struct tr_compare *c)
{
	struct hunk *h = c->hunk[--c->nhunks];

	TR_TABLE_EACH(&c->pairs, s) {
		struct pair *p = s->value;

		if (p->hunk == h)
			p->hunk = NULL;
	}
	c->kept -= h->n;
	hunk_free(h);
}

/* Let go of what is later than enough others. */
static void prune(struct tr_compare *c)
{
	if (c->nhunks)
		qsort(c->hunk, c->nhunks, sizeof(struct hunk *), by_place);
	while (c->nhunks > 1 &&
	       c->kept - c->hunk[c->nhunks - 1]->n >= c->options.max)
		drop_last_hunk(c);
}

static struct hunk *new_hunk(struct tr_compare *c, struct pair *p,
			     uint64_t left)
{
	size_t n = ring_used(c, p);
	struct hunk *h;

	if (n > p->unshown)
		n = p->unshown;
	p->unshown = 0;
	if (c->kept / 4 >= c->options.max)
		prune(c);
	h = tr_alloc(sizeof *h);
	h->id = ++c->ids;
	/* Where it begins; behind the last common event when the right side
	 * has more. */
	h->place = left ? 2 * left : 2 * p->after[LEFT] + 1;
	h->before = tr_alloc((n + 1) * sizeof *h->before);
	for (size_t i = 0; i < n; i++)
		h->before[h->nbefore++] = copy_item(
			&p->ring[(p->nring - n + i) % c->options.context]);
	TR_GROW(c->hunk, c->nhunks, c->hunks_cap);
	c->hunk[c->nhunks++] = h;
	return h;
}

static void keep(struct tr_compare *c, struct pair *p,
		 struct tr_compare_item *left, struct tr_compare_item *right)
{
	static const struct tr_compare_item none;
	struct hunk *h = p->hunk;

	/* What is common between two differences was put behind the first. */
	if (!h || h->nbehind)
		p->hunk = h = new_hunk(c, p, left ? left->number : 0);
	if (h->n >= c->options.max) {
		h->omitted++;
		free(left ? left->line : NULL);
		free(right ? right->line : NULL);
		return;
	}
	TR_GROW(h->kept, h->n, h->cap);
	h->kept[h->n++] = (struct kept){
		{left ? *left : none, right ? *right : none},
		{p->after[LEFT], p->after[RIGHT]}};
	c->kept++;
}

static void differ(struct tr_compare *c, struct pair *p, bool left, bool right)
{
	struct tr_compare_item l, r;

	if (left)
		l = pop(&p->queue[LEFT]);
	if (right)
		r = pop(&p->queue[RIGHT]);
	if (left && right)
		c->result.changed++;
	else if (left)
		c->result.missing++;
	else
		c->result.extra++;
	keep(c, p, left ? &l : NULL, right ? &r : NULL);
}

static uint32_t key_at(const struct queue *q, size_t i)
{
	return q->item[q->first + i].key;
}

/* How far one must look for the event on this side. */
static size_t distance(const struct queue *q, size_t n, uint32_t key)
{
	enum { LOOK = 16 };
	size_t i = 0;

	if (n > LOOK)
		n = LOOK;
	while (i < n && key_at(q, i) != key)
		i++;
	return i < n ? i : SIZE_MAX;
}

/*
 * Events of which none has an equal on the other side: those of one kind, in
 * their order, are taken for one that has changed.
 */
static void differ_all(struct tr_compare *c, struct pair *p, size_t nl,
		       size_t nr)
{
	struct queue *l = &p->queue[LEFT], *r = &p->queue[RIGHT];

	while (nl && nr) {
		size_t in_right = distance(r, nr, key_at(l, 0));
		size_t in_left = distance(l, nl, key_at(r, 0));
		bool take_left = in_right > 0 && in_left <= in_right;
		bool take_right = in_right > 0 && !take_left;

		if (in_right == SIZE_MAX && in_left == SIZE_MAX) {
			take_left = nl >= nr;
			take_right = nl <= nr;
		} else if (in_right == 0) {
			take_left = take_right = true;
		}
		differ(c, p, take_left, take_right);
		nl -= take_left;
		nr -= take_right;
	}
	for (; nl; nl--)
		differ(c, p, true, false);
	for (; nr; nr--)
		differ(c, p, false, true);
}

/* ---- aligning a pair ---- */

static bool has_enough(const struct pair *p, const struct queue *q)
{
	return q->ended || waiting(q) >= p->want;
}

/* So many common events behind one that differs make it one that changed. */
#define RESUMES 32

/*
 * One event of a loop that differs is the same event, changed.  The fewest
 * insertions and deletions would be an extra one here, and one missing at the
 * loop's end.
 */
static bool is_changed(const struct queue *l, const struct queue *r)
{
	size_t n = 1;

	if (key_at(l, 0) != key_at(r, 0))
		return false;
	while (n <= RESUMES && n < waiting(l) && n < waiting(r) &&
	       l->hash[l->first + n] == r->hash[r->first + n])
		n++;
	return n > RESUMES || (n == waiting(l) && n == waiting(r) &&
			       l->ended && r->ended);
}

/* Align what waits; false when more must be known. */
static bool align(struct tr_compare *c, struct pair *p)
{
	struct queue *l = &p->queue[LEFT], *r = &p->queue[RIGHT];
	const struct tr_align_side left = {l->hash + l->first, waiting(l),
					   l->ended};
	const struct tr_align_side right = {r->hash + r->first, waiting(r),
					    r->ended};
	struct tr_align runs = {0};

	if (p->want <= RESUMES)
		p->want = RESUMES + 1;
	if (!has_enough(p, l) || !has_enough(p, r))
		return false;
	if (is_changed(l, r)) {
		differ(c, p, true, true);
		return true;
	}
	p->want = tr_align_next(&left, &right, &runs);
	for (size_t i = 0; i < runs.n; i++) {
		differ_all(c, p, runs.run[i].left, runs.run[i].right);
		for (size_t k = runs.run[i].same; k > 0; k--)
			agree(c, p);
	}
	tr_align_release(&runs);
	return p->want == 0;
}

/* Go on with a pair as far as is possible. */
static void pump(struct tr_compare *c, struct pair *p)
{
	struct queue *l = &p->queue[LEFT], *r = &p->queue[RIGHT];

	for (;;) {
		size_t nl = waiting(l), nr = waiting(r);

		if (nl && nr) {
			if (l->hash[l->first] == r->hash[r->first])
				agree(c, p);
			else if (c->options.any)
				differ(c, p, true, true);
			else if (!align(c, p) && !(l->ended && r->ended))
				return;
		} else if ((nl && r->ended) || (nr && l->ended)) {
			differ_all(c, p, nl, nr);
		} else {
			return;
		}
	}
}

static struct pair *pair_of(struct tr_compare *c, uint64_t task)
{
	struct pair *p = tr_table_get(&c->pairs, task);

	if (!p) {
		p = tr_alloc(sizeof *p);
		p->queue[LEFT].ended = c->ended[LEFT];
		p->queue[RIGHT].ended = c->ended[RIGHT];
		tr_table_set(&c->pairs, task, p);
	}
	return p;
}

static void take(void *ctx, uint64_t task, struct tr_compare_item *item,
		 bool last)
{
	const struct end *e = ctx;
	struct pair *p = pair_of(e->c, task);

	push(&p->queue[e->which], item);
	p->queue[e->which].ended |= last;
	pump(e->c, p);
}

/* ---- the whole ---- */

static void end_side(struct tr_compare *c, int which)
{
	c->ended[which] = true;
	TR_TABLE_EACH(&c->pairs, s) {
		struct pair *p = s->value;

		p->queue[which].ended = true;
		pump(c, p);
	}
}

static bool decided(const struct tr_compare *c)
{
	return c->options.any && c->kept > 0;
}

/* Corresponding tasks are looked for where there is more than one child, and
 * where both sides can be read twice. */
static void find_kin(struct tr_compare *c)
{
	struct tr_reader *l = c->in[LEFT].reader, *r = c->in[RIGHT].reader;
	struct tr_error ignored;

	if (!l || !r || (tr_reader_manifest(l)->tasks <= 2 &&
			 tr_reader_manifest(r)->tasks <= 2 &&
			 tr_reader_complete(l) && tr_reader_complete(r)))
		return;
	/* Damage is met again, and told, where it is compared. */
	if (tr_kin_find(l, r, c->kin, &ignored) < 0)
		return;
	for (int i = LEFT; i <= RIGHT; i++)
		tr_compare_side_kin(c->side[i], &c->kin[i]);
}

static int begin(struct tr_compare *c, struct tr_error *err)
{
	bool described = c->in[LEFT].lines || c->in[RIGHT].lines;
	bool state[2];

	find_kin(c);
	for (int i = LEFT; i <= RIGHT; i++)
		if (tr_compare_side_begin(c->side[i], &state[i], err) < 0)
			return -1;
	for (int i = LEFT; i <= RIGHT; i++)
		tr_compare_side_set(c->side[i], described,
				    c->options.states || state[LEFT] ||
				    state[RIGHT]);
	c->result.described = described;
	return 0;
}

/* Read both sides at the same pace. */
static int run(struct tr_compare *c, struct tr_error *err)
{
	while (!(c->ended[LEFT] && c->ended[RIGHT]) && !decided(c)) {
		int which = c->ended[LEFT] ||
			    (!c->ended[RIGHT] &&
			     tr_compare_side_read(c->side[RIGHT]) <
			     tr_compare_side_read(c->side[LEFT]));
		int got = tr_compare_side_next(c->side[which], err);

		if (got < 0)
			return -1;
		if (got == 0)
			end_side(c, which);
	}
	return 0;
}

/* ---- the result ---- */

static void want_item(struct tr_compare *c, int which,
		      const struct tr_compare_item *item)
{
	if (!c->in[which].reader)
		return;
	tr_compare_want(&c->wanted[which], item->number);
	tr_compare_want(&c->wanted[which], item->enter);
}

static int load(struct tr_compare *c, struct tr_error *err)
{
	for (size_t i = 0; i < c->nhunks; i++) {
		const struct hunk *h = c->hunk[i];

		for (size_t k = 0; k < h->n; k++)
			for (int w = LEFT; w <= RIGHT; w++)
				want_item(c, w, &h->kept[k].item[w]);
		for (size_t k = 0; k < h->nbefore; k++)
			want_item(c, LEFT, &h->before[k]);
		for (size_t k = 0; k < h->nbehind; k++)
			want_item(c, LEFT, &h->behind[k]);
	}
	for (int w = LEFT; w <= RIGHT; w++)
		if (c->in[w].reader &&
		    tr_compare_load(&c->wanted[w], c->in[w].reader, err) < 0)
			return -1;
	return 0;
}

/* A line of an item without that of the event that began its call. */
static const char *last_line(const char *line)
{
	const char *end = line ? strrchr(line, '\n') : NULL;

	return end ? end + 1 : line;
}

static struct tr_compare_event show(const struct tr_compare *c, int which,
				    const struct tr_compare_item *item)
{
	const struct tr_event *ev = tr_compare_wanted_get(&c->wanted[which],
							  item->number);

	return (struct tr_compare_event){
		item->number, ev ? ev->task : 0, ev, last_line(item->line)};
}

static struct tr_compare_event *show_all(const struct tr_compare *c,
					 const struct tr_compare_item *item,
					 size_t n)
{
	struct tr_compare_event *all = tr_alloc((n + 1) * sizeof *all);

	for (size_t i = 0; i < n; i++)
		all[i] = show(c, LEFT, &item[i]);
	return all;
}

static int view(struct tr_compare *c, int which,
		const struct tr_compare_item *item, struct tr_compare_view *v,
		struct tr_error *err)
{
	*v = (struct tr_compare_view){
		.in = &c->in[which],
		.canon = tr_compare_side_canon(c->side[which])};
	if (item->number == 0)
		return 0;
	return tr_compare_view_init(
		v, item, tr_compare_wanted_get(&c->wanted[which], item->number),
		tr_compare_wanted_get(&c->wanted[which], item->enter), err);
}

static int describe(struct tr_compare *c, const struct kept *k,
		    struct tr_difference *d, struct tr_error *err)
{
	const struct tr_compare_item *l = &k->item[LEFT], *r = &k->item[RIGHT];
	struct tr_compare_view views[2] = {0};
	int failed = view(c, LEFT, l, &views[LEFT], err) < 0 ||
		     view(c, RIGHT, r, &views[RIGHT], err) < 0;

	d->left = show(c, LEFT, l);
	d->right = show(c, RIGHT, r);
	memcpy(d->after, k->after, sizeof d->after);
	if (!failed && l->number)
		d->left.task = views[LEFT].event->task;
	if (!failed && r->number)
		d->right.task = views[RIGHT].event->task;
	if (!failed && l->number && r->number)
		failed = tr_compare_describe(&views[LEFT], &views[RIGHT], d,
					     err) < 0;
	else if (!failed)
		tr_compare_describe_one(&views[l->number ? LEFT : RIGHT],
					l->number, d);
	tr_compare_view_release(&views[LEFT]);
	tr_compare_view_release(&views[RIGHT]);
	return failed ? -1 : 0;
}

static int show_hunk(struct tr_compare *c, const struct hunk *h,
		     struct tr_hunk *out, struct tr_error *err)
{
	out->before = show_all(c, h->before, h->nbefore);
	out->behind = show_all(c, h->behind, h->nbehind);
	out->nbefore = h->nbefore;
	out->nbehind = h->nbehind;
	out->omitted = h->omitted;
	out->d = tr_alloc((h->n + 1) * sizeof *out->d);
	for (size_t i = 0; i < h->n; i++)
		if (describe(c, &h->kept[i], &out->d[out->n++], err) < 0)
			return -1;
	return 0;
}

/* Keep `max` differences, in order. */
static void choose(struct tr_compare *c)
{
	struct hunk *last;

	prune(c);
	if (c->nhunks == 0 || c->kept <= c->options.max)
		return;
	last = c->hunk[c->nhunks - 1];
	for (; c->kept > c->options.max; c->kept--) {
		struct kept *k = &last->kept[--last->n];

		free(k->item[LEFT].line);
		free(k->item[RIGHT].line);
		last->omitted++;
	}
}

int tr_compare_run(struct tr_compare *c, struct tr_comparison *result,
		   struct tr_error *err)
{
	if (begin(c, err) < 0 || run(c, err) < 0)
		return -1;
	choose(c);
	if (!c->options.any && load(c, err) < 0)
		return -1;
	c->shown = tr_alloc((c->nhunks + 1) * sizeof *c->shown);
	for (size_t i = 0; i < c->nhunks && !c->options.any; i++) {
		c->result.n++;
		if (show_hunk(c, c->hunk[i], &c->shown[i], err) < 0)
			return -1;
	}
	c->result.hunk = c->shown;
	*result = c->result;
	return 0;
}
