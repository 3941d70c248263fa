/*
 * What of an event is the program's doing, in terms that do not depend on the
 * run: tasks by their place in the family tree, files by path, addresses and
 * times not at all.  Two events are the same to a comparison when their
 * fields, in order, have equal values.
 */
#ifndef TR_MODEL_CANON_H
#define TR_MODEL_CANON_H

#include <stdbool.h>

#include "libtrace/base/table.h"
#include "libtrace/format/event.h"

enum tr_canon_show {
	TR_SHOW_TYPE,    /* the event's type */
	TR_SHOW_SYSCALL, /* number is a system call's */
	TR_SHOW_DEC,
	TR_SHOW_HEX,
	TR_SHOW_TEXT,    /* bytes */
	TR_SHOW_BYTES,   /* bytes are the first of len `number` */
	TR_SHOW_RESULT,  /* number, or an errno */
	TR_SHOW_SIGNAL,
	TR_SHOW_STATUS,  /* as wait(2) reports it */
};

struct tr_canon_field {
	const char *kind;  /* of a difference in it: see compare.h */
	const char *name;
	uint64_t value;    /* what is compared */
	enum tr_canon_show show;
	uint64_t number;
	struct tr_bytes bytes; /* borrowed from the event */
};
typedef void tr_canon_fn(void *arg, const struct tr_canon_field *f);

/* What one trace has told so far.  Zeroed memory is an empty one. */
struct tr_canon {
	struct tr_table tasks; /* by id */
	struct tr_table pids;  /* name + 1 of the task, by pid */
	struct tr_table files; /* paths, by id */
	unsigned roots;
};
void tr_canon_release(struct tr_canon *c);

/* Learn from an event; to be called for each, in global order. */
void tr_canon_learn(struct tr_canon *c, const struct tr_event *ev);
/* The task's name: equal in two traces for corresponding tasks. */
uint64_t tr_canon_task(struct tr_canon *c, uint32_t task);

/* Is it an event that comparing passes over? */
bool tr_canon_ignores(const struct tr_event *ev);

/* The call itself, from a syscall, enter or clone event. */
void tr_canon_call(const struct tr_canon *c, const struct tr_event *ev,
		   tr_canon_fn *fn, void *arg);
/* All else; for a syscall event its result. */
void tr_canon_rest(const struct tr_canon *c, const struct tr_event *ev,
		   tr_canon_fn *fn, void *arg);

/*
 * The part of a memory effect that is data the program asked for: empty for
 * calls that do not read data.  `call` is the syscall event (whose registers
 * say where the buffer is), mem one of its effects or of its `more` records.
 */
struct tr_bytes tr_canon_data(const struct tr_event *call,
			      const struct tr_mem *mem);
/* Is the data a list of directory entries, to be compared by name only? */
bool tr_canon_is_dirents(const struct tr_event *call);

#endif
