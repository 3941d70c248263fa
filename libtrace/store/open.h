/*
 * Traces where they are: directories, and archives that were not unpacked.
 *
 * An archive is a regular file.  A plain one is read where it lies, a
 * compressed one from a temporary file without a name.  Of several traces in
 * it one is named by ARCHIVE/NAME.
 */
#ifndef TR_STORE_OPEN_H
#define TR_STORE_OPEN_H

#include <stdbool.h>

#include "libtrace/base/error.h"
#include "libtrace/format/check.h"
#include "libtrace/format/reader.h"

/* As tr_reader_open and tr_check, of archives, too. */
struct tr_reader *tr_trace_open(const char *path, struct tr_error *err)
	TR_MUST_CHECK;
int tr_trace_check(const char *path, tr_problem_fn *fn, void *arg,
		   struct tr_check_stats *stats, struct tr_error *err)
	TR_MUST_CHECK;

/* What a name leads to: an archive, and the trace meant in it. */
struct tr_archive_name {
	char *file;        /* owned */
	const char *trace; /* part of it, or NULL */
};

/* False unless path is FILE or FILE/NAME with a regular file. */
bool tr_archive_name(const char *path, struct tr_archive_name *n);
void tr_archive_name_release(struct tr_archive_name *n);

#endif
