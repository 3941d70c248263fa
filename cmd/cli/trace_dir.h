/*
 * Traces as directories, for who needs their files: an archive is unpacked to
 * a temporary directory that goes when the tool ends.
 */
#ifndef CLI_TRACE_DIR_H
#define CLI_TRACE_DIR_H

#include "libtrace/store/temporary.h"
#include "libtrace/trace.h"

struct cli_trace_dir {
	char *path;
	struct tr_temporary temporary;
};

/* `name` is that of a directory, or of an archive, as ARCHIVE[/NAME].  Release
 * d in any case. */
int cli_trace_dir_open(struct cli_trace_dir *d, const char *name,
		       struct tr_error *err) TR_MUST_CHECK;
void cli_trace_dir_release(struct cli_trace_dir *d);

#endif
