/*
 * Results on stdout, errors on stderr.
 *
 * stdout is buffered by stdio; what goes wrong with it shows in
 * cli_finish(), through which every tool ends.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/cli/options.h"
#include "libtrace/trace.h"

/*
 * Set the name in front of messages and the exit status of a failure, and
 * make the standard descriptors safe to use.
 */
void cli_set_tool(const char *name, int trouble);

/* "tool: message" as one line on stderr, control characters as '?'. */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print err and return the tool's exit status of a failure. */
int cli_trouble(const struct tr_error *err);
/* As cli_trouble for a message of the tool's own. */
int cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Whether to write JSON: auto means text on a terminal, JSON elsewhere. */
bool cli_is_json(enum cli_format format);

/* One value as a line on stdout; frees j. */
void cli_json_line(struct tr_json *j);
/* Bytes on stdout with control characters escaped as \n, \033, ... */
void cli_put_escaped(const char *s, size_t n);

/* Write out what stdout holds, and keep the reason if that fails. */
void cli_flush(void);
/* False once writing to stdout has failed: streaming loops stop then. */
bool cli_output_ok(void);

/*
 * Flush stdout and return `status`, or the status of a failure when the
 * output could not be written.  A reader that went away (EPIPE) is no news;
 * anything else is said on stderr.
 */
int cli_finish(int status);

/* Let go of the standard descriptors, whose readers wait for their end. */
void cli_output_detach(void);

#endif
