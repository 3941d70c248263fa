/*
 * The state of a replayed task: what stands in its registers and memory where
 * the replay is.
 */
#ifndef TR_REPLAY_INSPECT_H
#define TR_REPLAY_INSPECT_H

#include "libtrace/replay/replay.h"

struct tr_state_mapping {
	uint64_t start, end;
	uint32_t prot, flags; /* PROT_*; MAP_SHARED or MAP_PRIVATE */
	uint32_t file;        /* store id, or 0 */
	uint64_t offset;      /* bytes into the file */
	const char *name;     /* "[heap]", "[stack]" or "" */
};

/*
 * Called in this order: registers, every mapping, every page in ascending
 * order.  Pages are those of the process's own and those of shared mappings,
 * code that breakpoints may be in left out, unless they are all zero; `hash` is
 * XXH3-64 of the page's 4096 bytes.  Anything borrowed is good until the
 * function returns.
 */
struct tr_state_visitor {
	void *ctx;
	void (*registers)(void *ctx, const struct tr_regs *regs);
	void (*mapping)(void *ctx, const struct tr_state_mapping *m);
	void (*page)(void *ctx, uint64_t addr, uint64_t hash,
		     const uint8_t *bytes); /* bytes: NULL unless asked for */
};

/* Visit the state after the last step.  The task must be there still. */
int tr_replay_inspect(struct tr_replay *r, uint32_t task, bool contents,
		      const struct tr_state_visitor *v, struct tr_error *err)
	TR_MUST_CHECK;

#endif
