/*
 * String instructions with a repeat prefix: the only ones that can be
 * interrupted half done.  rip stays, and rcx, rsi and rdi say how far they are
 * (Intel SDM, "REP/REPE/REPZ/REPNE/REPNZ").
 */
#ifndef TR_TRACEE_REPEAT_H
#define TR_TRACEE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/format/event.h"

struct tr_repeat {
	uint8_t length, size; /* of the instruction, of an element */
	bool rsi, rdi;        /* which it uses */
	bool compares;        /* sets the flags, and can end early */
};

bool tr_repeat_decode(const uint8_t *bytes, size_t n, struct tr_repeat *rep);

/*
 * How many repetitions lead from one state of the registers to the other, if
 * that is possible at all; 0 if not, and between equal states.
 */
uint64_t tr_repeat_distance(const struct tr_repeat *rep,
			    const struct tr_regs *from,
			    const struct tr_regs *to);

#endif
