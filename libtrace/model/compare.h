/*
 * Comparing two traces event by event: the first difference.  What of an
 * event is compared, and how it is made independent of pids, times and
 * addresses, is in canon.h.
 *
 * Both traces are read once, side by side, and only as far as it takes.
 * Memory: what the two readers need, and 24 bytes for every event by which one
 * execution is ahead of the other in a task.
 */
#ifndef TR_MODEL_COMPARE_H
#define TR_MODEL_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"
#include "libtrace/format/reader.h"

struct tr_difference {
	bool found;
	const char *kind; /* "missing", "extra", "type", "syscall", "argument",
			     "result", "data", "signal", "status" */
	char what[256];   /* one line: field, left value, right value */
	/* The differing events; type 0 when that side ended. Owned by the
	 * comparison, valid until tr_compare_free. */
	const struct tr_event *left, *right;
	/* Up to `context` events of the same task before it, in which both
	 * agree: the left ones, oldest first. */
	const struct tr_event *const *before;
	size_t nbefore;
	uint64_t compared; /* events that agreed */
};

struct tr_compare;
/*
 * Compare per task: events of corresponding tasks (root with root, nth child
 * with nth child) are compared in their order, so that different scheduling
 * of independent processes is no difference.  The difference reported is the
 * one whose left event is earliest in the left trace's global order.  The
 * readers are borrowed.
 */
struct tr_compare *tr_compare_new(struct tr_reader *left, struct tr_reader *right,
				  size_t context);
int tr_compare_run(struct tr_compare *c, struct tr_difference *d,
		   struct tr_error *err) TR_MUST_CHECK;
void tr_compare_free(struct tr_compare *c);

#endif
