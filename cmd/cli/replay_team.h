/* Replaying a trace with several processes: libtrace/replay/replay.h says how. */
#ifndef CLI_REPLAY_TEAM_H
#define CLI_REPLAY_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "libtrace/trace.h"

/* What is known of a replay so far. */
struct cli_replay_progress {
	uint64_t last;   /* number of the last event that agreed */
	uint32_t tasks;
	bool have_status;
	int status;      /* wait status of the root task */
	unsigned processes; /* that replayed it, 0: this one alone */
};
void cli_replay_note(struct cli_replay_progress *p, const struct tr_event *ev);

/*
 * Replay with at most `jobs` processes, without output.  True: the replay was
 * identical, and what is known is in *p and cpu_missing (of `room` bytes; "":
 * nothing).  False says nothing about the trace: a replay by one process will
 * tell.
 */
bool cli_replay_team(const struct tr_reader *reader, const char *path,
		     uint64_t jobs, struct cli_replay_progress *p,
		     char *cpu_missing, size_t room);

#endif
