/*
 * Memory that one instruction accesses, by the registers before it.
 *
 * Only for instructions of which that can be told exactly: others are refused,
 * and so are those whose result the state before does not determine.
 */
#ifndef TR_STATE_OPERANDS_H
#define TR_STATE_OPERANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/format/event.h"

#define TR_OPERANDS_MAX 2
#define TR_OPERAND_BYTES 64 /* of one operand: a vector register's */

struct tr_operand {
	uint64_t addr;
	uint32_t len;
	bool written;
};

struct tr_operands {
	struct tr_operand op[TR_OPERANDS_MAX];
	unsigned n;
	bool pauses; /* PAUSE: the program waits for another core */
};

/*
 * The operands of the instruction at regs->rip, whose bytes these are.  What
 * pushes, pops, calls and returns do at the stack pointer is not among them.
 * False: refused.
 */
bool tr_operands_find(const uint8_t *bytes, size_t n,
		      const struct tr_regs *regs, struct tr_operands *out);

#endif
