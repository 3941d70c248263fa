/*
 * Scheduling within a domain: of the tasks that share memory one at a time
 * runs user code, so that the order of their events is the order of their
 * effects.
 *
 * A task keeps its turn while it is in a system call that returns soon.  One
 * that stays there longer is taken to be blocked: its entry is recorded and
 * the next task runs.  A turn also ends at sched_yield(2) and, after a time
 * slice, at any system call's exit; with chaos it ends at random.  A task
 * that makes no system calls at all is preempted in the end, because it may
 * be waiting for another.
 */
#include <stdio.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/tracee.h"

/* A call that lasts longer lets another task run. Some ptrace stops' worth. */
#define BLOCKED_NS UINT64_C(300000)
#define SLICE_NS UINT64_C(20000000)
/* Others wait this long for a task that computes without system calls, for a
 * preemption inside a computation ends the replayable part of the trace. */
#define PATIENCE_NS UINT64_C(1000000000)

struct domain *rec_domain_new(struct recorder *r, uint32_t id)
{
	struct domain *d = tr_alloc(sizeof *d);

	d->id = id;
	d->next = r->domains;
	r->domains = d;
	return d;
}

static void free_domain(struct recorder *r, struct domain *d)
{
	struct domain **p = &r->domains;

	rec_shared_forget(r, d);
	while (*p != d)
		p = &(*p)->next;
	*p = d->next;
	free(d);
}

static void append(struct domain *d, struct task *t)
{
	t->queued = true;
	t->run_next = NULL;
	if (d->last)
		d->last->run_next = t;
	else
		d->first = t;
	d->last = t;
}

static void dequeue(struct domain *d, struct task *t)
{
	struct task *before = NULL;

	if (!t->queued)
		return;
	t->queued = false;
	for (struct task *q = d->first; q != t; q = q->run_next)
		before = q;
	if (before)
		before->run_next = t->run_next;
	else
		d->first = t->run_next;
	if (d->last == t)
		d->last = before;
}

static void give_turn(struct recorder *r, struct domain *d, struct task *t)
{
	if (d->current != t)
		d->slice = tr_now_ns();
	d->current = t;
	d->in_kernel = false;
	t->yields = false;
	/* Now nobody else of the domain is running. */
	if (t->state_due)
		rec_state(r, t, t->run_sig == 0 && !t->enters);
	if (t->enters) {
		t->enters = false;
		d->in_kernel = t->exiting;
		d->since = tr_now_ns();
		if (t->exiting)
			rec_task_ends(r, t);
		else
			rec_call_proceed(r, t);
		return;
	}
	rec_resume(t, t->run_how, t->run_sig);
}

/* A number below n, or 0 without chaos (xorshift64). */
static uint64_t random_below(struct recorder *r, uint64_t n)
{
	if (!r->random)
		return 0;
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return r->random % n;
}

static void next_turn(struct recorder *r, struct domain *d)
{
	struct task *t = d->first;
	uint64_t n = 0;

	d->current = NULL;
	if (!t)
		return;
	for (; t; t = t->run_next)
		n++;
	t = d->first;
	for (n = random_below(r, n); n > 0; n--)
		t = t->run_next;
	dequeue(d, t);
	give_turn(r, d, t);
}

/* With chaos a turn ends at one call in four. */
static bool turn_is_over(struct recorder *r, const struct domain *d,
			 const struct task *t)
{
	if (!d->first)
		return false;
	if (r->random && random_below(r, 4) == 0)
		return true;
	return t->yields || tr_now_ns() - d->slice > SLICE_NS;
}

void rec_run(struct recorder *r, struct task *t, int how, int sig)
{
	struct domain *d = t->as->domain;

	t->run_how = how;
	t->run_sig = sig;
	if (!d->current || (d->current == t && !turn_is_over(r, d, t))) {
		give_turn(r, d, t);
		return;
	}
	append(d, t);
	if (d->current == t)
		next_turn(r, d);
}

void rec_enter_kernel(struct task *t, int how)
{
	struct domain *d = t->as->domain;

	if (d->current == t) {
		d->in_kernel = true;
		d->since = d->ntasks > 1 ? tr_now_ns() : 0;
	}
	rec_resume(t, how, 0);
}

void rec_rest(struct recorder *r, struct task *t)
{
	struct domain *d = t->as->domain;

	dequeue(d, t);
	if (d->current == t)
		next_turn(r, d);
}

void rec_domain_leave(struct recorder *r, struct task *t)
{
	struct domain *d = t->as->domain;

	rec_rest(r, t);
	if (--d->ntasks == 0)
		free_domain(r, d);
}

void rec_domain_join(struct recorder *r, struct task *t, struct domain *other)
{
	struct domain *d = t->as->domain;
	struct tr_event ev = rec_event(TR_EV_NOTE, t);

	tr_event_set(&ev, TR_F_CODE, TR_NOTE_DOMAIN_JOINED);
	tr_event_set(&ev, TR_F_DOMAIN, other->id);
	rec_emit(r, &ev);
	for (struct task *o = r->tasks; o; o = o->next)
		if (o->as->domain == other)
			o->as->domain = d;
	d->ntasks += other->ntasks;
	if (other->first) {
		if (d->last)
			d->last->run_next = other->first;
		else
			d->first = other->first;
		d->last = other->last;
	}
	/* A task of the other domain that is running goes on; this one is at
	 * a call's exit and waits for its turn. */
	if (other->current && d->current == t) {
		d->current = other->current;
		d->in_kernel = other->in_kernel;
		d->since = other->since;
		d->slice = other->slice;
	}
	free_domain(r, other);
}

/* A thread-group leader that has ended is not reported before all its threads
 * have: it stays as a zombie (ptrace(2)).  Others are reported at once. */
static bool is_unreported_zombie(pid_t pid, pid_t tid)
{
	char path[64], line[512];
	const char *p;

	if (tid != pid)
		return false;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
	TR_AUTOFCLOSE FILE *f = fopen(path, "re");
	if (!f || !fgets(line, sizeof line, f))
		return false;
	p = strrchr(line, ')');
	return p && strncmp(p, ") Z", 3) == 0;
}

void rec_preempt(struct recorder *r)
{
	uint64_t now = tr_now_ns();

	for (struct domain *d = r->domains; d; d = d->next) {
		struct task *t = d->current;

		if (!t || !d->first || d->in_kernel || t->preempting ||
		    now - d->slice < (t->as->stopped ? SLICE_NS : PATIENCE_NS))
			continue;
		t->preempting = true;
		rec_resume(t, TR_RESUME_INTERRUPT, 0);
	}
}

void rec_preempted(struct recorder *r, struct task *t)
{
	struct tr_regs regs;

	t->preempting = false;
	t->yields = true;
	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return;
	if (!tr_at_call_boundary(&regs))
		rec_stop_replay(r, t, TR_NOTE_ASYNC, "a thread computed for "
				"%.1f s while others waited, perhaps for it, "
				"and was preempted", (double)PATIENCE_NS / 1e9);
	rec_run(r, t, TR_RESUME_CONT, 0);
}

/* What a call that only takes long changes must not change while another task
 * runs: its turn lasts until it returns. */
static bool may_block(const struct task *t)
{
	return !t->new_image && !t->fl.denied &&
	       tr_sys_may_block(t->fl.call.nr);
}

bool rec_sched_poll(struct recorder *r)
{
	bool waiting = false;

	for (struct domain *d = r->domains; d; d = d->next) {
		struct task *t = d->current;

		if (!t || !d->in_kernel || !d->first)
			continue;
		/* What the kernel writes at a task's end is ordered before
		 * what others do next, too. */
		if (tr_now_ns() - d->since < BLOCKED_NS ||
		    (t->exiting ? !is_unreported_zombie(t->pid, t->tid)
				: !may_block(t))) {
			waiting = true;
			continue;
		}
		if (!t->exiting)
			rec_call_record_blocked(r, t);
		next_turn(r, d);
	}
	return waiting;
}
