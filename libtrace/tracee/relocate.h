/*
 * Moving instructions: code that has to make room for a jump runs elsewhere,
 * and does there exactly what it did.
 *
 * A pure function over bytes.  What is moved: whole instructions, with
 * rip-relative operands and branches adjusted.  What is refused, because a
 * copy could be told from the original: system calls and interrupts, far
 * branches, instructions whose results are recorded (RDTSC, CPUID, ...), x87
 * instructions (they leave their address in the FPU, Intel SDM, "x87 FPU
 * instruction and data pointers"), calls through registers or memory (their
 * fault would come after the push), and anything that does not decode.
 *
 * A copy does not fault, stop or get interrupted at the original's address:
 * whoever sees the task stopped asks tr_relocated_home where it would be.
 * Shadow stacks (CET) are not kept: calls become push and jmp.
 */
#ifndef TR_TRACEE_RELOCATE_H
#define TR_TRACEE_RELOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"

#define TR_INSN_MAX 15 /* bytes of one instruction */
/* At most so many bytes are asked for, and so many are moved. */
#define TR_RELOCATE_WANT 16
#define TR_RELOCATE_MAX (TR_RELOCATE_WANT - 1 + TR_INSN_MAX)
/* Two bytes of a loop become nine, and that is the worst; and there is the
 * jump back. */
#define TR_RELOCATE_CODE (TR_RELOCATE_MAX * 5 + 16)

struct tr_relocated {
	uint64_t from, to;  /* where the original and the copy are */
	size_t taken;       /* bytes of whole instructions moved */
	size_t straight;    /* of these, until control does not go on: behind
			       them is code that others come to */
	uint8_t code[TR_RELOCATE_CODE]; /* the copy, with its constants */
	size_t len;
	/*
	 * Where instructions of the copy begin, in ascending order, and the
	 * address at which the original would be in the same state.  `entry`:
	 * an instruction of the original begins there, too; others are halves
	 * of what replaces one, and the address is where that leads.
	 */
	struct tr_relocated_point {
		uint16_t offset;
		bool entry;
		uint64_t home;
	} point[TR_RELOCATE_MAX * 3 + 1];
	size_t npoints;
};

/*
 * Move the instructions of `from` that hold the first `want` bytes (1 to
 * TR_RELOCATE_WANT) to `to`.  `bytes` are the n bytes at `from`.  After the
 * last one the copy goes on at `next`, or, if that is 0, behind the original.
 * Branches to `from` itself go there, where the caller's jump is; branches
 * into what was moved stay in the copy.
 */
int tr_relocate(const uint8_t *bytes, size_t n, uint64_t from, size_t want,
		uint64_t to, uint64_t next, struct tr_relocated *r,
		struct tr_error *err) TR_MUST_CHECK;

/* Can the instruction at these bytes be moved?  Its length, or 0. */
size_t tr_relocatable(const uint8_t *bytes, size_t n);

/*
 * Does code nearby branch into the `taken` bytes at offset `at`, but behind
 * their first instruction?  Such a branch would meet a breakpoint where these
 * are moved.  A guess, from the direct branches among the n bytes.
 */
bool tr_branched_into(const uint8_t *bytes, size_t n, size_t at, size_t taken);

/* Where a task that stands at `ip` in the copy would be in the original. */
bool tr_relocated_home(const struct tr_relocated *r, uint64_t ip,
		       uint64_t *home);
/* The address in the copy of the original's instruction at `home`. */
bool tr_relocated_entry(const struct tr_relocated *r, uint64_t home,
			uint64_t *ip);

/* jmp rel32 at `from` to `to`; false when that is too far. */
#define TR_JUMP 5
bool tr_jump_encode(uint8_t out[TR_JUMP], uint64_t from, uint64_t to);

#endif
