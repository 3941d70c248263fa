/*
 * Comparing two executions event by event.  What of an event is compared, and
 * how it is made independent of the run, is in canon.h; how the sequences of
 * events are aligned is in align.h.
 *
 * A side is a trace, or a stream of JSON Lines such as trace-dump and
 * trace-replay write.  Where one side is JSON, both are compared as far as
 * JSON tells.  Both are read once, side by side; what is to be shown of traces
 * is read again.  Memory: what two readers need, the differences that are
 * kept, and 32 bytes for every event by which one side is ahead of the other
 * in a task.
 */
#ifndef TR_MODEL_COMPARE_H
#define TR_MODEL_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libtrace/base/error.h"
#include "libtrace/base/json.h"
#include "libtrace/format/event.h"
#include "libtrace/format/reader.h"
#include "libtrace/model/canon.h"

/* One side: a reader, or a stream of lines. Both are borrowed. */
struct tr_compare_input {
	struct tr_reader *reader;
	FILE *lines;
	const char *name; /* for messages */
};

struct tr_compare_options {
	unsigned ignore; /* enum tr_ignore */
	size_t context;  /* common events kept around differences */
	size_t max;      /* differences kept; 0: all */
	bool any;        /* whether there is one is all that is asked */
	bool states;     /* compare digests of states, and nothing else; so it
			    is anyhow when a side begins with one */
};

/* An event of one side. */
struct tr_compare_event {
	uint64_t number; /* 0: there is none */
	uint32_t task;
	const struct tr_event *event; /* of a trace, else NULL */
	const char *line;             /* of JSON, else NULL */
};

struct tr_difference {
	const char *kind; /* "missing", "extra", "type", "syscall", "argument",
			     "result", "data", "signal", "status", "state" */
	char what[256];   /* one line: field, left value, right value */
	struct tr_compare_event left, right;
	/* The last event of the task before it that is common: its numbers on
	 * either side, or 0. */
	uint64_t after[2];
};

/* Differences with no common event between them, and common ones around. */
struct tr_hunk {
	struct tr_difference *d;
	size_t n;
	uint64_t omitted; /* differences of it that were not kept */
	struct tr_compare_event *before, *behind; /* the left side's */
	size_t nbefore, nbehind;
};

struct tr_comparison {
	uint64_t compared; /* events that agree */
	uint64_t missing, extra, changed;
	bool described; /* a side was JSON */
	/* Those kept: the earliest in the left side's order, and in it.  They
	 * are the comparison's own, valid until tr_compare_free. */
	const struct tr_hunk *hunk;
	size_t n;
};

struct tr_compare;
/*
 * Compare per task: events of corresponding tasks (kin.h) are aligned, so that
 * different scheduling of independent processes is no difference.
 */
struct tr_compare *tr_compare_new(const struct tr_compare_input *left,
				  const struct tr_compare_input *right,
				  const struct tr_compare_options *options);
int tr_compare_run(struct tr_compare *c, struct tr_comparison *result,
		   struct tr_error *err) TR_MUST_CHECK;
void tr_compare_free(struct tr_compare *c);

#endif
