/*
 * The code of probes: where it goes and what it is.  Pure functions.
 *
 * A region of TR_PROBE_SIZE bytes: before `entry` and behind it the part that
 * runs at every pass, then the comparisons, then what they use.
 */
#ifndef TR_TRACEE_PROBE_CODE_H
#define TR_TRACEE_PROBE_CODE_H

#include "libtrace/tracee/probe.h"
#include "libtrace/tracee/relocate.h"

#define TR_PROBE_SIZE (6ul * 4096)

struct tr_probe_code {
	uint64_t base;   /* page aligned */
	uint64_t entry;  /* in the second page: where the jump leads */
	uint64_t restore; /* the end of the every-pass part */
	struct tr_relocated moved;
	uint8_t bytes[TR_PROBE_SIZE];
	/* Addresses in it. */
	uint64_t compare, compare_end; /* in between the state is half saved */
	uint64_t match;  /* where the task is stopped by a match */
	uint64_t out;    /* goes on after a comparison failed */
	uint64_t alone, alone_end; /* the first instruction, a breakpoint */
};

/* What is saved at these offsets from the base while comparing. */
#define TR_PROBE_RCX (5 * 4096 + 0)
#define TR_PROBE_RAX (5 * 4096 + 8)
#define TR_PROBE_FLAGS (5 * 4096 + 16)
#define TR_PROBE_SAVED 24 /* bytes, from TR_PROBE_RCX on */

/* CF, PF, AF, ZF, SF and OF: the flags that are compared. */
#define TR_PROBE_EFLAGS UINT64_C(0x8d5)

/* The register of that encoding. */
uint64_t *tr_probe_register(struct tr_regs *regs, unsigned encoding);

/* Where the copy is: depends on what is compared first. */
uint64_t tr_probe_copy_at(uint64_t entry, const struct tr_probe_state *want);
/* Generate the code; `moved` is to be at tr_probe_copy_at.  Without `want`
 * there is only the copy. */
void tr_probe_generate(struct tr_probe_code *c,
		       const struct tr_probe_state *want);

/*
 * A jump, behind `prefixes` bytes without meaning, for the instructions at
 * `site` of the given lengths, that puts breakpoint instructions at all of
 * them but the first.  `is_free` is asked for a region where its target could
 * be; fills *entry and the bytes that replace the instructions.
 */
#define TR_PROBE_PREFIXES 4
typedef bool tr_probe_free_fn(void *ctx, uint64_t base);
bool tr_probe_jump_bytes(uint64_t site, size_t prefixes,
			 const uint8_t *lengths, size_t n,
			 tr_probe_free_fn *is_free, void *ctx, uint64_t *entry,
			 uint8_t bytes[TR_RELOCATE_MAX]);
/* The region that such an entry is in. */
uint64_t tr_probe_base(uint64_t entry);

#endif
