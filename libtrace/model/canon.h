/*
 * What of an event is the program's doing, in terms that do not depend on the
 * run: tasks by their place in the family tree, files by path, addresses and
 * times not at all.  What else is made independent of the run, or left as it
 * is, is the caller's choice.  Two events are the same to a comparison when
 * their fields, in order, have equal values.
 */
#ifndef TR_MODEL_CANON_H
#define TR_MODEL_CANON_H

#include <stdbool.h>

#include "libtrace/base/json.h"
#include "libtrace/base/table.h"
#include "libtrace/format/event.h"

/* What differs from run to run. X(NAME, bit, "name"). */
#define TR_IGNORABLE(X)                                                        \
	X(PIDS, 0, "pids")           /* compared as places in the tree */      \
	X(ADDRESSES, 1, "addresses") /* there or not */                        \
	X(TIMES, 2, "times")         /* timeouts: none, zero, some */          \
	X(FDS, 3, "fds")             /* descriptors above 2 are all alike */   \
	X(NAMES, 4, "names")         /* of files that a task itself created    \
					exclusively: the first, the second */  \
	X(DATA, 5, "data")           /* what calls read */                     \
	X(SIGNALS, 6, "signals")     /* when handlers run, and that they do */ \
	X(FILES, 7, "files")         /* mapped ones are compared by path */

enum tr_ignore {
#define X(NAME, bit, name) TR_IGNORE_##NAME = 1 << (bit),
	TR_IGNORABLE(X)
#undef X
};
#define TR_IGNORE_USUAL                                                        \
	(TR_IGNORE_PIDS | TR_IGNORE_ADDRESSES | TR_IGNORE_TIMES |              \
	 TR_IGNORE_FILES)
/* The bit of that name, or 0. */
unsigned tr_ignore_by_name(const char *name);

enum tr_canon_show {
	TR_SHOW_TYPE,    /* the event's type */
	TR_SHOW_SYSCALL, /* number is a system call's */
	TR_SHOW_DEC,
	TR_SHOW_HEX,
	TR_SHOW_TEXT,    /* bytes */
	TR_SHOW_JSON,    /* bytes, which are JSON already */
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
	struct tr_bytes bytes; /* borrowed until the function returns */
};
typedef void tr_canon_fn(void *arg, const struct tr_canon_field *f);

/*
 * What one trace has told so far.  Zeroed memory is an empty one that ignores
 * nothing; the first three members are the caller's to set.
 */
struct tr_canon {
	unsigned ignore; /* enum tr_ignore */
	/* The events are, or are to be compared with, such as JSON describes:
	 * without the memory and registers that a trace holds. */
	bool described;
	/* What names tasks among their siblings, as tr_kin_find gives it;
	 * borrowed.  NULL: the order in which they come. */
	const struct tr_table *ordinals;
	struct tr_table tasks; /* by id */
	struct tr_table pids;  /* the task, by pid */
	struct tr_table files; /* paths, by id */
	struct tr_table contents; /* of files, as a number, by id */
	struct tr_table names; /* of created files, by hash of the path */
	unsigned roots;
};
void tr_canon_release(struct tr_canon *c);

/* Learn from an event; to be called for each, in global order. */
void tr_canon_learn(struct tr_canon *c, const struct tr_event *ev);
/* What a stored file holds; to be called before an event has it mapped. */
void tr_canon_content(struct tr_canon *c, uint64_t file,
		      const uint8_t sha256[32]);
/* The task's name: equal in two traces for corresponding tasks. */
uint64_t tr_canon_task(struct tr_canon *c, uint32_t task);

/* Is it an event that comparing passes over? */
bool tr_canon_ignores(const struct tr_canon *c, const struct tr_event *ev);

/* The call itself, from a syscall, enter or clone event. */
void tr_canon_call(const struct tr_canon *c, const struct tr_event *ev,
		   tr_canon_fn *fn, void *arg);
/*
 * The same of a call whose arguments are known as JSON describes them (`args`
 * is that member of the event's object): the call itself, or with `data` the
 * part of what it read that is shown there.
 */
void tr_canon_described(const struct tr_canon *c, const struct tr_event *ev,
			const struct tr_json *args, bool data, tr_canon_fn *fn,
			void *arg);
/* All else; for a syscall event its result. */
void tr_canon_rest(const struct tr_canon *c, const struct tr_event *ev,
		   tr_canon_fn *fn, void *arg);

/*
 * The part of a memory effect that is data the program asked for: empty for
 * calls that do not read data.  `call` is the syscall event (whose registers
 * say where the buffer is), mem one of its effects or of its `more` records.
 */
struct tr_bytes tr_canon_data(const struct tr_canon *c,
			      const struct tr_event *call,
			      const struct tr_mem *mem);
/* Is the data a list of directory entries, to be compared by name only? */
bool tr_canon_is_dirents(const struct tr_event *call);

#endif
