/* Is a trace whole?  Everything that can be told without replaying it. */
#ifndef TR_FORMAT_CHECK_H
#define TR_FORMAT_CHECK_H

#include <stdint.h>

#include "libtrace/base/error.h"

/* One thing found wrong. */
struct tr_problem {
	enum tr_code code;  /* TR_ECORRUPT, TR_EINCOMPLETE, ... */
	const char *where;  /* file in the trace, "chunks/000000" */
	int64_t offset;     /* byte offset, or -1 */
	uint64_t event;     /* nearest event number, or 0 */
	const char *what;
};
typedef void tr_problem_fn(void *arg, const struct tr_problem *p);

struct tr_check_stats {
	uint64_t problems, chunks, events, tasks, streams, files, bytes;
};

/*
 * Check manifest, index, chunk chain, checksums, every record, cross
 * references (tasks start before they act and end once, children exist, file
 * ids are declared before use and exist in files/, ENTERED flags match, event
 * numbers are unique and complete) and the digests of stored files.
 * Returns 0 when it could look (problems are reported through fn and counted),
 * -1 when it could not (no such trace, no permission).
 */
int tr_check(const char *path, tr_problem_fn *fn, void *arg,
	     struct tr_check_stats *stats, struct tr_error *err) TR_MUST_CHECK;
/* The same of a trace elsewhere; path is for messages. */
struct tr_home;
int tr_check_home(const struct tr_home *home, const char *path,
		   tr_problem_fn *fn, void *arg, struct tr_check_stats *stats,
		   struct tr_error *err) TR_MUST_CHECK;
/* The same but for the stored files, which are not looked at. */
int tr_check_events_of(const char *path, tr_problem_fn *fn, void *arg,
		       struct tr_check_stats *stats, struct tr_error *err)
	TR_MUST_CHECK;

#endif
