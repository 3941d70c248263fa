/* Which events to look at. */
#ifndef CLI_FILTER_H
#define CLI_FILTER_H

#include "cmd/cli/options.h"
#include "libtrace/trace.h"

struct cli_filter {
	struct cli_range events;
	struct cli_set tasks, types, syscalls; /* empty: all */
	bool last; /* what the last event that is not `more` was */
};

/*
 * To be asked for every event in order: a `more` event, which has further
 * effects of the event before it, shares that one's fate.
 */
bool cli_filter_match(struct cli_filter *f, const struct tr_event *ev);

#endif
