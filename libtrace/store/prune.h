/* Removing traces that have expired. */
#ifndef TR_STORE_PRUNE_H
#define TR_STORE_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "libtrace/base/error.h"

struct tr_pruned {
	const char *path;
	int64_t expires_ns; /* CLOCK_REALTIME */
};
typedef void tr_prune_fn(void *arg, const struct tr_pruned *p);

/*
 * Report the traces in directory `dir` that expired before `now_ns`, and with
 * `remove` remove them.  What is no trace, does not expire, is being recorded
 * or cannot be read stays.  A removal that is cut short leaves a name with a
 * leading dot, which the next one finishes.
 */
int tr_prune(const char *dir, int64_t now_ns, bool remove, tr_prune_fn *fn,
	     void *arg, struct tr_error *err) TR_MUST_CHECK;

#endif
