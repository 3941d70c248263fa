/* The state of a replayed task as JSON Lines: registers, mappings, pages. */
#ifndef CLI_STATE_H
#define CLI_STATE_H

#include <stdbool.h>

#include "libtrace/trace.h"

/* To be called for every event before: mappings are named by stored files. */
void cli_state_learn(const struct tr_event *ev);

/* Print the state of the event's task where the replay is; with `contents`
 * the bytes of the pages, too. */
int cli_state_print(struct tr_replay *r, const struct tr_event *ev,
		    bool contents, struct tr_error *err) TR_MUST_CHECK;

#endif
