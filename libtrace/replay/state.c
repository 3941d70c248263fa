/* Comparing digests of a task's whole state. */
#include "libtrace/replay/replayer.h"
#include "libtrace/tracee/digest.h"
#include "libtrace/tracee/pagemap.h"

/* Tracking writes pays when states follow each other: not for those at the
 * begin and the end of a program. */
#define STATES_UNTRACKED 2

static void show_program(void *as, uint64_t addr, uint8_t *page)
{
	tr_patches_show(&((struct rspace *)as)->patches, addr, page, TR_PAGE);
}

/* The task stands where its last event left it. */
enum applied rep_apply_state(struct tr_replay *r, struct rtask *t,
			     struct tr_error *err)
{
	struct tr_digest_task at = {
		.tid = t->tid, .may_call = true,
		.unpatch = show_program, .ctx = t->as,
	};
	bool track = t->as->states++ >= STATES_UNTRACKED;

	if (!t->as->digest)
		t->as->digest = tr_digest_new(r->digester);
	if (tr_digest_update(t->as->digest, &at, track, err) < 0)
		return TROUBLE;
	if (tr_digest_regs(&t->regs) != tr_event_get(&r->ev, TR_F_REGISTERS))
		return rep_diverged(r, t, "the digest of the registers differs");
	if (tr_event_has(&r->ev, TR_F_ROOT) &&
	    tr_digest_root(t->as->digest) != tr_event_get(&r->ev, TR_F_ROOT))
		return rep_diverged(r, t, "the digest of the memory differs");
	r->resume_after = !t->at_entry;
	return AGREED;
}
