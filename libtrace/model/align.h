/*
 * Aligning two sequences as diff(1) aligns lines, piece by piece: what is
 * looked at is bounded, however long the sequences are.
 *
 * Small differences are aligned with the fewest insertions and deletions
 * (Myers, "An O(ND) difference algorithm", 1986) up to the next long run of
 * equal items.  Where that would cost too much, short runs that occur once on
 * either side tie the sequences together ("patience").  Where there is nothing
 * to tie, all that is looked at differs.
 */
#ifndef TR_MODEL_ALIGN_H
#define TR_MODEL_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of one side: the next n items, by hash. */
struct tr_align_side {
	const uint64_t *hash;
	size_t n;
	bool ended; /* there are no more */
};

/* `left` items only on the left, `right` only on the right, `same` in both. */
struct tr_align_run {
	size_t left, right, same;
};

struct tr_align {
	struct tr_align_run *run; /* owned */
	size_t n, cap;
};
void tr_align_release(struct tr_align *a);

/*
 * Align the beginnings.  Returns 0 when that is done: the runs, of which there
 * is at least one, say how far.  Otherwise returns how many items of each side
 * that has not ended must be known for a decision.  Both sides have an item.
 */
size_t tr_align_next(const struct tr_align_side *left,
		     const struct tr_align_side *right, struct tr_align *out);

/* Never asks for more items than this. */
#define TR_ALIGN_MAX ((size_t)1 << 19)

#endif
