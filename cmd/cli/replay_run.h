/*
 * Running trace-replay for another tool.  Tools that only read traces have no
 * engine in them; what they want replayed the tool beside them replays.
 */
#ifndef CLI_REPLAY_RUN_H
#define CLI_REPLAY_RUN_H

#include <stdio.h>
#include <sys/types.h>

#include "libtrace/trace.h"

/*
 * Start trace-replay, found beside this tool or in PATH, with options (a
 * terminating NULL, of at most CLI_REPLAY_OPTIONS) for a trace.  What it
 * prints can be read from *from, which is the caller's.  Returns its pid.
 */
#define CLI_REPLAY_OPTIONS 6
pid_t cli_replay_spawn(const char *const *options, const char *trace,
		       FILE **from, struct tr_error *err) TR_MUST_CHECK;

/*
 * Replay a trace on up to that many cores, without the program's output, and
 * call `object` for every JSON object that trace-replay writes.  What it has to
 * complain about is on stderr.  Returns its exit status, or -1.
 */
int cli_replay_run(const char *trace, uint64_t jobs,
		   void (*object)(void *arg, const struct tr_json *j),
		   void *arg, struct tr_error *err) TR_MUST_CHECK;

#endif
