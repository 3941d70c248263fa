/* An event to go to: its number, or - for what another tool tells. */
#ifndef CLI_GOTO_H
#define CLI_GOTO_H

#include <stdint.h>

#include "libtrace/base/error.h"

/*
 * With "-" the number comes from JSON Lines on standard input, from the first
 * that has one: of a difference (trace-diff) the right side's event, or the
 * last common one there when it has none; of any other object the member
 * `event`.
 */
int cli_goto_parse(const char *arg, uint64_t *event, struct tr_error *err)
	TR_MUST_CHECK;

#endif
