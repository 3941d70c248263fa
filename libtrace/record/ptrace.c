/*
 * Tracees of recorded tasks: where they stop, and how they go on.
 *
 * While a tracee is held it is in a stop of the recorder's, wherever that may
 * be; what the program's tracer is told about the place is what the kernel
 * would tell.  A stop has no event of its own unless replay needs one to find
 * the place: a signal that the task's own instruction raised, or a single step.
 */
#include "libtrace/record/ptrace.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/tracee.h"

/* include/uapi/linux/ptrace.h; older headers lack some. */
#define EVENT_STOP 128

struct traced *rec_trace(struct task *t, struct task *tracer, bool seized)
{
	struct traced *v = tr_alloc(sizeof *v);

	v->tracer = tracer;
	v->seized = seized;
	t->vt = v;
	return v;
}

struct task *rec_real_parent(struct recorder *r, const struct task *t)
{
	const struct task *at = t;

	for (;;) {
		struct task *p = r->tasks;

		while (p && p->id != at->parent)
			p = p->next;
		if (!p || p->pid != t->pid)
			return p;
		at = p; /* a thread that made this one */
	}
}

static siginfo_t trap_info(const struct task *t, int code)
{
	siginfo_t si = {.si_signo = SIGTRAP, .si_code = code};

	si.si_pid = t->tid;
	return si;
}

/*
 * What do_notify_parent_cldstop in kernel/signal.c does: SIGCHLD, unless the
 * tracer does not want it for stops, and an end to its waiting.
 */
static void tell_tracer(struct recorder *r, struct task *t, int why)
{
	struct task *tracer = t->vt->tracer;
	siginfo_t si = {.si_signo = SIGCHLD, .si_code = why};

	si.si_pid = t->tid;
	si.si_status = t->vt->status >> 8 & 0x7f;
	if (!tracer->no_cldstop)
		rec_send_sigchld(r, tracer, &si);
	rec_wait_wake(r, tracer);
}

/* Hold the task in a stop with the given code (bits 8 and up of a status). */
static void hold(struct recorder *r, struct task *t, enum held_at at, int code,
		 const siginfo_t *si)
{
	struct traced *v = t->vt;
	struct tr_regs regs;

	v->stopped = true;
	v->reported = false;
	v->listening = false;
	v->at = at;
	v->status = code << 8 | 0x7f;
	v->op = PTRACE_SYSCALL_INFO_NONE;
	v->has_info = si != NULL;
	if (si)
		v->info = *si;
	/* A call's entry and exit, and where no instruction was executed
	 * since, are places that replay finds. */
	v->exact = t->in_call || at == HELD_QUEUE || at == HELD_END ||
		   (tr_tracee_get_regs(t->tid, &regs) == 0 &&
		    tr_at_call_boundary(&regs));
	rec_rest(r, t);
	tell_tracer(r, t, CLD_TRAPPED);
}

static void hold_event(struct recorder *r, struct task *t, enum held_at at,
		       int event, unsigned long msg)
{
	siginfo_t si = trap_info(t, SIGTRAP | event << 8);

	t->vt->msg = msg;
	hold(r, t, at, SIGTRAP | event << 8, &si);
}

static void hold_call(struct recorder *r, struct task *t, enum held_at at,
		      uint8_t op)
{
	int code = t->vt->options & PTRACE_O_TRACESYSGOOD ? SIGTRAP | 0x80
							  : SIGTRAP;
	siginfo_t si = trap_info(t, code);

	t->vt->msg = op; /* PTRACE_EVENTMSG_SYSCALL_ENTRY, _EXIT */
	hold(r, t, at, code, &si);
	t->vt->op = op;
}

/* SIGTRAP after a step; the kernel's codes are in arch/x86/kernel/traps.c and,
 * after a call, in include/linux/ptrace.h (user_single_step_report). */
static void hold_step(struct recorder *r, struct task *t, int code)
{
	siginfo_t si = trap_info(t, code);

	hold(r, t, HELD_STOP, SIGTRAP, &si);
}

static void hold_attached(struct recorder *r, struct task *t, enum held_at at)
{
	siginfo_t si = {.si_signo = SIGSTOP, .si_code = SI_KERNEL};

	hold(r, t, at, SIGSTOP, &si);
}

static bool take_due(struct traced *v, unsigned which)
{
	bool due = v->due & which;

	v->due &= ~which;
	return due;
}

static bool hold_exit(struct recorder *r, struct task *t)
{
	struct traced *v = t->vt;

	if (v->mode == TRACED_STEP) {
		hold_step(r, t, TRAP_BRKPT);
		return true;
	}
	if (v->mode != TRACED_SYSCALL)
		return false;
	hold_call(r, t, HELD_STOP, PTRACE_SYSCALL_INFO_EXIT);
	return true;
}

static bool hold_exec(struct recorder *r, struct task *t)
{
	struct traced *v = t->vt;

	if (v->options & PTRACE_O_TRACEEXEC) {
		hold_event(r, t, HELD_STOP, PTRACE_EVENT_EXEC,
			   (unsigned long)v->former);
		return true;
	}
	if (!v->seized)
		v->due |= DUE_EXEC_TRAP;
	return false;
}

/* ptrace(2): a SIGTRAP of its own kind that execve sends old-style tracees. */
static void hold_exec_trap(struct recorder *r, struct task *t)
{
	siginfo_t si = {.si_signo = SIGTRAP, .si_code = SI_USER};

	si.si_pid = t->pid;
	hold(r, t, HELD_STOP, SIGTRAP, &si);
}

/* Hold a task that is stopped and has nothing to finish for the next stop
 * that is due; false when none is. */
static bool next_stop(struct recorder *r, struct task *t, enum held_at at)
{
	struct traced *v = t->vt;

	if (!v || v->stopped)
		return v != NULL;
	if (take_due(v, DUE_VFORK_DONE) &&
	    v->options & PTRACE_O_TRACEVFORKDONE) {
		hold_event(r, t, at, PTRACE_EVENT_VFORK_DONE, v->msg);
		return true;
	}
	if (take_due(v, DUE_EXEC) && hold_exec(r, t))
		return true;
	if (take_due(v, DUE_EXIT) && hold_exit(r, t))
		return true;
	if (take_due(v, DUE_EXEC_TRAP)) {
		hold_exec_trap(r, t);
		return true;
	}
	if (take_due(v, DUE_STEP) && v->mode == TRACED_STEP) {
		hold_step(r, t, SIGTRAP);
		return true;
	}
	if (take_due(v, DUE_ATTACH)) {
		hold_attached(r, t, at);
		return true;
	}
	if (take_due(v, DUE_TRAP)) {
		hold_event(r, t, at, EVENT_STOP, v->msg);
		return true;
	}
	return false;
}

/* ---- stops ---- */

bool rec_traced_entry(struct recorder *r, struct task *t)
{
	if (!t->vt || t->vt->mode != TRACED_SYSCALL)
		return false;
	rec_call_record_entry(r, t);
	hold_call(r, t, HELD_ENTRY, PTRACE_SYSCALL_INFO_ENTRY);
	return true;
}

bool rec_traced_seccomp(struct recorder *r, struct task *t, unsigned long data)
{
	if (!t->vt || !(t->vt->options & PTRACE_O_TRACESECCOMP))
		return false;
	rec_call_record_entry(r, t);
	hold_event(r, t, HELD_ENTRY, PTRACE_EVENT_SECCOMP, data);
	t->vt->op = PTRACE_SYSCALL_INFO_SECCOMP;
	return true;
}

bool rec_traced_broken(struct recorder *r, struct task *t)
{
	if (!t->vt)
		return false;
	if (t->vt->mode == TRACED_SYSCALL) {
		hold_call(r, t, HELD_BROKEN, PTRACE_SYSCALL_INFO_EXIT);
		return true;
	}
	/* This stop has cleared what PTRACE_INTERRUPT asked for (ptrace_stop in
	 * kernel/signal.c). */
	return next_stop(r, t, HELD_BROKEN);
}

bool rec_traced_exit(struct recorder *r, struct task *t, bool vforked)
{
	if (!t->vt)
		return false;
	t->vt->due |= DUE_EXIT | (vforked ? DUE_VFORK_DONE : 0);
	return next_stop(r, t, HELD_STOP);
}

bool rec_traced_exec(struct recorder *r, struct task *t)
{
	if (!t->vt)
		return false;
	t->vt->due |= DUE_EXEC | DUE_EXIT;
	return next_stop(r, t, HELD_STOP);
}

void rec_traced_former(struct task *t, pid_t former)
{
	if (t->vt)
		t->vt->former = former;
}

bool rec_traced_birth(struct recorder *r, struct task *t)
{
	return t->vt && next_stop(r, t, HELD_STOP);
}

/* A handler has been entered: a stop of its own for a tracer that steps
 * (signal_delivered in kernel/signal.c). */
bool rec_traced_handler(struct recorder *r, struct task *t)
{
	if (!t->vt)
		return false;
	if (t->vt->mode == TRACED_STEP)
		t->vt->due |= DUE_STEP;
	return next_stop(r, t, HELD_STOP);
}

/* A trapped instruction was executed in the task's place: that was a step. */
bool rec_traced_insn(struct recorder *r, struct task *t)
{
	if (!t->vt || t->vt->mode != TRACED_STEP)
		return false;
	hold_step(r, t, TRAP_TRACE);
	t->vt->exact = true;
	return true;
}

/* The event that a fork, vfork or clone is to a tracer (kernel_clone in
 * kernel/fork.c), or 0. */
static int clone_event(const struct traced *v, uint64_t flags)
{
	if (flags & CLONE_UNTRACED)
		return 0;
	if (flags & CLONE_VFORK)
		return v->options & PTRACE_O_TRACEVFORK ? PTRACE_EVENT_VFORK : 0;
	if ((flags & CSIGNAL) != SIGCHLD)
		return v->options & PTRACE_O_TRACECLONE ? PTRACE_EVENT_CLONE : 0;
	return v->options & PTRACE_O_TRACEFORK ? PTRACE_EVENT_FORK : 0;
}

void rec_traced_clone_child(struct task *t, struct task *child, uint64_t flags)
{
	const struct traced *v = t->vt;
	struct traced *cv;

	child->no_cldstop = t->no_cldstop;
	if (!v || (!clone_event(v, flags) && !(flags & CLONE_PTRACE)))
		return;
	cv = rec_trace(child, v->tracer, v->seized);
	cv->options = v->options;
	cv->due = v->seized ? DUE_TRAP : DUE_ATTACH;
}

bool rec_traced_clone(struct recorder *r, struct task *t, uint64_t flags,
		      pid_t child)
{
	int event = t->vt ? clone_event(t->vt, flags) : 0;

	if (t->vt)
		t->vt->msg = (unsigned long)child;
	if (!event)
		return false;
	hold_event(r, t, HELD_CALL, event, (unsigned long)child);
	return true;
}

bool rec_traced_ends(struct recorder *r, struct task *t, unsigned long status)
{
	struct traced *v = t->vt;

	if (!v)
		return false;
	v->stopped = false; /* SIGKILL ends every other stop */
	v->due = 0;
	if (v->end_shown || !(v->options & PTRACE_O_TRACEEXIT))
		return false;
	v->end_shown = true;
	hold_event(r, t, HELD_END, PTRACE_EVENT_EXIT, status);
	return true;
}

void rec_traced_died(struct recorder *r, struct task *t, int status)
{
	for (struct task *o = r->tasks; o; o = o->next) {
		if (!o->vt || o->vt->tracer != t)
			continue;
		if (o->vt->options & PTRACE_O_EXITKILL)
			syscall(SYS_tgkill, o->pid, o->tid, SIGKILL);
		rec_untrace(r, o, 0);
	}
	if (t->tid == t->pid)
		rec_wait_forget(r, t->pid);
	if (!t->vt)
		return;
	rec_wait_death(r, t, status);
	free(t->vt);
	t->vt = NULL;
}

/*
 * Where the tracer may change the task, replay must find the place.  False when
 * the task has come to something else meanwhile: the stop is still due.
 */
static bool reach_place(struct recorder *r, struct task *t)
{
	pid_t tid = t->tid;

	/* A step has its own event. */
	if (t->in_call || !(t->vt->due & (DUE_ATTACH | DUE_TRAP)) ||
	    t->vt->mode == TRACED_STEP ||
	    rec_record_point(r, t, TR_ASYNC_TRACER))
		return true;
	t = rec_task_find(r, tid);
	if (t && t->vt)
		rec_traced_stop(r, t);
	return false;
}

/* The kernel's own stop of a task: a group-stop, or what rec_traced_stop has
 * asked for. */
bool rec_traced_event_stop(struct recorder *r, struct task *t, int sig)
{
	struct traced *v = t->vt;
	siginfo_t si;

	if (!v)
		return false;
	if (v->stopped && !v->listening)
		return true;
	if (v->listening) {
		v->stopped = false;
		if (sig == SIGTRAP)
			v->due |= DUE_TRAP;
	} else if (sig == SIGTRAP && !reach_place(r, t)) {
		return true;
	}
	if (sig != SIGTRAP) {
		si = trap_info(t, sig | EVENT_STOP << 8);
		si.si_signo = sig;
		take_due(v, DUE_TRAP);
		hold(r, t, HELD_GROUP, v->seized ? sig | EVENT_STOP << 8 : sig,
		     v->seized ? &si : NULL);
		return true;
	}
	return next_stop(r, t, t->in_call ? HELD_BROKEN : HELD_STOP);
}

static void record_stop(struct recorder *r, struct task *t, int sig,
			const siginfo_t *si)
{
	struct tr_event ev = rec_event(TR_EV_STOP, t);
	bool step = t->vt->mode == TRACED_STEP && sig == SIGTRAP &&
		    si->si_code == TRAP_TRACE;

	if (tr_tracee_get_regs(t->tid, &ev.regs) < 0)
		return;
	tr_event_mark(&ev, TR_F_REGS);
	tr_event_set(&ev, TR_F_SIGNO, (uint64_t)sig);
	tr_event_set(&ev, TR_F_PLACE, step ? TR_PLACE_STEP : TR_PLACE_FAULT);
	rec_emit(r, &ev);
}

bool rec_traced_signal(struct recorder *r, struct task *t, int sig,
		       const siginfo_t *si, bool exact)
{
	struct traced *v = t->vt;

	if (!v || v->stopped)
		return v != NULL;
	if (tr_signal_is_fault(sig, si->si_code))
		record_stop(r, t, sig, si);
	hold(r, t, HELD_SIGNAL, sig, si);
	v->exact = exact;
	return true;
}

/* ---- going on ---- */

bool rec_traced_steps(const struct task *t)
{
	return t->vt && t->vt->mode == TRACED_STEP && !t->exiting;
}

/* A signal for a task that is in no signal's delivery: the next call's exit or
 * this one's takes it, and its tracer does not see it again. */
static void inject(struct task *t, int sig, const siginfo_t *si)
{
	TR_GROW(t->held, t->nheld, t->held_cap);
	t->held[t->nheld++] = (struct held_signal){
		.info = *si, .since = tr_now_ns(), .queued = true,
		.passed = true,
	};
	syscall(SYS_tgkill, t->pid, t->tid, sig);
}

/* What the signal is that the tracer lets through: the one that stopped the
 * task, or another, from the tracer (ptrace_signal in kernel/signal.c). */
static siginfo_t passed_info(const struct traced *v, int sig)
{
	siginfo_t si = {.si_signo = sig, .si_code = SI_USER};

	if (v->has_info && v->info.si_signo == sig)
		return v->info;
	si.si_pid = v->tracer->pid;
	return si;
}

static void go_on_from_signal(struct recorder *r, struct task *t, int sig)
{
	siginfo_t si = passed_info(t->vt, sig);
	bool exact = t->vt->exact;

	if (sig) {
		if (tr_tracee_set_siginfo(t->tid, &si) == 0)
			rec_signal_pass(r, t, &si, exact);
		return;
	}
	if (t->in_call)
		rec_resume(t, TR_RESUME_CONT, 0);
	else if (!next_stop(r, t, HELD_STOP))
		rec_run(r, t, TR_RESUME_CONT, 0);
}

void rec_traced_go_on(struct recorder *r, struct task *t, int sig)
{
	struct traced *v = t->vt;
	siginfo_t si = passed_info(v, sig);

	v->stopped = v->listening = false;
	if (v->at == HELD_SIGNAL) {
		go_on_from_signal(r, t, sig);
		return;
	}
	/* Only stops at a signal's delivery and at calls take one. */
	if (sig && (v->op || v->at == HELD_STOP) && v->at != HELD_BROKEN)
		inject(t, sig, &si);
	if (v->due & (DUE_ATTACH | DUE_TRAP) &&
	    (v->at == HELD_ENTRY || v->at == HELD_CALL))
		rec_resume(t, TR_RESUME_INTERRUPT, 0);
	switch (v->at) {
	case HELD_ENTRY:
		rec_await_turn(r, t, rec_call_proceed);
		break;
	case HELD_END:
		rec_task_ends(r, t);
		break;
	case HELD_CALL:
		rec_resume(t, TR_RESUME_SYSCALL, 0);
		break;
	case HELD_BROKEN:
		if (!next_stop(r, t, HELD_BROKEN))
			rec_resume(t, TR_RESUME_CONT, 0);
		break;
	case HELD_GROUP:
		if (t->in_call)
			rec_resume(t, TR_RESUME_CONT, 0);
		else
			rec_run(r, t, TR_RESUME_CONT, 0);
		break;
	case HELD_QUEUE:
		rec_run(r, t, t->run_how, t->run_sig);
		break;
	default:
		if (!next_stop(r, t, HELD_STOP))
			rec_run(r, t, TR_RESUME_CONT, 0);
	}
}

void rec_untrace(struct recorder *r, struct task *t, int sig)
{
	struct traced *v = t->vt;

	v->mode = TRACED_CONT;
	v->due = 0;
	v->options = 0;
	if (v->stopped && v->at == HELD_GROUP) /* its group is still stopped */
		rec_resume(t, TR_RESUME_LISTEN, 0);
	else if (v->stopped)
		rec_traced_go_on(r, t, sig);
	t->vt = NULL;
	free(v);
}

void rec_traced_stop(struct recorder *r, struct task *t)
{
	if (t->vt->stopped)
		return;
	/* What it waits to finish ends in the stop. */
	if (t->queued && t->on_turn)
		return;
	if (t->queued)
		next_stop(r, t, HELD_QUEUE);
	else
		rec_resume(t, TR_RESUME_INTERRUPT, 0);
}
