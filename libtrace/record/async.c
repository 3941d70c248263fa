/*
 * Points inside computations, where a signal is delivered or another task
 * runs although the task makes no system call.
 *
 * Such a point is recorded by what the task's state is there: replay runs to
 * the first moment with that state.  A counter is not needed, because what a
 * program does next depends on its state alone: had it been in the same state
 * before, it would be there again.
 *
 * The task is stopped wherever it is, and taken a few instructions further
 * when replay could not put a probe there (tracee/relocate.h).
 */
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/regs.h"
#include "libtrace/state/xstate.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/relocate.h"
#include "libtrace/tracee/tracee.h"

/* A step costs some 20 us: so many are taken at most, these for the best place
 * that there is. */
#define STEPS_MAX 12
#define STEPS_BEST 8
/* Code on both sides of a place in which it is looked for branches. */
#define AROUND 96u

/* A stop that has not come by then will not. */
#define LOST_NS UINT64_C(20000000)

/* What is said of a place by how a probe can be there: as a breakpoint that
 * stops the task at every pass, as a jump over instructions that others come to,
 * which would trap each time, as a jump. */
enum place { STOPS, ENTERED, GOOD };

static enum place place_at(const struct task *t, uint64_t ip)
{
	uint8_t code[2 * AROUND];
	struct tr_relocated moved;
	struct tr_error err;
	size_t at = AROUND;
	size_t n = tr_memory_read_some(t->tid, ip - at, code, sizeof code);

	if (n <= at) { /* at the beginning of a mapping */
		at = 0;
		n = tr_memory_read_some(t->tid, ip, code, sizeof code);
	}
	if (tr_relocate(code + at, n - at < TR_RELOCATE_MAX ? n - at
							    : TR_RELOCATE_MAX,
			ip, TR_JUMP, ip, 0, &moved, &err) < 0)
		return STOPS;
	return moved.straight < TR_JUMP ||
	       tr_branched_into(code, n, at, moved.taken) ? ENTERED : GOOD;
}

/* At a system call, or at a breakpoint of the recorder's, or already behind
 * one, with its signal still to come. */
bool rec_at_an_event(const struct task *t, uint64_t ip)
{
	const struct tr_patches *ps = &t->as->patches;
	uint8_t code[2];

	for (size_t i = 0; i < ps->n; i++)
		if (ps->p[i].addr == ip || ps->p[i].addr == ip - 1)
			return true;
	if (tr_calls_lead_in(&t->as->calls, ip))
		return true;
	return tr_memory_read(t->tid, ip, code, sizeof code) == 0 &&
	       code[0] == 0x0f && code[1] == 0x05;
}

/*
 * Let it trap, and say whether it may.  The kernel would end the blocking or
 * ignoring of SIGTRAP by a trap (force_sig_info_to_task in kernel/signal.c):
 * a mask can be put back, but not what is ignored.
 */
bool rec_allow_traps(const struct task *t, uint64_t *mask)
{
	const uint64_t trap = (uint64_t)1 << (SIGTRAP - 1);

	if (rec_ignores(t, SIGTRAP) ||
	    tr_tracee_get_sigmask(t->tid, mask) < 0)
		return false;
	return !(*mask & trap) ||
	       tr_tracee_set_sigmask(t->tid, *mask & ~trap) == 0;
}

void rec_forbid_traps(const struct task *t, uint64_t mask)
{
	if (mask >> (SIGTRAP - 1) & 1 &&
	    tr_tracee_set_sigmask(t->tid, mask) < 0)
		return; /* SIGKILL took it */
}

bool rec_still_computes(struct recorder *r, struct task *t, int status)
{
	if (!WIFSTOPPED(status) || tr_stopped_by_syscall(status))
		return false;
	if (tr_stop_event(status) == 0)
		return rec_signal_keep(r, t, WSTOPSIG(status));
	if (tr_stop_event(status) != PTRACE_EVENT_STOP ||
	    WSTOPSIG(status) != SIGTRAP)
		return false;
	rec_calls_drain(r, t);
	return true;
}

bool rec_step(struct recorder *r, struct task *t, uint64_t mask)
{
	siginfo_t si;
	int status;

	do {
		rec_resume(t, TR_RESUME_STEP, 0);
		if (tr_tracee_wait(t->tid, &status, 0) < 0)
			return false;
		if (status >> 8 == SIGTRAP &&
		    tr_tracee_get_siginfo(t->tid, &si) == 0 &&
		    si.si_code == TRAP_TRACE)
			return true;
	} while (rec_still_computes(r, t, status));
	rec_forbid_traps(t, mask);
	rec_dispatch(r, t, status);
	return false;
}

/*
 * Take the task to a place where replay can stop it cheaply, or as near as it
 * gets.  One step is needed in any case: the task may have been stopped in the
 * middle of an instruction, after the page fault of a store that has yet to be
 * made, with a page of its own that is not written yet.
 */
static bool step_to_place(struct recorder *r, struct task *t,
			  struct tr_regs *regs, uint64_t mask)
{
	for (int n = 0; n < STEPS_MAX; n++) {
		if (rec_at_an_event(t, regs->rip))
			break;
		if (n > 0 && place_at(t, regs->rip) >=
			     (n < STEPS_BEST ? GOOD : ENTERED))
			return true;
		if (!rec_step(r, t, mask) || tr_tracee_get_regs(t->tid, regs) < 0)
			return false;
	}
	if (!rec_at_an_event(t, regs->rip))
		return true;
	/* What waits for the task comes then, or later. */
	rec_forbid_traps(t, mask);
	rec_calls_trace_next(t);
	rec_resume(t, TR_RESUME_CONT, 0);
	return false;
}

static bool settle(struct recorder *r, struct task *t, struct tr_regs *regs)
{
	uint64_t mask;

	if (tr_tracee_get_regs(t->tid, regs) < 0)
		return false;
	if (!rec_allow_traps(t, &mask))
		return true;
	if (!step_to_place(r, t, regs, mask))
		return false;
	rec_forbid_traps(t, mask);
	return true;
}

/*
 * Every signal that stops the task before it executes an instruction comes at
 * this point, too.  The kernel keeps orig_rax until then, so it serves as a
 * mark, as at the exit of a system call: see tr_at_call_boundary.  Where rax
 * would look like the result of a call that is to be restarted, there is no
 * mark, and the signal has to wait for another point.
 */
static void mark_point(struct task *t, struct tr_regs *regs)
{
	bool restarts = (int64_t)regs->rax <= -512 &&
			(int64_t)regs->rax >= -516;

	regs->eflags &= ~TR_EFLAGS_RF;
	if (!restarts)
		regs->orig_rax = 0;
	if (tr_tracee_set_regs(t->tid, regs) < 0)
		return; /* SIGKILL took it */
}

/* It stops again when the call that it makes in injected code is over. */
static bool expelled(struct task *t, enum tr_async reason, struct tr_regs *regs)
{
	if (!tr_calls_hold(regs->rip))
		return false;
	t->yields = reason == TR_ASYNC_PREEMPT;
	rec_calls_expel(t, regs);
	return true;
}

/* A point that is being recorded. */
struct point {
	enum tr_async reason;
	bool digest;             /* of the memory: to be sure */
	struct rec_words *seen;  /* words of memory to compare: these, */
	const struct tr_ranges *words; /* or these, and the stack */
	uint64_t began;
};

static void take_words(struct recorder *r, const struct task *t,
		       const struct point *p, struct tr_event *ev)
{
	struct tr_ranges words = {0};

	for (size_t i = 0; p->words && i < p->words->n; i++) {
		TR_GROW(words.r, words.n, words.cap);
		words.r[words.n++] = p->words->r[i];
	}
	rec_words_take(t, p->seen, &ev->regs, &words);
	rec_read_ranges(r, t, &words, ev);
	tr_ranges_release(&words);
}

static bool record_state(struct recorder *r, struct task *t,
			 const struct point *p)
{
	struct tr_event ev = rec_event(TR_EV_ASYNC, t);
	uint8_t xstate[TR_MAX_XSTATE];
	size_t xlen = sizeof xstate;
	uint64_t root;

	t->as->points = true;
	if (!settle(r, t, &ev.regs))
		return false;
	mark_point(t, &ev.regs);
	/* Nobody will look for it. */
	if (t->as->stopped)
		return true;
	tr_event_mark(&ev, TR_F_REGS);
	if (tr_tracee_get_xstate(t->tid, xstate, &xlen) < 0)
		return false;
	tr_event_set(&ev, TR_F_VECTOR, tr_xstate_digest(xstate, xlen));
	if (p->digest && rec_point_digest(r, t, &root))
		tr_event_set(&ev, TR_F_ROOT, root);
	take_words(r, t, p, &ev);
	tr_event_set(&ev, TR_F_REASON, p->reason);
	tr_event_set(&ev, TR_F_DURATION, tr_now_ns() - p->began);
	rec_emit(r, &ev);
	return true;
}

bool rec_record_wait(struct recorder *r, struct task *t,
		     const struct tr_ranges *words, bool exact, uint64_t began)
{
	const struct point p = {.reason = TR_ASYNC_SPIN, .digest = !exact,
				.words = words, .began = began};

	return record_state(r, t, &p);
}

bool rec_record_point(struct recorder *r, struct task *t, enum tr_async reason)
{
	struct point p = {.reason = reason, .digest = true,
			  .began = tr_now_ns()};
	struct tr_regs regs;
	bool recorded;

	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return false;
	if (tr_at_call_boundary(&regs))
		return true;
	if (t->as->stopped)
		return record_state(r, t, &p);
	recorded = rec_words_watch(r, t, &p.seen) &&
		   tr_tracee_get_regs(t->tid, &regs) == 0 &&
		   !expelled(t, reason, &regs) &&
		   record_state(r, t, &p);
	rec_words_free(p.seen);
	return recorded;
}

static enum tr_async reason_of(const struct task *t)
{
	if (t->force)
		return TR_ASYNC_SIGNAL;
	return t->as->domain->first ? TR_ASYNC_PREEMPT : TR_ASYNC_SAMPLE;
}

void rec_interrupt(struct task *t)
{
	t->interrupting = tr_now_ns();
	t->spin.looking = false;
	rec_resume(t, TR_RESUME_INTERRUPT, 0);
}

/* The stop may have come while the task made a call for the engine, which
 * passes it by (tr_batch_run): then it is asked for again. */
bool rec_is_interrupting(const struct task *t)
{
	return t->put_off || (t->interrupting &&
			      tr_now_ns() - t->interrupting < LOST_NS);
}

void rec_interrupted(struct recorder *r, struct task *t)
{
	enum tr_async reason = reason_of(t);
	bool look = t->spin.looking && !t->force;
	struct tr_regs regs;

	t->force = t->spin.looking = false;
	if (look) {
		rec_spin_look(r, t);
		return;
	}
	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return;
	if (expelled(t, reason, &regs))
		return;
	if (!rec_record_point(r, t, reason))
		return;
	if (reason == TR_ASYNC_SIGNAL)
		rec_release_held(t);
	t->yields = reason == TR_ASYNC_PREEMPT;
	rec_run(r, t, TR_RESUME_CONT, 0);
}
