/* How a task ended, from its wait status. */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <stddef.h>

#include "libtrace/trace.h"

/* Adds "exit_code":N, or "signal":"SIGSEGV" and "core":BOOL. */
void cli_status_json(struct tr_json *j, int status);
/* "exit status 3", "killed by SIGSEGV"; returns buf. */
const char *cli_status_text(int status, char *buf, size_t n);

#endif
