/* What the injected code is told: which calls it makes itself and what memory
 * they touch, and the sizes of the parts of the extended state. */
#ifndef TR_INTERCEPT_RULES_H
#define TR_INTERCEPT_RULES_H

#include "libtrace/intercept/abi.h"

/* Fill rule_of and rule from the syscall model, with the calls that
 * formats/syscalls.tbl calls quick, and part_size from the processor. */
void tr_rules_fill(struct tr_calls_control *control);
/* The rule of a call's number, or NULL. */
const struct tr_rule *tr_rule_find(const struct tr_calls_control *control,
				   uint64_t nr);

#endif
