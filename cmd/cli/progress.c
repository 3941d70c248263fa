/* Progress lines. */
#include "cmd/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "libtrace/base/io.h"

#define INTERVAL_NS 100000000u

static uint64_t shown_at;

void cli_progress(const char *what, uint64_t bytes)
{
	uint64_t now = tr_now_ns();

	if (now - shown_at < INTERVAL_NS || !isatty(STDERR_FILENO))
		return;
	shown_at = now;
	/* \033[K erases to the end of the line. */
	fprintf(stderr, "\r%8.1f MB  %.60s\033[K", (double)bytes / 1e6, what);
}

void cli_progress_end(void)
{
	if (shown_at)
		fputs("\r\033[K", stderr);
	shown_at = 0;
}
