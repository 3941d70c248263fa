/* A trace without its contents: what may be shown to strangers. */
#ifndef TR_MODEL_REDACT_H
#define TR_MODEL_REDACT_H

#include "libtrace/base/error.h"
#include "libtrace/format/reader.h"

/*
 * Write to the new directory `dir` a skeleton of the trace: every event with
 * its type, task, time, call, result and sizes, but without the bytes of
 * memory, strings, paths, registers other than those that hold a call's
 * arguments, digests of any of these, and stored files.  It says that it
 * cannot be replayed.  On failure nothing is left.
 */
int tr_redact(struct tr_reader *reader, const char *dir, struct tr_error *err)
	TR_MUST_CHECK;

#endif
