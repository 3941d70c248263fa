/*
 * Running trace-replay for another tool.  Tools that only read traces have no
 * engine in them; what they want replayed the tool beside them replays.
 */
#ifndef CLI_REPLAY_RUN_H
#define CLI_REPLAY_RUN_H

#include "libtrace/trace.h"

/*
 * Replay a trace without the program's output and call `object` for every
 * JSON object that trace-replay writes.  What it has to complain about is on
 * stderr.  Returns its exit status, or -1.
 */
int cli_replay_run(const char *trace,
		   void (*object)(void *arg, const struct tr_json *j),
		   void *arg, struct tr_error *err) TR_MUST_CHECK;

#endif
