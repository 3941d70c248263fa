/*
 * Aligning sequences: whatever the script, it must make the one from the
 * other; small differences take the fewest edits; large ones are found
 * whole; and no more is asked for than is promised.
 */
#include "libtrace/model/align.h"

#include <stdint.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "tests/unit/check.h"

struct sequence {
	uint64_t *hash;
	size_t n, cap;
};

static void add(struct sequence *s, uint64_t v)
{
	TR_GROW(s->hash, s->n, s->cap);
	s->hash[s->n++] = v;
}

static void add_many(struct sequence *s, uint64_t first, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add(s, first + i);
}

static struct sequence letters(const char *text)
{
	struct sequence s = {0};

	while (*text)
		add(&s, (uint8_t)*text++);
	return s;
}

/* What became of the whole. */
static struct {
	size_t left, right, same, most;
	bool wrong, stuck;
} total;

/* Align everything, showing only as much as is asked for. */
static void align(const struct sequence *a, const struct sequence *b)
{
	size_t x = 0, y = 0, want = 1;

	memset(&total, 0, sizeof total);
	while (x < a->n && y < b->n && !total.stuck) {
		size_t nx = a->n - x < want ? a->n - x : want;
		size_t ny = b->n - y < want ? b->n - y : want;
		const struct tr_align_side l = {a->hash + x, nx,
						x + nx == a->n};
		const struct tr_align_side r = {b->hash + y, ny,
						y + ny == b->n};
		struct tr_align out = {0};
		size_t more = tr_align_next(&l, &r, &out), ox = x, oy = y;

		for (size_t i = 0; i < out.n; i++) {
			x += out.run[i].left;
			y += out.run[i].right;
			total.left += out.run[i].left;
			total.right += out.run[i].right;
			total.same += out.run[i].same;
			for (size_t k = out.run[i].same; k; k--, x++, y++)
				total.wrong |= x >= a->n || y >= b->n ||
					       a->hash[x] != b->hash[y];
		}
		total.stuck = more ? more <= want || more > TR_ALIGN_MAX
				   : x + y == ox + oy;
		if (more > total.most)
			total.most = more;
		want = more ? more : 1;
		tr_align_release(&out);
	}
	total.left += a->n - x;
	total.right += b->n - y;
}

static bool good(const struct sequence *a, const struct sequence *b)
{
	return !total.wrong && !total.stuck &&
	       total.left + total.same == a->n &&
	       total.right + total.same == b->n;
}

static size_t fewest(const struct sequence *a, const struct sequence *b)
{
	size_t row[64] = {0}, before, now;

	for (size_t j = 0; j <= b->n; j++)
		row[j] = j;
	for (size_t i = 1; i <= a->n; i++) {
		before = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b->n; j++) {
			now = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
			if (a->hash[i - 1] == b->hash[j - 1])
				now = before;
			before = row[j];
			row[j] = now;
		}
	}
	return row[b->n];
}

static void two(const char *x, const char *y)
{
	struct sequence a = letters(x), b = letters(y);

	align(&a, &b);
	CHECK(good(&a, &b));
	CHECK(total.left + total.right == fewest(&a, &b));
	free(a.hash);
	free(b.hash);
}

static void small(void)
{
	two("a", "b");
	two("abc", "abc");
	two("abcabba", "cbabac");
	two("abcdef", "abXdef");
	two("abcdef", "abcXYdef");
	two("xabcdef", "abcdefy");
	two("aaaaaaaaaa", "aaaa");
	two("abababab", "babababa");
	two("kitten sitting", "sitting kitten");
}

/* An item that differs among equal ones is changed where it is. */
static void changes(void)
{
	struct sequence a = letters("aaaab"), b = letters("aaXab");
	const struct tr_align_side l = {a.hash, a.n, true};
	const struct tr_align_side r = {b.hash, b.n, true};
	struct tr_align out = {0};

	CHECK(tr_align_next(&l, &r, &out) == 0 && out.n == 2);
	CHECK(out.run[0].same == 2 && out.run[0].left == 0);
	CHECK(out.run[1].left == 1 && out.run[1].right == 1 &&
	      out.run[1].same == 2);
	tr_align_release(&out);
	CHECK(tr_align_next(&r, &l, &out) == 0 && out.n == 2);
	CHECK(out.run[1].left == 1 && out.run[1].right == 1);
	tr_align_release(&out);
	free(a.hash);
	free(b.hash);
}

static void random_ones(void)
{
	uint64_t seed = 1;

	for (int round = 0; round < 3000; round++) {
		struct sequence s[2] = {{0}, {0}};

		for (int k = 0; k < 2; k++) {
			size_t n = 1 + (seed >> 33) % 60;

			for (size_t i = 0; i < n; i++) {
				seed = seed * 6364136223846793005u + 1;
				add(&s[k], (seed >> 33) %
				    (2 + (uint64_t)round % 9));
			}
		}
		align(&s[0], &s[1]);
		CHECK(good(&s[0], &s[1]));
		/* A run of equal items may end the search early. */
		CHECK(total.left + total.right >= fewest(&s[0], &s[1]));
		free(s[0].hash);
		free(s[1].hash);
	}
}

/* Much is inserted in the middle: that is found, and nothing else. */
static void large_insertion(size_t n)
{
	struct sequence a = {0}, b = {0};

	add_many(&a, 1000000, 5000);
	add_many(&b, 1000000, 2000);
	add_many(&b, 5000000, n);
	add_many(&b, 1002000, 3000);
	align(&a, &b);
	CHECK(good(&a, &b) && total.left == 0 && total.right == n);
	align(&b, &a);
	CHECK(good(&b, &a) && total.right == 0 && total.left == n);
	free(a.hash);
	free(b.hash);
}

static void insertions(void)
{
	large_insertion(1);
	large_insertion(200);
	large_insertion(3000);
	large_insertion(50000);
	large_insertion(300000);
}

/* A loop of four calls that ran longer on one side. */
static void loops(void)
{
	struct sequence a = {0}, b = {0};

	add_many(&a, 100, 50);
	add_many(&b, 100, 50);
	for (int i = 0; i < 4 * 5000; i++)
		add(&a, 1 + (uint64_t)i % 4);
	for (int i = 0; i < 4 * 7000; i++)
		add(&b, 1 + (uint64_t)i % 4);
	add_many(&a, 200, 5000);
	add_many(&b, 200, 5000);
	align(&a, &b);
	CHECK(good(&a, &b) && total.left == 0 && total.right == 4 * 2000);
	free(a.hash);
	free(b.hash);
}

static void nothing_in_common(void)
{
	struct sequence a = {0}, b = {0};

	add_many(&a, 0, 700000);
	add_many(&b, 1000000, 900000);
	align(&a, &b);
	CHECK(good(&a, &b) && total.same == 0);
	CHECK(total.most <= TR_ALIGN_MAX);
	free(a.hash);
	free(b.hash);
}

/* Every tenth item differs, all along. */
static void many_changes(void)
{
	struct sequence a = {0}, b = {0};

	for (uint64_t i = 0; i < 200000; i++) {
		add(&a, i);
		add(&b, i % 10 ? i : i + 1000000);
	}
	align(&a, &b);
	CHECK(good(&a, &b) && total.left == 20000 && total.right == 20000);
	free(a.hash);
	free(b.hash);
}

int main(void)
{
	RUN(small);
	RUN(changes);
	RUN(random_ones);
	RUN(insertions);
	RUN(loops);
	RUN(nothing_in_common);
	RUN(many_changes);
	return check_status();
}
