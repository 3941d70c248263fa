/*
 * Where traces go when nobody says: ${XDG_DATA_HOME:-~/.local/share}/trace,
 * one directory NAME-N for each recording and the symbolic link `latest`.
 */
#ifndef CLI_TRACE_NAME_H
#define CLI_TRACE_NAME_H

#include "libtrace/base/error.h"

/* Where recordings keep what they learn of files' code:
 * ${XDG_CACHE_HOME:-~/.cache}/trace/code; NULL when neither is an absolute path.
 * Owned by the caller. */
char *cli_trace_name_cache(void);

/* The directory above them, which need not exist.  Owned by the caller. */
char *cli_trace_name_base(struct tr_error *err) TR_MUST_CHECK;

/*
 * A free path NAME-N, where NAME is the base name of `command` and N the
 * first free number from `*n` on, which is updated.  Makes the directory
 * above it.  Owned by the caller.
 */
char *cli_trace_name_new(const char *command, unsigned *n,
			 struct tr_error *err) TR_MUST_CHECK;

/* Point `latest` to `path`, made by cli_trace_name_new, in one step. */
int cli_trace_name_set_latest(const char *path, struct tr_error *err)
	TR_MUST_CHECK;

/* The operand if there is one, else the path of `latest`, which must exist.
 * Owned by the caller. */
char *cli_trace_name_pick(const char *operand, struct tr_error *err)
	TR_MUST_CHECK;

#endif
