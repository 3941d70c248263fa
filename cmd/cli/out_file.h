/*
 * Output files that appear under their name only when they are whole:
 * written under a temporary name beside it, synced, renamed.  A temporary
 * file is removed when a signal ends the tool.
 */
#ifndef CLI_OUT_FILE_H
#define CLI_OUT_FILE_H

#include <stdbool.h>

#include "libtrace/base/error.h"

struct cli_out_file {
	const char *path;
	bool replace; /* an existing file may be replaced */
	char *tmp;    /* owned */
	int fd;
};

/* Refuses an existing path unless `replace`. One at a time. */
int cli_out_file_open(struct cli_out_file *f, const char *path, bool replace,
		      struct tr_error *err) TR_MUST_CHECK;
int cli_out_file_commit(struct cli_out_file *f, struct tr_error *err)
	TR_MUST_CHECK;
void cli_out_file_abandon(struct cli_out_file *f);

#endif
