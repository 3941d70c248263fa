/* Tasks of a replay and their vessels. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "libtrace/base/alloc.h"
#include "libtrace/model/syscalls.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/tracee/tracee.h"
#include "libtrace/tracee/vessel.h"

#define PATIENCE_FACTOR 30

struct rtask *rep_task_find(const struct tr_replay *r, uint32_t id)
{
	for (struct rtask *t = r->tasks; t; t = t->next)
		if (t->id == id)
			return t;
	return NULL;
}

struct rspace *rep_space_new(uint32_t domain)
{
	struct rspace *as = tr_alloc(sizeof *as);

	as->domain = domain;
	return as;
}

bool rep_runs_alone(const struct tr_replay *r, const struct rtask *t)
{
	for (const struct rtask *o = r->tasks; o; o = o->next)
		if (o != t && o->as->domain == t->as->domain)
			return false;
	return true;
}

bool rep_stops_at(const struct rtask *t, const struct tr_event *ev)
{
	if (!ev || ev->task != t->id)
		return false;
	switch (ev->type) {
	case TR_EV_SYSCALL:
	case TR_EV_ENTER:
	case TR_EV_CLONE:
	case TR_EV_INSN:
		return true;
	case TR_EV_SIGNAL:
		return rep_is_fault(ev);
	case TR_EV_STOP:
		return tr_event_get(ev, TR_F_PLACE) == TR_PLACE_FAULT;
	default:
		return false;
	}
}

struct rtask *rep_task_new(struct tr_replay *r, uint32_t id, pid_t tid,
			   struct rspace *as)
{
	struct rtask *t = tr_alloc(sizeof *t);

	t->id = id;
	t->tid = tid;
	t->as = as;
	as->ntasks++;
	t->next = r->tasks;
	r->tasks = t;
	return t;
}

void rep_task_end(struct tr_replay *r, struct rtask *t)
{
	struct rtask **p = &r->tasks;

	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	tr_vessel_end(t->tid);
	if (--t->as->ntasks == 0) {
		tr_patches_release(&t->as->patches);
		tr_digest_free(t->as->digest);
		tr_calls_release(&t->as->calls);
		free(t->as);
	}
	tr_buf_release(&t->log);
	free(t);
}

static int resume(struct rtask *t, enum tr_resume how, struct tr_error *err)
{
	if (t->running)
		return 0;
	if (tr_tracee_resume(t->tid, how, 0) < 0)
		return tr_fail_errno(err, "task %u: resuming", t->id);
	t->running = true;
	t->at_entry = false;
	t->stop_signal = 0;
	return 0;
}

int rep_resume(struct rtask *t, struct tr_error *err)
{
	return resume(t, TR_RESUME_CONT, err);
}

/*
 * Replayer and task take turns, so they are fastest on one core: a wake-up of
 * the other core costs more than the stop itself.
 */
static void follow(struct tr_replay *r, const struct rtask *t)
{
	cpu_set_t set;

	if (t->cpu < 0 || t->cpu == r->cpu || t->cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET((int)t->cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) == 0)
		r->cpu = t->cpu;
}

static uint64_t patience(const struct tr_replay *r, const struct rtask *t)
{
	uint64_t until = t->fed && t->fed_time > r->ev.time ? t->fed_time
							    : r->ev.time;
	uint64_t recorded = until > t->last_time ? until - t->last_time : 0;

	return REP_PATIENCE_NS + PATIENCE_FACTOR * recorded;
}

/* A fault of the injected code: the program gave the call a bad pointer.  The
 * call stops. */
static enum applied expel(struct tr_replay *r, struct rtask *t,
			  struct tr_error *err)
{
	t->regs.rip = tr_calls_address(tr_calls_go_traced);
	t->regs.orig_rax = (uint64_t)-1;
	if (tr_tracee_set_regs(t->tid, &t->regs) < 0) {
		tr_fail_errno(err, "task %u: setting registers", t->id);
		return TROUBLE;
	}
	return rep_wait(r, t, err);
}

enum applied rep_stopped(struct tr_replay *r, struct rtask *t, int status,
			 struct tr_error *err)
{
	siginfo_t si;

	t->running = false;
	if (!WIFSTOPPED(status))
		return rep_diverged(r, t, "the replayed process died "
				    "(wait status 0x%x)", status);
	if (tr_tracee_get_regs(t->tid, &t->regs) < 0)
		goto failed;
	if (tr_calls_hold(t->regs.rip) && (WSTOPSIG(status) == SIGSEGV ||
					   WSTOPSIG(status) == SIGBUS))
		return expel(r, t, err);
	if (rep_batch_take(t, err) < 0)
		return TROUBLE;
	if (!tr_calls_trapped(&t->as->calls, &t->regs))
		tr_calls_come_home(&t->as->calls, &t->regs);
	/* The call is not made: rep_set_state takes its number away. */
	if (tr_stop_event(status) == PTRACE_EVENT_SECCOMP) {
		t->at_entry = true;
		return AGREED;
	}
	t->stop_signal = WSTOPSIG(status);
	if (tr_tracee_get_siginfo(t->tid, &si) < 0)
		goto failed;
	t->stop_code = si.si_code;
	return AGREED;
failed:
	tr_fail_errno(err, "task %u: reading its state", t->id);
	return TROUBLE;
}

static enum applied wait_as(struct tr_replay *r, struct rtask *t,
			    enum tr_resume how, struct tr_error *err)
{
	int status;

	if (t->at_entry || t->stop_signal)
		return AGREED;
	if (resume(t, how, err) < 0)
		return TROUBLE;
	follow(r, t);
	if (tr_tracee_wait(t->tid, &status, patience(r, t)) == 0)
		return rep_stopped(r, t, status, err);
	if (errno != ETIMEDOUT) {
		tr_fail_errno(err, "task %u: waiting for it", t->id);
		return TROUBLE;
	}
	if (tr_tracee_resume(t->tid, TR_RESUME_INTERRUPT, 0) == 0 &&
	    tr_tracee_wait(t->tid, &status, 0) == 0 &&
	    tr_tracee_get_regs(t->tid, &t->regs) == 0)
		t->running = false;
	return rep_diverged(r, t, "the task computed for %.0f s without "
			    "reaching this event (recorded: %.3f s)",
			    (double)patience(r, t) / 1e9,
			    (double)(r->ev.time - t->last_time) / 1e9);
}

enum applied rep_wait(struct tr_replay *r, struct rtask *t, struct tr_error *err)
{
	return wait_as(r, t, TR_RESUME_CONT, err);
}

enum applied rep_step(struct tr_replay *r, struct rtask *t, struct tr_error *err)
{
	return wait_as(r, t, TR_RESUME_STEP, err);
}
