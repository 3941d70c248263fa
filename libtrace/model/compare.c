/*
 * Comparing two traces: alignment.
 *
 * Each side is read in its global order and reduced to items: a hash of what
 * counts of an event, and its number.  A pair joins the corresponding tasks of
 * both sides; it holds the items by which one side is ahead.  When an item
 * meets one with another hash, the left one's number bounds what is still to
 * be read: only an earlier difference would be reported instead.
 */
#include "libtrace/model/compare.h"

#include <string.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/table.h"
#include "libtrace/format/event_copy.h"
#include "libtrace/model/compare_impl.h"

enum { LEFT, RIGHT };

/* Corresponding tasks. */
struct pair {
	struct tr_compare_item *items; /* of the side that is ahead */
	size_t first, n, cap;          /* n counts from 0, not from first */
	int ahead;                     /* whose items they are */
	bool settled;                  /* differs: no more is needed of it */
	uint64_t last;                 /* left number of the last that agreed */
	uint64_t *before;              /* ring of left numbers that agreed */
	size_t nbefore, before_cap;    /* nbefore counts all */
};

/* A call that has begun. */
struct begun {
	uint64_t hash, number; /* number 0: none */
};

struct side {
	struct tr_reader *reader;
	struct tr_cursor *cursor;
	struct tr_canon canon;
	struct tr_table begun; /* struct begun by task */
	uint64_t read;         /* events so far */
	uint64_t last;         /* number of the last */
	size_t pending;        /* items waiting in pairs that are not settled */
	bool ended;
	/* The event whose `more` records are awaited. */
	bool open;
	struct tr_event *call; /* a copy, while it reads data in parts */
	uint64_t task;         /* name */
	struct tr_compare_item item;
	uint64_t parts;
	XXH3_state_t *data;
};

struct tr_compare {
	struct side side[2];
	struct tr_table pairs; /* by task name */
	size_t context;
	uint64_t compared;
	/* The earliest difference so far. */
	bool found;
	uint64_t bound; /* its left number, or where that would be */
	struct pair *where;
	struct tr_compare_item item[2]; /* number 0: that side ended */
	/* What the caller is given. */
	struct tr_compare_side result[2];
	struct tr_event none;
	struct tr_event **before;
	size_t nbefore;
};

static void side_init(struct side *s, struct tr_reader *r)
{
	s->reader = r;
	s->cursor = tr_cursor_all(r);
	s->data = XXH3_createState();
}

struct tr_compare *tr_compare_new(struct tr_reader *left, struct tr_reader *right,
				  size_t context)
{
	struct tr_compare *c = tr_alloc(sizeof *c);

	side_init(&c->side[LEFT], left);
	side_init(&c->side[RIGHT], right);
	c->context = context;
	return c;
}

static void side_release(struct side *s)
{
	tr_cursor_free(s->cursor);
	tr_canon_release(&s->canon);
	TR_TABLE_EACH(&s->begun, b)
		free(b->value);
	tr_table_release(&s->begun);
	tr_event_free(s->call);
	XXH3_freeState(s->data);
}

void tr_compare_free(struct tr_compare *c)
{
	if (!c)
		return;
	TR_TABLE_EACH(&c->pairs, s) {
		struct pair *p = s->value;

		free(p->items);
		free(p->before);
		free(p);
	}
	tr_table_release(&c->pairs);
	for (int i = LEFT; i <= RIGHT; i++) {
		side_release(&c->side[i]);
		tr_event_free(c->result[i].event);
		tr_event_free(c->result[i].enter);
	}
	for (size_t i = 0; i < c->nbefore; i++)
		tr_event_free(c->before[i]);
	free(c->before);
	free(c);
}

/* ---- pairs ---- */

static struct pair *pair_of(struct tr_compare *c, uint64_t task)
{
	struct pair *p = tr_table_get(&c->pairs, task);

	if (!p) {
		p = tr_alloc(sizeof *p);
		tr_table_set(&c->pairs, task, p);
	}
	return p;
}

static void remember(const struct tr_compare *c, struct pair *p,
		     uint64_t number)
{
	p->last = number;
	if (c->context == 0)
		return;
	if (p->nbefore < c->context) {
		TR_GROW(p->before, p->nbefore, p->before_cap);
		p->before[p->nbefore] = number;
	} else {
		p->before[p->nbefore % c->context] = number;
	}
	p->nbefore++;
}

static void drop_items(struct tr_compare *c, struct pair *p, size_t keep)
{
	c->side[p->ahead].pending -= p->n - keep;
	p->n = keep;
	if (p->first == p->n)
		p->first = p->n = 0;
}

/* Left items after the bound do not matter any more. */
static void prune(struct tr_compare *c)
{
	TR_TABLE_EACH(&c->pairs, s) {
		struct pair *p = s->value;
		size_t keep = p->n;

		while (p->ahead == LEFT && keep > p->first &&
		       p->items[keep - 1].number > c->bound)
			keep--;
		drop_items(c, p, keep);
	}
}

static void found(struct tr_compare *c, struct pair *p, uint64_t bound,
		  const struct tr_compare_item *left,
		  const struct tr_compare_item *right)
{
	static const struct tr_compare_item none;

	p->settled = true;
	if (c->found && c->bound <= bound)
		return;
	c->found = true;
	c->bound = bound;
	c->where = p;
	c->item[LEFT] = left ? *left : none;
	c->item[RIGHT] = right ? *right : none;
}

static void push(struct tr_compare *c, struct pair *p, int which,
		 const struct tr_compare_item *it)
{
	if (p->n == p->cap && p->first > p->n / 2) {
		memmove(p->items, p->items + p->first,
			(p->n - p->first) * sizeof *p->items);
		p->n -= p->first;
		p->first = 0;
	}
	TR_GROW(p->items, p->n, p->cap);
	p->items[p->n++] = *it;
	p->ahead = which;
	c->side[which].pending++;
}

/* An item of one side: meet the other's, or wait for it. */
static void meet(struct tr_compare *c, int which, uint64_t task,
		 const struct tr_compare_item *it)
{
	struct pair *p = pair_of(c, task);
	struct tr_compare_item other;
	const struct tr_compare_item *left, *right;

	if (p->settled || (which == LEFT && c->found && it->number > c->bound))
		return;
	if (p->first == p->n || p->ahead == which) {
		push(c, p, which, it);
		return;
	}
	other = p->items[p->first++];
	c->side[!which].pending--;
	left = which == LEFT ? it : &other;
	right = which == LEFT ? &other : it;
	if (left->hash == right->hash) {
		remember(c, p, left->number);
		c->compared++;
	} else {
		drop_items(c, p, p->first);
		found(c, p, left->number, left, right);
		prune(c);
	}
	if (p->first == p->n)
		p->first = p->n = 0;
}

/* ---- from events to items ---- */

static void hash_field(void *arg, const struct tr_canon_field *f)
{
	uint64_t *h = arg;
	const uint64_t both[2] = {*h, f->value};

	*h = XXH3_64bits(both, sizeof both);
}

static uint64_t combine(uint64_t a, uint64_t b)
{
	const uint64_t both[2] = {a, b};

	return XXH3_64bits(both, sizeof both);
}

static struct begun *begun_of(struct side *s, uint32_t task)
{
	struct begun *b = tr_table_get(&s->begun, task);

	if (!b) {
		b = tr_alloc(sizeof *b);
		tr_table_set(&s->begun, task, b);
	}
	return b;
}

static uint64_t hash_call(const struct side *s, const struct tr_event *ev)
{
	uint64_t h = TR_EV_SYSCALL;

	tr_canon_call(&s->canon, ev, hash_field, &h);
	return h;
}

/* A clone event after an enter event says nothing new about the call. */
static void begin_call(struct side *s, const struct tr_event *ev)
{
	struct begun *b = begun_of(s, ev->task);

	if (b->number)
		return;
	b->hash = hash_call(s, ev);
	b->number = ev->number;
}

/* A call that never returned: execve, exit, or one the task died in. */
static void unfinished_call(struct tr_compare *c, int which,
			    const struct tr_event *ev)
{
	struct side *s = &c->side[which];
	struct begun *b = begun_of(s, ev->task);
	struct tr_compare_item it = {.hash = combine(b->hash, 0),
				     .number = b->number};

	if (!b->number)
		return;
	b->number = 0;
	meet(c, which, tr_canon_task(&s->canon, ev->task), &it);
}

static void add_data(struct side *s, const struct tr_event *call,
		     const struct tr_event *ev)
{
	TR_AUTOBUF struct tr_buf names = {0};

	for (size_t i = 0; i < ev->nmem; i++) {
		struct tr_bytes d = tr_canon_data(call, &ev->mem[i]);

		names.len = 0;
		if (d.len && tr_canon_is_dirents(call))
			d = tr_compare_dirents(d, &names);
		if (d.len)
			XXH3_64bits_update(s->data, d.data, d.len);
	}
}

static void close_item(struct tr_compare *c, int which)
{
	struct side *s = &c->side[which];

	s->open = false;
	s->item.hash = combine(s->item.hash, XXH3_64bits_digest(s->data));
	meet(c, which, s->task, &s->item);
	tr_event_free(s->call);
	s->call = NULL;
}

static uint64_t hash_event(struct side *s, const struct tr_event *ev)
{
	struct begun *b = begun_of(s, ev->task);
	uint64_t h = ev->type;

	s->item.enter = 0;
	if (ev->type == TR_EV_SYSCALL) {
		s->item.enter = b->number;
		h = b->number ? b->hash : hash_call(s, ev);
		h = combine(h, 1);
		b->number = 0;
	}
	tr_canon_rest(&s->canon, ev, hash_field, &h);
	return h;
}

static void open_item(struct tr_compare *c, int which, const struct tr_event *ev)
{
	struct side *s = &c->side[which];

	s->item.hash = hash_event(s, ev);
	s->item.number = ev->number;
	s->task = tr_canon_task(&s->canon, ev->task);
	s->parts = tr_event_get(ev, TR_F_PARTS);
	s->open = true;
	XXH3_64bits_reset(s->data);
	add_data(s, ev, ev);
	if (s->parts == 0) {
		close_item(c, which);
		return;
	}
	/* Of the call only registers and result are needed from now on. */
	struct tr_event head = *ev;

	head.xstate = head.siginfo = head.text = head.sha256 =
		(struct tr_bytes){NULL, 0};
	head.nmem = head.nmap = head.narg = 0;
	s->call = tr_event_copy(&head);
}

static void take_event(struct tr_compare *c, int which, const struct tr_event *ev)
{
	struct side *s = &c->side[which];

	if (ev->type == TR_EV_MORE) {
		if (!s->open || ev->number != s->item.number)
			return;
		add_data(s, s->call, ev);
		if (--s->parts == 0)
			close_item(c, which);
		return;
	}
	if (s->open) /* its last parts are lost */
		close_item(c, which);
	tr_canon_learn(&s->canon, ev);
	if (tr_canon_ignores(ev))
		return;
	if (ev->type == TR_EV_ENTER || ev->type == TR_EV_CLONE) {
		begin_call(s, ev);
		return;
	}
	if (ev->type == TR_EV_IMAGE || ev->type == TR_EV_EXIT)
		unfinished_call(c, which, ev);
	open_item(c, which, ev);
}

static int advance(struct tr_compare *c, int which, struct tr_error *err)
{
	struct side *s = &c->side[which];
	const struct tr_event *ev;
	int n = tr_cursor_next(s->cursor, &ev, err);

	if (n < 0)
		return tr_error_prefix(err, "%s", tr_reader_path(s->reader));
	if (n == 0) {
		if (s->open)
			close_item(c, which);
		s->ended = true;
		return 0;
	}
	s->read++;
	s->last = ev->number;
	take_event(c, which, ev);
	return 0;
}

/* ---- the whole ---- */

/* Can a left event at or before the bound still come? */
static bool left_needed(const struct tr_compare *c)
{
	const struct side *l = &c->side[LEFT];

	return !l->ended && (!c->found || l->last < c->bound);
}

/* Can a right event still settle something? */
static bool right_needed(const struct tr_compare *c)
{
	return !c->side[RIGHT].ended &&
	       (!c->found || c->side[LEFT].pending > 0 || left_needed(c));
}

/* Items that nothing came for: the other side has ended there. */
static void left_over(struct tr_compare *c)
{
	TR_TABLE_EACH(&c->pairs, s) {
		struct pair *p = s->value;
		const struct tr_compare_item *it = &p->items[p->first];

		if (p->settled || p->first == p->n)
			continue;
		if (p->ahead == LEFT && c->side[RIGHT].ended)
			found(c, p, it->number, it, NULL);
		else if (p->ahead == RIGHT && c->side[LEFT].ended)
			found(c, p, p->last + 1, NULL, it);
	}
}

static int run(struct tr_compare *c, struct tr_error *err)
{
	const struct side *l = &c->side[LEFT], *r = &c->side[RIGHT];

	for (;;) {
		bool left = left_needed(c), right = right_needed(c);

		if (!left && !right)
			break;
		if (advance(c, left && (!right || l->read <= r->read) ? LEFT :
			    RIGHT, err) < 0)
			return -1;
	}
	left_over(c);
	return 0;
}

static int load_before(struct tr_compare *c, struct tr_error *err)
{
	const struct pair *p = c->where;
	size_t n = p->nbefore < c->context ? p->nbefore : c->context;

	c->before = tr_alloc((n + 1) * sizeof *c->before);
	for (size_t i = 0; i < n; i++) {
		uint64_t number = p->before[(p->nbefore - n + i) % c->context];
		struct tr_event *ev = tr_compare_event(c->side[LEFT].reader,
						       number, err);

		if (!ev)
			return -1;
		c->before[c->nbefore++] = ev;
	}
	return 0;
}

static int load_sides(struct tr_compare *c, struct tr_error *err)
{
	for (int i = LEFT; i <= RIGHT; i++) {
		struct tr_compare_side *s = &c->result[i];

		s->reader = c->side[i].reader;
		s->canon = &c->side[i].canon;
		s->item = c->item[i];
		if (s->item.number && tr_compare_load(s, err) < 0)
			return -1;
	}
	return 0;
}

static int describe(struct tr_compare *c, struct tr_difference *d,
		    struct tr_error *err)
{
	const struct tr_compare_side *l = &c->result[LEFT];
	const struct tr_compare_side *r = &c->result[RIGHT];

	if (load_sides(c, err) < 0 || load_before(c, err) < 0)
		return -1;
	d->left = l->event ? l->event : &c->none;
	d->right = r->event ? r->event : &c->none;
	d->before = (const struct tr_event *const *)c->before;
	d->nbefore = c->nbefore;
	if (l->event && r->event)
		return tr_compare_describe(l, r, d, err);
	tr_compare_describe_one(l->event ? l : r, l->event != NULL, d);
	return 0;
}

int tr_compare_run(struct tr_compare *c, struct tr_difference *d,
		   struct tr_error *err)
{
	*d = (struct tr_difference){0};
	if (run(c, err) < 0)
		return -1;
	d->found = c->found;
	d->compared = c->compared;
	return c->found ? describe(c, d, err) : 0;
}
