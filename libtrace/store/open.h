/*
 * Traces where they are: directories, and archives that were not unpacked.
 *
 * An archive is read where it lies, so it has to be a plain one in a file; of
 * several traces in it one is named by ARCHIVE/NAME.
 */
#ifndef TR_STORE_OPEN_H
#define TR_STORE_OPEN_H

#include "libtrace/base/error.h"
#include "libtrace/format/check.h"
#include "libtrace/format/reader.h"

/* As tr_reader_open and tr_check, of archives, too. */
struct tr_reader *tr_trace_open(const char *path, struct tr_error *err)
	TR_MUST_CHECK;
int tr_trace_check(const char *path, tr_problem_fn *fn, void *arg,
		   struct tr_check_stats *stats, struct tr_error *err)
	TR_MUST_CHECK;

#endif
