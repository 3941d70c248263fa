/*
 * Writing to the recording's outputs.
 *
 * Processes that share no memory run side by side, but what they write to the
 * outputs is shown by the replay in the order of events.  So that this is the
 * order in which it was written, one enters its call only when the event of the
 * one before is there, and no call of this kind is made by the injected code,
 * whose events come later.  Whoever is held up longer, by a reader that takes
 * its time, is not waited for.
 */
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"

#define PATIENCE_NS UINT64_C(10000000)

bool rec_outputs_in_turn(const struct recorder *r)
{
	return r->domains && r->domains->next;
}

void rec_outputs_shared(struct recorder *r)
{
	for (struct task *t = r->tasks; t; t = t->next) {
		if (!t->as->writes_inside)
			continue;
		t->as->writes_inside = false;
		rec_calls_forget_fds(t);
	}
}

bool rec_output_begin(struct recorder *r, struct task *t)
{
	const struct task *w = r->writing;

	if (!t->fl.output)
		return true;
	t->fl.held_up = w && w != t && w->as->domain != t->as->domain;
	if (t->fl.held_up) {
		r->hurry = true;
		return false;
	}
	if (!w) {
		r->writing = t;
		r->writing_since = tr_now_ns();
	}
	return true;
}

/* The one that has waited longest, or NULL. */
static struct task *first_held_up(const struct recorder *r)
{
	struct task *first = NULL;

	for (struct task *t = r->tasks; t; t = t->next)
		if (t->fl.held_up && !t->exiting &&
		    (!first || t->fl.since < first->fl.since))
			first = t;
	return first;
}

static void next(struct recorder *r)
{
	struct task *t = first_held_up(r);

	r->writing = NULL;
	if (t)
		rec_call_proceed(r, t);
}

void rec_output_end(struct recorder *r, const struct task *t)
{
	if (r->writing == t)
		next(r);
}

bool rec_outputs_overdue(struct recorder *r)
{
	if (!first_held_up(r))
		return false;
	if (tr_now_ns() - r->writing_since > PATIENCE_NS)
		next(r);
	return true;
}
