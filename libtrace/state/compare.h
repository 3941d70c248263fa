/*
 * Comparing two traces event by event (first version: the first difference).
 * pids, times, durations and addresses of different runs are normalised by
 * mapping each to its first occurrence.
 */
#ifndef TR_STATE_COMPARE_H
#define TR_STATE_COMPARE_H

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"
#include "libtrace/format/reader.h"

struct tr_difference {
	bool found;
	const char *kind; /* "missing", "extra", "type", "task", "syscall",
			     "argument", "result", "data", "signal", "status" */
	char what[256];   /* one line: field, left value, right value */
	/* The differing events; type 0 when that side ended. Owned by the
	 * comparison, valid until tr_compare_free. */
	const struct tr_event *left, *right;
	/* Up to `context` common events before, oldest first. */
	const struct tr_event *const *before;
	size_t nbefore;
	uint64_t compared; /* events that agreed */
};

struct tr_compare;
/*
 * Compare per task: events of corresponding tasks (root with root, nth child
 * with nth child) are compared in their order, so that different scheduling
 * of independent processes is no difference.  The difference reported is the
 * one whose left event is earliest in the left trace's global order.
 */
struct tr_compare *tr_compare_new(struct tr_reader *left, struct tr_reader *right,
				  size_t context);
int tr_compare_run(struct tr_compare *c, struct tr_difference *d,
		   struct tr_error *err) TR_MUST_CHECK;
void tr_compare_free(struct tr_compare *c);

#endif
