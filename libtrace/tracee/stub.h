/*
 * The code in the injected region that stands in for one patched instruction
 * of the program (intercept/abi.h), and the jumps that lead to it.
 */
#ifndef TR_TRACEE_STUB_H
#define TR_TRACEE_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "libtrace/format/event.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/state/padding.h"
#include "libtrace/tracee/relocate.h"

/* An instruction that is patched: a system call, an XSAVEC, or one of CPUID,
 * RDTSC and RDTSCP. */
struct tr_patchable {
	enum tr_insn insn; /* 0: a system call */
	uint8_t length;
};

#define TR_SHORT_JUMP 2u /* eb rel8 */
#define TR_SLOT_JUMP 7u  /* ff 24 25 abs32: jmp *abs32 */
_Static_assert(TR_LEAD_MIN == TR_JUMP && TR_LEAD_MAX == TR_STUB_LEAD,
	       "room for a near jump, and in the stub");

/*
 * How the program comes from a site to its stub.  The last jump, in `hole`,
 * goes through a slot.  A short jump at the site leads there, or to `via`,
 * where a near jump does.  When that stands right before the site, in place of
 * instructions that the stub makes up for, nothing is changed at the site
 * itself: a task that is there, or comes there in another way, finds the
 * instruction.
 */
struct tr_way {
	uint64_t via; /* 0: none */
	uint64_t hole;
};

struct tr_stub {
	uint64_t at; /* address of the site, 0 when gone */
	struct tr_way way;
	struct tr_patchable what;
	/* What was there: */
	uint8_t insn[TR_SITE_MAX];
	uint8_t via[TR_LEAD_MAX]; /* as far as the site when that is left */
	uint8_t hole[TR_SLOT_JUMP];
};

/* Bytes before the site that the stub makes up for; 0: none, and the site is
 * not left as it is. */
static inline uint64_t tr_stub_lead(const struct tr_stub *s)
{
	uint64_t n = s->at - s->way.via;

	return s->way.via && n >= TR_LEAD_MIN && n <= TR_LEAD_MAX ? n : 0;
}

/* Can the injected code do what the instruction does? */
bool tr_stub_can_do(enum tr_insn insn);

/* Bytes of its code, a multiple of TR_STUB_SIZE. */
static inline uint64_t tr_stub_size(const struct tr_stub *s)
{
	return s->what.insn ? TR_LONG_STUB_SIZE : TR_STUB_SIZE;
}

/*
 * Make the code of a stub at addr; *entry is where it begins.  False when the
 * bytes saved in *s are none of what can be patched in this way.
 */
bool tr_stub_make(uint8_t code[TR_LONG_STUB_SIZE], uint64_t addr,
		  const struct tr_stub *s, uint64_t *entry);

#endif
