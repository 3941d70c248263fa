/*
 * Where the program stopped for the recorder although code in the process does
 * what is done there elsewhere: the sites in mapped files that could not be
 * changed, and how often each was come to.  And, of the files' instructions,
 * what was left alone because it could not be told from data.
 */
#ifndef CMD_CLI_STOPS_H
#define CMD_CLI_STOPS_H

#include <stdbool.h>

#include "libtrace/base/json.h"
#include "libtrace/trace.h"

struct cli_stops *cli_stops_new(void);
void cli_stops_free(struct cli_stops *s);
void cli_stops_add(struct cli_stops *s, const struct tr_event *ev);

/* The members "stops" and "undecided" of the statistics. */
void cli_stops_json(struct cli_stops *s, const struct tr_reader *reader,
		    struct tr_json *j);
/* The same as tables; nothing when there is nothing to tell. */
void cli_stops_print(struct cli_stops *s, const struct tr_reader *reader);

#endif
