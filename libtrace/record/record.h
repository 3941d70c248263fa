/* Recording a program. */
#ifndef TR_RECORD_RECORD_H
#define TR_RECORD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "libtrace/base/error.h"

enum tr_record_moment { TR_RECORD_STARTED, TR_RECORD_FIRST_ENDED };

struct tr_record_options {
	const char *directory;      /* where the trace goes; must not exist */
	const char *const *argv;    /* program and arguments, NULL-terminated */
	const char *const *labels;  /* "key=value", NULL-terminated, or NULL */
	int64_t expires_ns;         /* CLOCK_REALTIME; 0: never */
	const char *portable;       /* CPU level to hold the program to, as
				       tr_cpu_level_parse takes it, or NULL */
	const char *learned;        /* directory where what is learned of
				       files' code is kept, or NULL */
	const char *tool;           /* name and version for the manifest */
	const char *audit;          /* compare every call's effects with the
				       model; file for JSON Lines, or NULL */
	enum tr_digest_when {
		TR_DIGEST_OFF,
		TR_DIGEST_EXIT,  /* at exec and exit */
		TR_DIGEST_EVERY, /* and after every digest_events calls */
		TR_DIGEST_TIMED, /* and at the end of the first call that
				    returns digest_ns after the last one */
	} digest;
	uint64_t digest_events, digest_ns;
	uint64_t slice_ns;          /* a thread's turn lasts so long */
	uint64_t max_defer_ns;      /* and so much longer, or a signal waits so
				       long, for the next system call */
	bool intercept;             /* code in the program makes frequent calls */
	bool chaos;                 /* schedule threads at random, stop
				       computations at random */
	uint64_t seed;              /* of chaos */
	/* Called when the program has been started, and when its first process
	 * has ended (with its wait status) while others may go on; or NULL. */
	void (*moment)(void *arg, enum tr_record_moment moment, int status);
	void *arg;
};

struct tr_record_result {
	int status;                 /* root program's wait status */
	uint64_t events, tasks;
	bool complete;              /* everything is in the trace */
	bool replayable;            /* nothing met that replay cannot do */
	char stopped[256];          /* why not, when not */
	char unreached[512];        /* what `portable` does not hold, by name */
	uint64_t refusals;          /* requests of the program's tracers that
				       were refused, and the first */
	char refused[160];
};

/*
 * Run and record until every descendant has ended.  Fails before the program
 * starts (TR_ENOPROG, TR_ENOEXEC, TR_EUNSUPPORTED, TR_EEXIST, TR_ESYS); once it
 * runs, trouble with the trace never stops it: the result says what was lost.
 */
int tr_record(const struct tr_record_options *o, struct tr_record_result *res,
	      struct tr_error *err) TR_MUST_CHECK;

#endif
