/*
 * What tracers in the recording did to their tracees: where they stopped them
 * and what they changed.  The tracers' own calls are results like any other.
 */
#include <inttypes.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "libtrace/model/syscalls.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/tracee.h"

static const char *signal_text(int sig)
{
	const char *name = tr_signal_name(sig);

	return name ? name : "a signal";
}

/* The task's own instruction stops it; the signal goes no further. */
enum applied rep_apply_stop(struct tr_replay *r, struct rtask *t,
			    struct tr_error *err)
{
	bool step = tr_event_get(&r->ev, TR_F_PLACE) == TR_PLACE_STEP;
	int sig = (int)tr_event_get(&r->ev, TR_F_SIGNO);
	enum applied how = step ? rep_step(r, t, err) : rep_wait(r, t, err);

	if (how != AGREED)
		return how;
	if (t->at_entry)
		return rep_diverged(r, t, "a system call was made where %s "
				    "stopped the task when recorded",
				    signal_text(sig));
	if (t->stop_signal != sig)
		return rep_diverged(r, t, "%s came where %s came when recorded",
				    signal_text(t->stop_signal),
				    signal_text(sig));
	if (!tr_regs_equal(&t->regs, &r->ev.regs))
		return rep_regs_differ(r, t, &r->ev.regs);
	t->stop_signal = 0;
	r->resume_after = true;
	return AGREED;
}

static int set_debug_register(struct tr_replay *r, struct rtask *t,
			      struct tr_error *err)
{
	uint64_t number = tr_event_get(&r->ev, TR_F_DEBUG_REGISTER);
	void *value = (void *)(uintptr_t)tr_event_get(&r->ev, TR_F_VALUE);

	if (number > 7)
		return tr_fail(err, TR_ECORRUPT, "event %" PRIu64
			       ": no such debug register", r->ev.number);
	if (tr_tracee_request(t->tid, PTRACE_POKEUSER,
			      offsetof(struct user, u_debugreg) + 8 * number,
			      value) < 0)
		return tr_fail_errno(err, "task %u: debug register %" PRIu64,
				     t->id, number);
	return 0;
}

enum applied rep_apply_poke(struct tr_replay *r, struct rtask *t,
			    struct tr_error *err)
{
	bool regs = tr_event_has(&r->ev, TR_F_REGS_AFTER);
	struct tr_regs after = regs ? r->ev.regs_after : t->regs;

	if (regs && !tr_regs_equal(&t->regs, &r->ev.regs))
		return rep_regs_differ(r, t, &r->ev.regs);
	if ((regs || tr_event_has(&r->ev, TR_F_XSTATE)) &&
	    rep_set_state(r, t, &after, err) < 0)
		return TROUBLE;
	/* At a call's entry its number is what will be compared. */
	t->regs.orig_rax = after.orig_rax;
	if (tr_event_has(&r->ev, TR_F_DEBUG_REGISTER) &&
	    set_debug_register(r, t, err) < 0)
		return TROUBLE;
	if (r->ev.nmap && tr_image_map(t->tid, r->ev.map, r->ev.nmap,
				       &r->source, err) < 0)
		return TROUBLE;
	if (rep_apply_mem(r, t, err) < 0)
		return TROUBLE;
	r->resume_after = !t->at_entry;
	return AGREED;
}
