/*
 * What the engine places in every traced address space, and where.
 *
 * Two pages at a fixed address that neither the kernel's default layout nor
 * the usual sanitizer shadows use: one of code, which executes system calls
 * for the engine (batch.S), one of scratch memory for their arguments.  They
 * are there while recording and while replaying, so that both have the same
 * free address space.
 */
#ifndef TR_INTERCEPT_ABI_H
#define TR_INTERCEPT_ABI_H

#include <stdbool.h>
#include <stdint.h>

#define TR_INJECT_BASE 0x70000000ul
#define TR_INJECT_CODE TR_INJECT_BASE
#define TR_INJECT_SCRATCH (TR_INJECT_BASE + 0x1000)
#define TR_INJECT_SCRATCH_SIZE 0x1000ul
#define TR_INJECT_END (TR_INJECT_BASE + 0x2000)

/* While recording, results of blocked calls are kept here until they can be
 * given to the program. */
#define TR_SCRATCH_BASE 0x71000000ul
#define TR_SCRATCH_END 0x78000000ul

/* Is the mapping the engine's? */
static inline bool tr_is_engine(uint64_t start, uint64_t end)
{
	return (start >= TR_INJECT_BASE && end <= TR_INJECT_END) ||
	       (start >= TR_SCRATCH_BASE && end <= TR_SCRATCH_END);
}

/* The code, as assembled into the library; position independent. */
extern const uint8_t tr_inject_start[], tr_inject_end[];
/* Its entry points and the address after its syscall instruction. */
extern const uint8_t tr_inject_batch[], tr_inject_single[],
	tr_inject_after_syscall[];

static inline uint64_t tr_inject_address(const uint8_t *label)
{
	return TR_INJECT_CODE + (uint64_t)(label - tr_inject_start);
}

/* One call of a batch, in scratch memory. */
struct tr_inject_call {
	uint64_t nr, args[6];
	int64_t result;
};

#endif
