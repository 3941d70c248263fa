/* Digests of the recorded tasks' state. */
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/tracee/digest.h"
#include "libtrace/tracee/pagemap.h"
#include "libtrace/tracee/state_event.h"
#include "libtrace/tracee/tracee.h"

/* Is another task of the domain in a call that may write its memory any time?
 * A digest taken then would not be that of any point of the event order. */
static bool kernel_may_write(const struct recorder *r, const struct task *t)
{
	for (const struct task *o = r->tasks; o; o = o->next)
		if (o != t && o->as->domain == t->as->domain && o->in_call &&
		    o->fl.exposed)
			return true;
	return false;
}

static void show_program(void *as, uint64_t addr, uint8_t *page)
{
	struct aspace *a = as;

	tr_patches_show(&a->patches, addr, page, TR_PAGE);
	tr_calls_show(&a->calls, addr, page, TR_PAGE);
}

/* An address space has one digest, for points and states: two would take each
 * other's news of written pages.  What a `state` event says of changed pages is
 * since the state before all the same (tr_digest_mark). */
static struct tr_digest *digest_of(const struct recorder *r, struct aspace *as)
{
	if (!as->digest)
		as->digest = tr_digest_new(r->digester);
	return as->digest;
}

bool rec_point_digest(struct recorder *r, struct task *t, uint64_t *root)
{
	struct tr_digest_task at = {
		.tid = t->tid, .may_call = !t->filtered && !rec_ignores_trap(t),
		.unpatch = show_program, .ctx = t->as,
	};
	struct tr_digest *d = digest_of(r, t->as);
	struct tr_error err;

	if (kernel_may_write(r, t))
		return false;
	if (tr_digest_update(d, &at, tr_digest_is_large(d), &err) < 0)
		return false; /* SIGKILL took it */
	*root = tr_digest_root(d);
	return true;
}

void rec_state(struct recorder *r, struct task *t, bool may_call)
{
	struct tr_digest_task at = {
		.tid = t->tid, .may_call = may_call && !t->filtered &&
			    !rec_ignores_trap(t),
		.unpatch = show_program, .ctx = t->as,
	};
	bool track = r->options->digest == TR_DIGEST_EVERY ||
		     r->options->digest == TR_DIGEST_TIMED;
	struct tr_event ev = rec_event(TR_EV_STATE, t);
	struct tr_error err;
	struct tr_regs regs;

	if (kernel_may_write(r, t))
		return; /* it stays due */
	t->calls = 0;
	t->state_due = false;
	if (tr_tracee_get_regs(t->tid, &regs) < 0 ||
	    tr_digest_update(digest_of(r, t->as), &at, track, &err) < 0)
		return; /* SIGKILL took it */
	t->as->digested = tr_now_ns();
	tr_event_set(&ev, TR_F_PARENT, t->parent);
	if (tr_state_event(t->as->digest, t->tid, &regs, NULL, 0,
			   &r->state_room, &ev) == 0)
		rec_emit(r, &ev);
}

bool rec_state_overdue(const struct recorder *r, const struct task *t,
		       uint64_t now)
{
	return r->options->digest == TR_DIGEST_TIMED &&
	       now - t->as->digested >= r->options->digest_ns;
}

void rec_state_count(const struct recorder *r, struct task *t)
{
	const struct tr_record_options *o = r->options;

	if (o->digest == TR_DIGEST_EVERY && ++t->calls >= o->digest_events)
		t->state_due = true;
	if (rec_state_overdue(r, t, tr_now_ns()))
		t->state_due = true;
}
