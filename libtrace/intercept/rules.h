/* Which calls the injected code makes itself, and what memory they touch. */
#ifndef TR_INTERCEPT_RULES_H
#define TR_INTERCEPT_RULES_H

#include "libtrace/intercept/abi.h"

/* Fill rule_of and rule from the syscall model: the calls that
 * formats/syscalls.tbl calls quick. */
void tr_rules_fill(struct tr_calls_control *control);
/* The rule of a call's number, or NULL. */
const struct tr_rule *tr_rule_find(const struct tr_calls_control *control,
				   uint64_t nr);

#endif
