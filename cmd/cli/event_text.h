/* One event as a line for people: number, task, time, what happened. */
#ifndef CLI_EVENT_TEXT_H
#define CLI_EVENT_TEXT_H

#include <stdbool.h>

#include "libtrace/trace.h"

/* Print to stdout; `sign` is the first character unless it is 0. */
void cli_event_text(const struct tr_event *ev, char sign, bool verbose);
/* The same of an event as one line of JSON. */
void cli_event_line_text(const char *line, char sign);

#endif
