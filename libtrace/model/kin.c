/* Which tasks of two traces correspond. */
#include "libtrace/model/kin.h"

#include <string.h>
#include <sys/syscall.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/model/align.h"
#include "libtrace/model/canon_impl.h"

struct person {
	uint32_t id;
	struct person *parent;
	uint64_t hash;  /* of what it and its descendants execute */
	struct person **child;
	size_t n, cap;
};

struct family {
	struct person **all; /* parents before children */
	size_t n, cap;
	struct tr_table by_id;
	struct person root;  /* parent of those that have none */
};

static struct person *add_person(struct family *f, uint32_t id,
				 uint32_t parent)
{
	struct person *p = tr_table_get(&f->by_id, id), *of;

	if (p)
		return p;
	of = parent ? tr_table_get(&f->by_id, parent) : NULL;
	p = tr_alloc(sizeof *p);
	p->id = id;
	p->parent = of ? of : &f->root;
	TR_GROW(p->parent->child, p->parent->n, p->parent->cap);
	p->parent->child[p->parent->n++] = p;
	TR_GROW(f->all, f->n, f->cap);
	f->all[f->n++] = p;
	tr_table_set(&f->by_id, id, p);
	return p;
}

static void add_hash(struct person *p, uint64_t h)
{
	p->hash = tr_canon_combine(p->hash, h);
}

/* Path and arguments, but not the environment, which is the last. */
static void add_execution(struct person *p, const struct tr_event *ev)
{
	uint64_t nr = tr_event_get(ev, TR_F_NR);
	unsigned last = nr == SYS_execve ? 1 : 2;

	if (nr != SYS_execve && nr != SYS_execveat)
		return;
	for (size_t i = 0; i < ev->narg; i++)
		if (ev->arg[i].is_string && ev->arg[i].index <= last)
			add_hash(p, ev->arg[i].hash);
}

/* Families are learnt as tr_canon_learn does. */
static void add_event(struct family *f, const struct tr_event *ev)
{
	uint32_t child = (uint32_t)tr_event_get(ev, TR_F_CHILD);
	struct person *p;

	switch ((unsigned)ev->type) {
	case TR_EV_START:
	case TR_EV_STATE:
	case TR_EV_IMAGE:
		p = add_person(f, ev->task,
			       (uint32_t)tr_event_get(ev, TR_F_PARENT));
		if (ev->type == TR_EV_IMAGE)
			add_hash(p, XXH3_64bits(ev->text.len ? ev->text.data :
						"", ev->text.len));
		break;
	case TR_EV_CLONE:
	case TR_EV_SYSCALL:
	case TR_EV_ENTER:
		if (child)
			add_person(f, child, ev->task);
		p = tr_table_get(&f->by_id, ev->task);
		if (p)
			add_execution(p, ev);
		break;
	default:
		break;
	}
}

static int read_family(struct family *f, struct tr_reader *r,
		       struct tr_error *err)
{
	struct tr_cursor *c = tr_cursor_all(r);
	const struct tr_event *ev;
	int n;

	while ((n = tr_cursor_next(c, &ev, err)) > 0)
		add_event(f, ev);
	tr_cursor_free(c);
	/* Children come behind their parents. */
	for (size_t i = f->n; i-- > 0;)
		add_hash(f->all[i]->parent, f->all[i]->hash);
	return n;
}

static void release_family(struct family *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->all[i]->child);
		free(f->all[i]);
	}
	free(f->root.child);
	free(f->all);
	tr_table_release(&f->by_id);
}

struct work {
	struct tr_table *ordinals;
	struct pair {
		const struct person *p[2];
	} *todo;
	size_t n, cap;
	uintptr_t next; /* ordinal */
};

static void number(struct work *w, int which, const struct person *p)
{
	tr_table_set(&w->ordinals[which], p->id, (void *)w->next);
}

static void correspond(struct work *w, const struct person *a,
		       const struct person *b)
{
	w->next++;
	number(w, 0, a);
	number(w, 1, b);
	TR_GROW(w->todo, w->n, w->cap);
	w->todo[w->n++] = (struct pair){{a, b}};
}

/* Between those that execute the same nothing is known: in order, and what is
 * left over is alone. */
static void in_order(struct work *w, struct person *const *a, size_t na,
		     struct person *const *b, size_t nb)
{
	for (size_t i = 0; i < na || i < nb; i++) {
		if (i < na && i < nb) {
			correspond(w, a[i], b[i]);
			continue;
		}
		w->next++;
		number(w, i < na ? 0 : 1, i < na ? a[i] : b[i]);
	}
}

static uint64_t *hashes(const struct person *p)
{
	uint64_t *h = tr_alloc((p->n + 1) * sizeof *h);

	for (size_t i = 0; i < p->n; i++)
		h[i] = p->child[i]->hash;
	return h;
}

static void align_children(struct work *w, const struct person *a,
			   const struct person *b)
{
	TR_AUTOFREE uint64_t *ha = hashes(a), *hb = hashes(b);
	size_t x = 0, y = 0;

	while (x < a->n && y < b->n) {
		struct tr_align out = {0};
		const struct tr_align_side l = {ha + x, a->n - x, true},
					   r = {hb + y, b->n - y, true};

		if (tr_align_next(&l, &r, &out) != 0 || out.n == 0) {
			tr_align_release(&out);
			break;
		}
		for (size_t i = 0; i < out.n; i++) {
			const struct tr_align_run *run = &out.run[i];

			in_order(w, a->child + x, run->left, b->child + y,
				 run->right);
			x += run->left;
			y += run->right;
			in_order(w, a->child + x, run->same, b->child + y,
				 run->same);
			x += run->same;
			y += run->same;
		}
		tr_align_release(&out);
	}
	in_order(w, a->child + x, a->n - x, b->child + y, b->n - y);
}

/* Those without a parent in the trace are there in order. */
static void find(struct family f[2], struct tr_table ordinals[2])
{
	struct work w = {.ordinals = ordinals};

	in_order(&w, f[0].root.child, f[0].root.n, f[1].root.child,
		 f[1].root.n);
	while (w.n > 0) {
		struct pair pair = w.todo[--w.n];

		align_children(&w, pair.p[0], pair.p[1]);
	}
	free(w.todo);
}

int tr_kin_find(struct tr_reader *left, struct tr_reader *right,
		struct tr_table ordinals[2], struct tr_error *err)
{
	struct family f[2] = {0};
	int r = read_family(&f[0], left, err);

	if (r == 0)
		r = read_family(&f[1], right, err);
	if (r == 0)
		find(f, ordinals);
	release_family(&f[0]);
	release_family(&f[1]);
	return r;
}
