/*
 * Replaying a trace.  The engine is a step function that returns what
 * happened; the caller owns the loop and the output.
 */
#ifndef TR_REPLAY_REPLAY_H
#define TR_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"
#include "libtrace/format/reader.h"

struct tr_replay;

enum tr_replay_what {
	TR_REPLAY_EVENT,    /* an event was applied and agreed */
	TR_REPLAY_OUTPUT,   /* and the program wrote to stdout or stderr */
	TR_REPLAY_DIVERGED, /* evidence is set; nothing further can be done */
	TR_REPLAY_STOPPED,  /* the trace cannot be replayed past here: note */
	TR_REPLAY_END,      /* all events agreed */
};

/* Where replay and recording part. */
struct tr_divergence {
	uint64_t event;
	uint32_t task;
	char what[512];      /* one line */
	char *detail;        /* registers, bytes: several lines, may be empty */
	char *symbol;        /* nearest symbol of the instruction, or NULL */
	char *previous;      /* the preceding events as text lines */
};

struct tr_replay_step {
	enum tr_replay_what what;
	const struct tr_event *event; /* valid until the next step */
	int output;          /* 1 stdout, 2 stderr */
	struct tr_bytes data;
	const struct tr_divergence *divergence;
	const char *note;    /* STOPPED: why */
	/* The event is a state's, and this is the replay's own: what the
	 * recorded one must equal.  Also when that diverged. */
	const struct tr_event *state;
};

/*
 * The reader is borrowed and must outlive the replay.  Refuses a trace whose
 * stored files are missing or have changed, by name.
 */
struct tr_replay *tr_replay_new(struct tr_reader *reader, struct tr_error *err)
	TR_MUST_CHECK;
/* What the recorded program may use and this processor does not have, as
 * names separated by blanks, or NULL. */
const char *tr_replay_cpu_missing(const struct tr_replay *r);
/* -1 on trouble (not divergence). */
int tr_replay_step(struct tr_replay *r, struct tr_replay_step *step,
		   struct tr_error *err) TR_MUST_CHECK;

/*
 * Replays of one trace in several processes, which divide its programs among
 * them: each must join, with a number of its own, before its first step.  All
 * give all events; when all come to TR_REPLAY_END the replay as a whole is
 * identical.  When one comes to anything else, only a replay without a team
 * can tell: programs may share memory, which a member alone cannot replay.
 * The team is made before the processes part.
 */
struct tr_replay_team;
struct tr_replay_team *tr_replay_team_new(const struct tr_reader *reader,
					  struct tr_error *err) TR_MUST_CHECK;
void tr_replay_team_free(struct tr_replay_team *team);
void tr_replay_join(struct tr_replay *r, struct tr_replay_team *team,
		    unsigned member);

/* Ends every process of the replay. */
void tr_replay_free(struct tr_replay *r);

#endif
