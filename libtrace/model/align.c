/* Aligning two sequences. */
#include "libtrace/model/align.h"

#include <string.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"

#define MAX_EDITS 256  /* insertions and deletions that Myers' way may find */
#define RESYNC 32      /* so many equal items end a difference */
#define FIRST_WANT 1024
#define GRAM 4         /* items of a run that ties the sides together */
#define WINDOW ((size_t)1 << 15) /* items looked at for such runs at first */

void tr_align_release(struct tr_align *a)
{
	free(a->run);
	*a = (struct tr_align){0};
}

static void add_run(struct tr_align *a, size_t left, size_t right, size_t same)
{
	struct tr_align_run *last = a->n ? &a->run[a->n - 1] : NULL;

	if (left + right + same == 0)
		return;
	if (last && left + right == 0) {
		last->same += same;
	} else if (last && last->same == 0) {
		last->left += left;
		last->right += right;
		last->same = same;
	} else {
		TR_GROW(a->run, a->n, a->cap);
		a->run[a->n++] = (struct tr_align_run){left, right, same};
	}
}

/* ---- the fewest edits ---- */

/* Furthest left positions by diagonal, for each number of edits. */
struct paths {
	/* far[d][d + k]: diagonal k from -d to d; -1: outside. */
	int32_t *far[MAX_EDITS + 1];
	int32_t x, y; /* where the search ended */
	int d;
};

enum found { FOUND, TOO_FAR, MORE };

static void paths_release(struct paths *p)
{
	for (int d = 0; d <= MAX_EDITS; d++)
		free(p->far[d]);
}

/* Where diagonal k is after d edits, before equal items are followed. */
static int32_t enter_diagonal(const struct paths *p, int d, int k, size_t nl,
			      size_t nr)
{
	const int32_t *prev;
	int32_t down = -1, across = -1, x;

	if (d == 0)
		return 0;
	prev = p->far[d - 1] + (d - 1);
	if (k + 1 <= d - 1)
		down = prev[k + 1]; /* a right item is inserted */
	if (k - 1 >= -(d - 1) && prev[k - 1] >= 0)
		across = prev[k - 1] + 1; /* a left item is deleted */
	if (down >= 0 && (size_t)(down - k) > nr)
		down = -1;
	if (across >= 0 && (size_t)across > nl)
		across = -1;
	x = down > across ? down : across;
	return x;
}

/* Search with d edits; with `resync` a long run of equal items ends it. */
static enum found search_edits(struct paths *p, int d,
			       const struct tr_align_side *l,
			       const struct tr_align_side *r, bool resync)
{
	bool have = false;

	p->far[d] = tr_realloc(NULL, (2 * (size_t)d + 1) * sizeof **p->far);
	for (int k = -d; k <= d; k++) {
		int32_t x, y, from;

		p->far[d][d + k] = -1;
		if ((k + d) % 2)
			continue;
		x = from = enter_diagonal(p, d, k, l->n, r->n);
		if (x < 0)
			continue;
		y = x - k;
		while ((size_t)x < l->n && (size_t)y < r->n &&
		       l->hash[x] == r->hash[y]) {
			x++;
			y++;
		}
		p->far[d][d + k] = x;
		if (((size_t)x == l->n && (size_t)y == r->n && l->ended &&
		     r->ended) ||
		    (resync && x - from >= RESYNC && d > 0)) {
			if (!have || x + y > p->x + p->y) {
				p->x = x;
				p->y = y;
				p->d = d;
			}
			have = true;
		} else if (((size_t)x == l->n && !l->ended) ||
			   ((size_t)y == r->n && !r->ended)) {
			return MORE;
		}
	}
	return have ? FOUND : TOO_FAR;
}

/* From where the search ended back to the beginning. */
static void trace_back(const struct paths *p, size_t nl, size_t nr,
		       struct tr_align *out)
{
	struct tr_align_run steps[MAX_EDITS + 1];
	int32_t x = p->x, y = p->y;

	for (int d = p->d; d >= 0; d--) {
		int32_t from = enter_diagonal(p, d, x - y, nl, nr);
		const int32_t *prev = d ? p->far[d - 1] + (d - 1) : NULL;
		int k = x - y;
		bool down = d && k + 1 <= d - 1 && prev[k + 1] == from &&
			    (size_t)(from - k) <= nr && prev[k + 1] >= 0;

		steps[d] = (struct tr_align_run){
			d && !down, d && down, (size_t)(x - from)};
		y = from - k - (down ? 1 : 0);
		x = from - (d && !down ? 1 : 0);
	}
	for (int d = 0; d <= p->d; d++)
		add_run(out, steps[d].left, steps[d].right, steps[d].same);
}

static enum found fewest_edits(const struct tr_align_side *l,
			       const struct tr_align_side *r, bool resync,
			       struct tr_align *out)
{
	struct paths p = {0};
	enum found found = TOO_FAR;

	for (int d = 0; d <= MAX_EDITS && found == TOO_FAR; d++)
		found = search_edits(&p, d, l, r, resync);
	if (found == FOUND)
		trace_back(&p, l->n, r->n, out);
	paths_release(&p);
	return found;
}

/* ---- runs that occur once ---- */

struct gram {
	uint64_t hash;
	uint32_t left, right; /* position + 1; 0: none; -1: several */
};

struct grams {
	struct gram *slot;
	size_t size; /* a power of two */
};

#define SEVERAL UINT32_MAX

static struct gram *gram_slot(const struct grams *g, uint64_t hash)
{
	size_t i = hash & (g->size - 1);

	while (g->slot[i].left | g->slot[i].right && g->slot[i].hash != hash)
		i = (i + 1) & (g->size - 1);
	g->slot[i].hash = hash;
	return &g->slot[i];
}

static void count(uint32_t *where, size_t at)
{
	*where = *where ? SEVERAL : (uint32_t)at + 1;
}

static void add_grams(struct grams *g, const struct tr_align_side *s,
		      size_t gram, bool is_left)
{
	for (size_t i = 0; i + gram <= s->n; i++) {
		uint64_t h = XXH3_64bits(s->hash + i, gram * sizeof *s->hash);
		struct gram *slot = gram_slot(g, h);

		count(is_left ? &slot->left : &slot->right, i);
	}
}

struct tie {
	uint32_t left, right;
	uint32_t before; /* index + 1 in the ties of the one before it in its
			    chain */
};

/* Ties by ascending left position. */
static size_t find_ties(const struct tr_align_side *l,
			const struct tr_align_side *r, size_t gram,
			struct tie **ties)
{
	struct grams g = {.size = 64};
	size_t n = 0;

	while (g.size < 2 * (l->n + r->n))
		g.size *= 2;
	g.slot = tr_alloc(g.size * sizeof *g.slot);
	add_grams(&g, l, gram, true);
	add_grams(&g, r, gram, false);
	*ties = tr_realloc(NULL, (l->n + 1) * sizeof **ties);
	for (size_t i = 0; i + gram <= l->n; i++) {
		uint64_t h = XXH3_64bits(l->hash + i, gram * sizeof *l->hash);
		const struct gram *s = gram_slot(&g, h);

		if (s->left != SEVERAL && s->right && s->right != SEVERAL)
			(*ties)[n++] = (struct tie){(uint32_t)i, s->right - 1,
						    0};
	}
	free(g.slot);
	return n;
}

/*
 * The longest chain of ties that ascends on the right, too: patience sorting.
 * The chain replaces the ties; its length.
 */
static size_t longest_chain(struct tie *ties, size_t n)
{
	TR_AUTOFREE uint32_t *top = tr_realloc(NULL, (n + 1) * sizeof *top);
	TR_AUTOFREE struct tie *chain = NULL;
	size_t piles = 0;

	for (size_t i = 0; i < n; i++) {
		size_t low = 0, high = piles;

		while (low < high) {
			size_t mid = (low + high) / 2;

			if (ties[top[mid]].right < ties[i].right)
				low = mid + 1;
			else
				high = mid;
		}
		ties[i].before = low ? top[low - 1] + 1 : 0;
		top[low] = (uint32_t)i;
		if (low == piles)
			piles++;
	}
	if (piles == 0)
		return 0;
	chain = tr_realloc(NULL, piles * sizeof *chain);
	for (size_t i = top[piles - 1] + 1, k = piles; i; i = ties[i - 1].before)
		chain[--k] = ties[i - 1];
	memcpy(ties, chain, piles * sizeof *chain);
	return piles;
}

/* Between two ties: the fewest edits, or all of it. */
static void align_gap(const struct tr_align_side *l,
		      const struct tr_align_side *r, size_t x, size_t y,
		      size_t nx, size_t ny, struct tr_align *out)
{
	struct tr_align_side a = {l->hash + x, nx, true};
	struct tr_align_side b = {r->hash + y, ny, true};

	if (nx == 0 || ny == 0 || fewest_edits(&a, &b, false, out) != FOUND)
		add_run(out, nx, ny, 0);
}

static size_t equal_from(const struct tr_align_side *l, size_t x,
			 const struct tr_align_side *r, size_t y)
{
	size_t n = 0;

	while (x + n < l->n && y + n < r->n && l->hash[x + n] == r->hash[y + n])
		n++;
	return n;
}

/* Align up to the last tie, or to the ends; false when nothing ties. */
static bool align_by_ties(const struct tr_align_side *l,
			  const struct tr_align_side *r, size_t gram,
			  struct tr_align *out)
{
	TR_AUTOFREE struct tie *ties = NULL;
	size_t n = find_ties(l, r, gram, &ties), x = 0, y = 0;

	n = longest_chain(ties, n);
	for (size_t i = 0; i < n; i++) {
		size_t same;

		if (ties[i].left < x || ties[i].right < y)
			continue; /* inside the run before */
		align_gap(l, r, x, y, ties[i].left - x, ties[i].right - y, out);
		same = equal_from(l, ties[i].left, r, ties[i].right);
		add_run(out, 0, 0, same);
		x = ties[i].left + same;
		y = ties[i].right + same;
	}
	if (n > 0 && l->ended && r->ended)
		align_gap(l, r, x, y, l->n - x, r->n - y, out);
	return n > 0;
}

/* ---- changes instead of insertions here and deletions there ---- */

/*
 * n items from `at` on are one side's alone, and `same` common ones follow:
 * may the common ones be the first `same` of all these instead?
 */
static bool slides(const struct tr_align_side *s, size_t at, size_t n,
		   size_t same)
{
	for (size_t i = 0; i < same; i++)
		if (s->hash[at + i] != s->hash[at + n + i])
			return false;
	return true;
}

static bool only_left(const struct tr_align_run *r)
{
	return r->left && !r->right;
}

static bool only_right(const struct tr_align_run *r)
{
	return r->right && !r->left;
}

/*
 * Can run a, which is on one side only, move down to b, which has items of the
 * other side only?  x and y are where a begins.
 */
static bool moves_down(const struct tr_align_side *l,
		       const struct tr_align_side *r, size_t x, size_t y,
		       const struct tr_align_run *a,
		       const struct tr_align_run *b)
{
	return (only_left(a) && only_right(b) && slides(l, x, a->left, a->same)) ||
	       (only_right(a) && only_left(b) && slides(r, y, a->right, a->same));
}

/* Can b move up to a? */
static bool moves_up(const struct tr_align_side *l,
		     const struct tr_align_side *r, size_t x, size_t y,
		     const struct tr_align_run *a, const struct tr_align_run *b)
{
	return (only_right(a) && only_left(b) &&
		slides(l, x, b->left, a->same)) ||
	       (only_left(a) && only_right(b) &&
		slides(r, y, b->right, a->same));
}

/* An event that differs in the middle of equal ones is to be one change. */
static void join_changes(const struct tr_align_side *l,
			 const struct tr_align_side *r, struct tr_align *a)
{
	struct tr_align joined = {0};
	size_t x = 0, y = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct tr_align_run run = a->run[i];
		const struct tr_align_run *next = &a->run[i + 1];

		if (i + 1 < a->n && moves_up(l, r, x, y, &run, next)) {
			run.left += next->left;
			run.right += next->right;
			run.same += next->same;
			i++;
		} else if (i + 1 < a->n && moves_down(l, r, x, y, &run, next)) {
			add_run(&joined, 0, 0, run.same);
			x += run.same;
			y += run.same;
			run.left += next->left;
			run.right += next->right;
			run.same = next->same;
			i++;
		}
		add_run(&joined, run.left, run.right, run.same);
		x += run.left + run.same;
		y += run.right + run.same;
	}
	tr_align_release(a);
	*a = joined;
}

/* Is a window of n items full, as far as there can be items? */
static bool is_full(const struct tr_align_side *s, size_t n)
{
	return s->ended || s->n >= n;
}

/* Nothing ties what is there: so much of it is different. */
static size_t hopeless(const struct tr_align_side *s)
{
	return s->ended ? s->n : (3 * s->n + 3) / 4;
}

static struct tr_align_side cut(const struct tr_align_side *s)
{
	struct tr_align_side c = *s;

	if (c.n > TR_ALIGN_MAX) {
		c.n = TR_ALIGN_MAX;
		c.ended = false;
	}
	return c;
}

size_t tr_align_next(const struct tr_align_side *left,
		     const struct tr_align_side *right, struct tr_align *out)
{
	const struct tr_align_side l = cut(left), r = cut(right);
	size_t most = l.n > r.n ? l.n : r.n;
	size_t window = WINDOW;
	enum found found = fewest_edits(&l, &r, true, out);

	if (found == FOUND) {
		join_changes(&l, &r, out);
		return 0;
	}
	if (found == MORE && 2 * most < WINDOW)
		return 2 * most < FIRST_WANT ? FIRST_WANT : 2 * most;
	while (window < TR_ALIGN_MAX && is_full(&l, 4 * window) &&
	       is_full(&r, 4 * window) && !(l.ended && r.ended))
		window *= 4;
	if (!is_full(&l, window) || !is_full(&r, window))
		return window;
	if (align_by_ties(&l, &r, GRAM, out))
		return 0;
	if (window < TR_ALIGN_MAX && !(l.ended && r.ended))
		return 4 * window;
	if (!align_by_ties(&l, &r, 1, out))
		add_run(out, hopeless(&l), hopeless(&r), 0);
	return 0;
}
