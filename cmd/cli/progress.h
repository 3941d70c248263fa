/* Progress of long work: one line that is rewritten, on a terminal only. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

/* Show at most ten times a second; silent when stderr is not a terminal. */
void cli_progress(const char *what, uint64_t bytes);
/* Erase the line. */
void cli_progress_end(void);

#endif
