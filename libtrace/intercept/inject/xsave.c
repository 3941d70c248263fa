/*
 * The area that an XSAVEC of the program's has written.
 *
 * Parts of the state that are in their initial configuration are left out, but
 * the processor may take a part for used that is not: after a switch of tasks
 * it often does (Intel SDM, volume 1, "Processor tracking of XSAVE-managed
 * state").  So what is left out depends on more than the program; put it in.
 */
#include <stdint.h>

#include "libtrace/intercept/abi.h"

/* From enter.S. */
void tr_calls_settle_area(uint8_t *area);

#define CONTROL ((volatile struct tr_calls_control *)TR_INJECT_CONTROL)

/* Intel SDM, volume 1, "XSAVE area". */
#define X87 1u
#define SSE 2u
#define AT_MXCSR 24u /* its mask follows */
#define AT_XMM 160u
#define XMM_SIZE 256u
#define AT_PRESENT 512u /* XSTATE_BV */
#define AT_PARTS 520u   /* XCOMP_BV */
#define AT_REST 576u
#define MXCSR_INITIAL 0x1f80u

static inline void clear(uint8_t *to, uint64_t n)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
}

void tr_calls_settle_area(uint8_t *area)
{
	volatile uint64_t *present = (volatile uint64_t *)(area + AT_PRESENT);
	uint64_t parts = *(volatile uint64_t *)(area + AT_PARTS) &
			 ~((uint64_t)1 << 63) & ~(uint64_t)X87;
	uint64_t missing = parts & ~*present, at = AT_REST;

	if (missing & SSE) {
		*(volatile uint32_t *)(area + AT_MXCSR) = MXCSR_INITIAL;
		clear(area + AT_XMM, XMM_SIZE);
	}
	/* XRSTOR does not look at the mask. */
	*(volatile uint32_t *)(area + AT_MXCSR + 4) = 0;
	for (unsigned i = 2; i < TR_XSAVE_PARTS && parts >> i; i++) {
		uint32_t size = CONTROL->part_size[i];

		if (!(parts >> i & 1))
			continue;
		if (size & 1)
			at = (at + 63) & ~(uint64_t)63;
		if (missing >> i & 1)
			clear(area + at, size & ~1u);
		at += size & ~1u;
	}
	*present |= parts;
}
