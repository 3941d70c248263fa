/*
 * Scheduling within a domain: of the tasks that share memory one at a time
 * has the turn.  It runs user code, and only its events change memory, so that
 * the order of events is the order of effects.
 *
 * A task keeps its turn while it is in a system call that returns soon.  One
 * that sleeps there, or stays long, is taken to be blocked: its entry is
 * recorded and the next task runs.  Who that is, and when a turn ends
 * otherwise, is policy.c's.  A task that makes no system calls is preempted
 * some time later (async.c), because it may be waiting for another.
 */
#include <stdio.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/tracee.h"

/* A call that lasts longer lets another task run: some ptrace stops' worth.
 * One that is seen asleep does so sooner. */
#define BLOCKED_NS UINT64_C(300000)
#define ASLEEP_NS UINT64_C(30000)
/* Reading a file ends by itself, unless what serves it waits for the turn. */
#define STEADY_NS UINT64_C(1000000000)
/* How long chaos waits for those that have been woken. */
#define SETTLE_NS UINT64_C(2000000)

struct domain *rec_domain_new(struct recorder *r, uint32_t id)
{
	struct domain *d = tr_alloc(sizeof *d);

	d->id = id;
	rec_policy_seed(r, d);
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
	rec_policy_enqueue(d, t);
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

static void begin_slice(struct domain *d)
{
	d->slice = tr_now_ns();
	d->length = 0;
}

static void take_turn(struct domain *d, struct task *t)
{
	if (d->current != t)
		begin_slice(d);
	d->current = t;
	d->in_kernel = false;
}

static void give_turn(struct recorder *r, struct domain *d, struct task *t)
{
	void (*then)(struct recorder *, struct task *) = t->on_turn;

	take_turn(d, t);
	t->ran_since = tr_now_ns();
	r->hurry |= d->first || d->random;
	r->soon |= d->first && t->spin.inside;
	t->on_turn = NULL;
	t->yields = false;
	if (then) {
		then(r, t);
		return;
	}
	/* Now nobody else of the domain is running. */
	if (t->state_due)
		rec_state(r, t, t->run_sig == 0);
	rec_calls_update(r, t);
	rec_resume(t, t->run_how, t->run_sig);
}

static void choose(struct recorder *r, struct domain *d)
{
	struct task *t = rec_policy_next(r, d);

	d->settling = false;
	dequeue(d, t);
	give_turn(r, d, t);
}

/* With chaos, who can be chosen must not depend on how soon tasks that have
 * been woken come out of the kernel. */
static void next_turn(struct recorder *r, struct domain *d)
{
	d->current = NULL;
	if (!d->first || d->halting)
		return;
	if (d->random) {
		d->settling = true;
		d->since = tr_now_ns();
		return;
	}
	choose(r, d);
}

static bool is_free(const struct domain *d)
{
	return !d->current && !d->settling && !d->halting;
}

void rec_await_turn(struct recorder *r, struct task *t,
		    void (*then)(struct recorder *r, struct task *t))
{
	struct domain *d = t->as->domain;

	if (is_free(d) || d->current == t) {
		take_turn(d, t);
		then(r, t);
		return;
	}
	t->on_turn = then;
	append(d, t);
	r->hurry = true;
}

/* execve in a thread and the end of a process wait for all its threads. */
static bool waits_for(const struct task *t, const struct task *ending)
{
	return t->pid == ending->pid && t != ending &&
	       (t->exiting || (t->in_call && rec_is_exec(t)));
}

void rec_await_end(struct recorder *r, struct task *t,
		   void (*then)(struct recorder *r, struct task *t))
{
	struct domain *d = t->as->domain;

	dequeue(d, t);
	if (!t->nend || (d->current && waits_for(d->current, t)))
		then(r, t);
	else
		rec_await_turn(r, t, then);
}

void rec_run(struct recorder *r, struct task *t, int how, int sig)
{
	struct domain *d = t->as->domain;

	t->run_how = how;
	t->run_sig = sig;
	t->on_turn = NULL;
	if (is_free(d) || (d->current == t && !d->halting &&
			   !rec_policy_turn_is_over(r, d, t))) {
		give_turn(r, d, t);
		return;
	}
	append(d, t);
	r->hurry = true;
	if (d->current == t)
		next_turn(r, d);
}

void rec_go_on(struct recorder *r, struct task *t, int sig)
{
	if (t->as->domain->current == t)
		rec_resume(t, TR_RESUME_CONT, sig);
	else
		rec_run(r, t, TR_RESUME_CONT, sig);
}

static bool is_whole_domain(const struct recorder *r, const struct task *t)
{
	for (const struct task *o = r->tasks; o; o = o->next)
		if (o->as->domain == t->as->domain && o->pid != t->pid)
			return false;
	return true;
}

void rec_stopped(struct recorder *r, struct task *t)
{
	struct domain *d = t->as->domain;
	struct tr_regs regs;

	if (d->current == t && !t->in_call &&
	    tr_tracee_get_regs(t->tid, &regs) == 0 &&
	    !tr_at_call_boundary(&regs)) {
		if (!d->halting && is_whole_domain(r, t))
			return; /* nobody could use the turn */
		rec_stop_replay(r, t, TR_NOTE_ASYNC, "it was stopped inside a "
				"computation while others share its memory");
	}
	rec_rest(r, t);
}

void rec_enter_kernel(struct task *t, int how)
{
	struct domain *d = t->as->domain;

	if (d->current == t) {
		d->in_kernel = true;
		d->since = rec_is_alone(d) ? 0 : tr_now_ns();
	}
	rec_resume(t, how, 0);
}

void rec_rest(struct recorder *r, struct task *t)
{
	struct domain *d = t->as->domain;

	dequeue(d, t);
	if (d->current != t)
		return;
	/* It has come as far as this call, whoever runs now. */
	if (!rec_is_alone(d) && t->in_call && !t->new_image)
		rec_call_record_entry(r, t);
	next_turn(r, d);
}

void rec_domain_leave(struct recorder *r, struct task *t)
{
	struct domain *d = t->as->domain;

	rec_rest(r, t);
	if (--d->ntasks == 0 && !d->halting)
		free_domain(r, d);
}

/* The state letter of /proc/TID/stat, proc(5), or 0. */
static char state_of(pid_t tid)
{
	char path[64], line[512];
	const char *p;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
	TR_AUTOFCLOSE FILE *f = fopen(path, "re");
	if (!f || !fgets(line, sizeof line, f))
		return 0;
	p = strrchr(line, ')');
	return p && p[1] == ' ' ? p[2] : 0;
}

/* A thread-group leader that has ended is not reported before all its threads
 * have: it stays as a zombie (ptrace(2)).  Others are reported at once. */
static bool is_unreported_zombie(const struct task *t)
{
	return t->tid == t->pid && state_of(t->tid) == 'Z';
}

void rec_preempt(struct recorder *r)
{
	uint64_t now = tr_now_ns();

	for (struct domain *d = r->domains; d; d = d->next) {
		struct task *t = d->current;

		if (!t || d->in_kernel || t->in_call ||
		    rec_is_interrupting(t))
			continue;
		if (!d->length)
			d->length = rec_policy_patience(r, d, t);
		/* Chaos looks at computations that nobody waits for, too. */
		if ((!d->first && !d->random) || now - d->slice < d->length) {
			if (rec_spin_due(d, now))
				rec_spin_look_at(t);
			continue;
		}
		begin_slice(d);
		/* Killed in the moment in which it was resumed. */
		if (is_unreported_zombie(t)) {
			t->exiting = true;
			d->in_kernel = true;
			d->since = now;
			continue;
		}
		rec_interrupt(t);
	}
}

bool rec_sched_waiting(const struct recorder *r)
{
	for (const struct domain *d = r->domains; d; d = d->next)
		if (d->current && (d->first || d->random))
			return true;
	return false;
}

/* What a call that only takes long changes must not change while another task
 * runs: its turn lasts until it returns. */
static bool may_block(const struct task *t, uint64_t elapsed)
{
	return !t->new_image && !t->fl.denied && !t->fl.answered &&
	       tr_sys_may_block(t->fl.call.nr) &&
	       (!t->fl.steady || elapsed > STEADY_NS);
}

static bool is_blocked(const struct task *t, uint64_t elapsed)
{
	/* What the kernel writes at a task's end is ordered before what others
	 * do next, too. */
	if (t->exiting)
		return elapsed > BLOCKED_NS && is_unreported_zombie(t);
	if (!may_block(t, elapsed) || elapsed < ASLEEP_NS)
		return false;
	return elapsed > BLOCKED_NS || state_of(t->tid) == 'S';
}

/* The stop that it came to while the domain was halted. */
static void handle_stop(struct recorder *r, struct task *t)
{
	rec_dispatch(r, t, t->stop_status);
}

/* A task that others' progress can depend on, or that is gone but for its
 * death: what it does in the kernel has been recorded, or can be. */
static bool can_be_left(const struct task *t)
{
	return t->exiting || (rec_is_exec(t) && t->as->ntasks > 1) ||
	       may_block(t, STEADY_NS + 1);
}

/*
 * Stop the task that has the turn, so that nobody of the domain is running.
 * One in the kernel counts as blocked, or stops soon: what it comes to there
 * is handled when it has the turn again.
 */
void rec_domain_halt(struct recorder *r, struct domain *d)
{
	struct task *t;

	d->halting++;
	while ((t = d->current)) {
		bool computes = !t->in_call && !t->exiting;

		if (!computes && can_be_left(t)) {
			if (!t->exiting)
				rec_call_record_blocked(r, t);
			d->current = NULL;
			continue;
		}
		if (computes)
			rec_interrupt(t);
		if (tr_tracee_wait(t->tid, &t->stop_status, 0) < 0)
			return;
		if (computes) {
			rec_dispatch(r, t, t->stop_status);
			continue;
		}
		t->on_turn = handle_stop;
		append(d, t);
		d->current = NULL;
	}
}

void rec_domain_go_on(struct recorder *r, uint32_t id)
{
	struct domain *d = r->domains;

	while (d && d->id != id)
		d = d->next;
	if (!d || --d->halting)
		return;
	if (d->ntasks == 0)
		free_domain(r, d);
	else if (!d->current)
		next_turn(r, d);
}

static void note_joined(struct recorder *r, const struct task *t,
			const struct domain *d)
{
	struct tr_event ev = rec_event(TR_EV_NOTE, t);

	tr_event_set(&ev, TR_F_CODE, TR_NOTE_DOMAIN_JOINED);
	tr_event_set(&ev, TR_F_DOMAIN, d->id);
	rec_emit(r, &ev);
}

void rec_domain_join(struct recorder *r, struct task *t, struct domain *other)
{
	struct domain *d = t->as->domain;

	rec_domain_halt(r, other);
	note_joined(r, t, other);
	rec_capture_disturbed(r, d);
	rec_capture_disturbed(r, other);
	for (struct task *o = r->tasks; o; o = o->next) {
		if (o->as->domain != other)
			continue;
		/* No event names the place: replay would let it run on. */
		if (other->ntasks == 1 && o->queued && !o->on_turn)
			note_joined(r, o, other);
		/* Calls of a domain with one task have no scratch memory. */
		o->fl.exposed |= o->in_call && !o->fl.moved;
		o->as->domain = d;
	}
	d->ntasks += other->ntasks;
	if (other->first) {
		if (d->last)
			d->last->run_next = other->first;
		else
			d->first = other->first;
		d->last = other->last;
	}
	free_domain(r, other);
}

/* Will the task stop without anybody's doing? */
static bool is_coming(const struct task *t)
{
	char state;

	if (t->queued || (t->started && !t->in_call))
		return false;
	state = state_of(t->tid);
	return state == 'R' || state == 't';
}

static bool is_settled(const struct recorder *r, const struct domain *d)
{
	if (tr_now_ns() - d->since > SETTLE_NS)
		return true;
	for (const struct task *t = r->tasks; t; t = t->next)
		if (t->as->domain == d && is_coming(t))
			return false;
	return true;
}

enum poll { STEADY, WAITING, TURN_GIVEN };

static enum poll poll_domain(struct recorder *r, struct domain *d)
{
	struct task *t = d->current;

	if (d->halting)
		return STEADY;
	if (d->settling && !d->first)
		d->settling = false;
	if (d->settling) {
		if (!is_settled(r, d))
			return WAITING;
		choose(r, d);
		return TURN_GIVEN;
	}
	if (!t || !d->in_kernel || !d->first)
		return STEADY;
	if (!is_blocked(t, tr_now_ns() - d->since))
		return WAITING;
	if (!t->exiting)
		rec_call_record_blocked(r, t);
	next_turn(r, d);
	return TURN_GIVEN;
}

bool rec_sched_poll(struct recorder *r)
{
	struct domain *d = r->domains;
	bool waiting = false;

	while (d) {
		enum poll how = poll_domain(r, d);

		waiting |= how == WAITING;
		/* A turn can end domains, this and others. */
		d = how == TURN_GIVEN ? r->domains : d->next;
	}
	return waiting;
}
