/* How the states of two traces differ: registers, mappings, bytes. */
#ifndef CLI_STATE_DIFF_H
#define CLI_STATE_DIFF_H

#include "cmd/cli/replayed.h"

/*
 * Replay both to their events (members trace, reader and event are set) and
 * print what differs there, at most `most` pieces of memory (0: all).
 */
int cli_state_diff(struct cli_replayed side[2], bool json, uint64_t most,
		   struct tr_error *err) TR_MUST_CHECK;

#endif
