/*
 * Signals and trapped instructions.
 *
 * A signal is given to the program only where replay can find the place
 * again: at a fault it caused itself, or at the exit of a system call before
 * any further instruction.  A signal that arrives elsewhere is held and sent
 * again when the next call begins, as if it had arrived then.  When none
 * begins in time, the task is stopped at a point of its computation that is
 * recorded (async.c), and the signal sent there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

enum disposition { DISP_HANDLER, DISP_IGNORED, DISP_FATAL, DISP_STOP };

static bool in_mask(const char *status, const char *field, int sig)
{
	const char *p = strstr(status, field);
	uint64_t mask = p ? strtoull(p + strlen(field), NULL, 16) : 0;

	return mask >> (sig - 1) & 1;
}

static bool read_status(pid_t tid, struct tr_buf *b)
{
	TR_AUTOFREE char *path = tr_printf("/proc/%d/status", (int)tid);
	struct tr_error err;

	if (tr_read_file(-1, path, 1u << 16, b, &err) < 0)
		return false;
	tr_buf_put_u8(b, '\0');
	return true;
}

/* A handler, or somebody who takes it while it is blocked. */
static bool notices(pid_t tid, int sig)
{
	TR_AUTOBUF struct tr_buf b = {0};

	return read_status(tid, &b) &&
	       (in_mask((char *)b.data, "SigCgt:\t", sig) ||
		in_mask((char *)b.data, "SigBlk:\t", sig));
}

bool rec_handles(const struct task *t, int sig)
{
	TR_AUTOBUF struct tr_buf b = {0};

	return read_status(t->tid, &b) &&
	       in_mask((char *)b.data, "SigCgt:\t", sig);
}

bool rec_ignores(const struct task *t, int sig)
{
	TR_AUTOBUF struct tr_buf b = {0};

	return read_status(t->tid, &b) &&
	       in_mask((char *)b.data, "SigIgn:\t", sig);
}

static bool stops(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN ||
	       sig == SIGTTOU;
}

/* What the program has asked to happen, from /proc/TID/status. */
static enum disposition disposition_of(pid_t tid, int sig)
{
	TR_AUTOBUF struct tr_buf b = {0};

	if (read_status(tid, &b)) {
		if (in_mask((char *)b.data, "SigCgt:\t", sig))
			return DISP_HANDLER;
		if (in_mask((char *)b.data, "SigIgn:\t", sig))
			return DISP_IGNORED;
	}
	switch (sig) {
	case SIGCHLD: case SIGCONT: case SIGURG: case SIGWINCH:
		return DISP_IGNORED;
	default:
		return stops(sig) ? DISP_STOP : DISP_FATAL;
	}
}

static struct tr_event signal_event(const struct task *t, int sig,
				    const siginfo_t *si,
				    enum tr_sig_action action)
{
	struct tr_event ev = rec_event(TR_EV_SIGNAL, t);

	tr_event_set(&ev, TR_F_SIGNO, (uint64_t)sig);
	tr_event_set(&ev, TR_F_ACTION, action);
	if (t->passed)
		tr_event_set(&ev, TR_F_PLACE, TR_PLACE_HERE);
	ev.siginfo = (struct tr_bytes){si, sizeof *si};
	tr_event_mark(&ev, TR_F_SIGINFO);
	return ev;
}

static void set_regs(struct tr_event *ev, const struct tr_regs *regs)
{
	ev->regs = *regs;
	tr_event_mark(ev, TR_F_REGS);
}

/* Let the kernel push the frame: the step ends at the handler's first
 * instruction, before it runs (signal_setup_done in kernel/signal.c). */
static void enter_handler(struct recorder *r, struct task *t)
{
	if (t->in_call)
		rec_call_finish_interrupted(r, t);
	if (tr_tracee_get_regs(t->tid, &t->delivering_regs) < 0)
		return;
	t->delivering = t->entering;
	rec_resume(t, TR_RESUME_STEP, t->delivering);
}

static void deliver(struct recorder *r, struct task *t, int sig,
		    const siginfo_t *si, const struct tr_regs *regs,
		    enum disposition disposition, bool exact)
{
	struct tr_event ev;

	switch (disposition) {
	case DISP_HANDLER:
		t->entering = sig;
		t->delivering_info = *si;
		rec_await_turn(r, t, enter_handler);
		return;
	case DISP_IGNORED:
		if (!t->in_call) {
			rec_go_on(r, t, sig);
			return;
		}
		break; /* back into the kernel, which restarts the call */
	case DISP_FATAL:
		if (t->in_call)
			rec_call_record_entry(r, t);
		ev = signal_event(t, sig, si, TR_SIG_FATAL);
		if (exact && !t->in_call)
			set_regs(&ev, regs);
		rec_emit(r, &ev);
		break;
	case DISP_STOP:
		ev = signal_event(t, sig, si, TR_SIG_NONE);
		rec_emit(r, &ev);
		break;
	}
	rec_resume(t, TR_RESUME_CONT, sig);
}

/*
 * The bytes of a signal frame (arch/x86/include/asm/sigframe.h): return
 * address, ucontext and siginfo at the new stack pointer, and above them the
 * XSAVE area that uc_mcontext.fpregs points to, whose software-reserved bytes
 * give its whole size (struct _fpx_sw_bytes).
 */
static struct tr_range frame_range(const struct task *t, uint64_t rsp)
{
	struct tr_range rg = {.addr = rsp,
			      .len = 8 + sizeof(ucontext_t) + sizeof(siginfo_t)};
	uint64_t fp;
	uint32_t sw[2];

	if (tr_memory_read(t->tid, rsp + 8 + offsetof(ucontext_t,
						      uc_mcontext.fpregs),
			   &fp, sizeof fp) < 0 || fp <= rsp ||
	    fp - rsp > TR_MAX_XSTATE ||
	    tr_memory_read(t->tid, fp + 464, sw, sizeof sw) < 0)
		return rg;
	rg.len = fp - rsp + (sw[0] == 0x46505853 && sw[1] <= TR_MAX_XSTATE
			     ? sw[1] : 512);
	return rg;
}

static void handler_entered(struct recorder *r, struct task *t)
{
	struct tr_event ev = signal_event(t, t->delivering, &t->delivering_info,
					  TR_SIG_HANDLER);
	uint8_t xstate[TR_MAX_XSTATE];
	size_t xlen = sizeof xstate;
	struct tr_range rg;
	struct tr_ranges frame = {&rg, 1, 1};

	t->delivering = 0;
	rec_forced_mask(t);
	set_regs(&ev, &t->delivering_regs);
	if (tr_tracee_get_regs(t->tid, &ev.regs_after) < 0 ||
	    tr_tracee_get_xstate(t->tid, xstate, &xlen) < 0)
		return;
	tr_event_mark(&ev, TR_F_REGS_AFTER);
	ev.xstate = (struct tr_bytes){xstate, xlen};
	tr_event_mark(&ev, TR_F_XSTATE);
	rg = frame_range(t, ev.regs_after.rsp);
	rec_read_ranges(r, t, &frame, &ev);
	rec_emit(r, &ev);
	if (!rec_traced_handler(r, t))
		rec_run(r, t, TR_RESUME_CONT, 0);
}

/* With --portable the program is told of a lesser processor. */
static void execute_insn(const struct recorder *r, const struct tr_site *site,
			 struct tr_regs *regs)
{
	uint32_t leaf = (uint32_t)regs->rax, subleaf = (uint32_t)regs->rcx;
	uint32_t v[4];

	tr_insn_execute(site, regs);
	if (site->insn != TR_INSN_CPUID || r->cpu_level == TR_CPU_ALL)
		return;
	v[0] = (uint32_t)regs->rax;
	v[1] = (uint32_t)regs->rbx;
	v[2] = (uint32_t)regs->rcx;
	v[3] = (uint32_t)regs->rdx;
	tr_cpu_restrict(r->cpu_level, leaf, subleaf, v);
	regs->rax = v[0];
	regs->rbx = v[1];
	regs->rcx = v[2];
	regs->rdx = v[3];
}

static void trapped_insn(struct recorder *r, struct task *t, int sig,
			 struct tr_regs *regs, const struct tr_site *site)
{
	struct tr_event ev = rec_event(TR_EV_INSN, t);
	uint64_t at = regs->rip;
	struct tr_way way;
	bool patched;

	set_regs(&ev, regs);
	/* An XSAVEC goes on where it is: there will be a jump, or it again. */
	if (site->insn != TR_INSN_XSAVEC)
		execute_insn(r, site, regs);
	ev.regs_after = *regs;
	tr_event_mark(&ev, TR_F_REGS_AFTER);
	tr_event_set(&ev, TR_F_INSN, site->insn);
	tr_event_set(&ev, TR_F_LENGTH, site->length);
	if (tr_tracee_set_regs(t->tid, regs) < 0)
		return;
	rec_forced_restore(t, sig);
	patched = rec_calls_patch_insn(r, t, at, site, &way);
	if (patched)
		rec_calls_tell_way(&ev, &way);
	else if (site->insn == TR_INSN_XSAVEC)
		tr_patches_remove(t->tid, &t->as->patches, at);
	rec_emit(r, &ev);
	if (patched)
		tr_known_learn(&r->known, &t->as->calls, at);
	if (!rec_traced_insn(r, t))
		rec_run(r, t, TR_RESUME_CONT, 0);
}

/* A signal sent again by rec_release_held arrives: give it its own siginfo.
 * True when the task's tracer has let it through before. */
static bool restore_info(struct task *t, int sig, siginfo_t *si)
{
	bool passed;

	for (size_t i = 0; i < t->nheld; i++) {
		if (!t->held[i].queued || t->held[i].info.si_signo != sig)
			continue;
		*si = t->held[i].info;
		passed = t->held[i].passed;
		memmove(&t->held[i], &t->held[i + 1],
			(--t->nheld - i) * sizeof *t->held);
		if (tr_tracee_set_siginfo(t->tid, si) < 0)
			return false;
		return passed;
	}
	return false;
}

/* SIGCHLD from rec_send_sigchld arrives: give it what it is about. */
static void restore_told(struct recorder *r, const struct task *t, int sig,
			 siginfo_t *si)
{
	struct task *o = r->tasks;

	if (sig != SIGCHLD || si->si_code != SI_QUEUE ||
	    si->si_pid != getpid())
		return;
	while (o && !(o->pid == t->pid && o->telling))
		o = o->next;
	if (!o)
		return;
	*si = o->told;
	o->telling = false;
	if (tr_tracee_set_siginfo(t->tid, si) < 0)
		return;
}

static void keep(struct recorder *r, struct task *t, const siginfo_t *si)
{
	TR_GROW(t->held, t->nheld, t->held_cap);
	t->held[t->nheld++] = (struct held_signal){
		.info = *si, .since = tr_now_ns(), .passed = t->passed};
	r->hurry = true;
}

static void hold(struct recorder *r, struct task *t, const siginfo_t *si)
{
	keep(r, t, si);
	rec_calls_trace_next(t);
	rec_go_on(r, t, 0); /* it keeps its turn */
}

/* SIGCONT takes back the stopping signals that wait (signal(7)). */
static void continued(struct recorder *r, const struct task *t)
{
	for (struct task *o = r->tasks; o; o = o->next) {
		size_t kept = 0;

		for (size_t i = 0; o->pid == t->pid && i < o->nheld; i++)
			if (o->held[i].queued ||
			    !stops(o->held[i].info.si_signo))
				o->held[kept++] = o->held[i];
		if (o->pid == t->pid)
			o->nheld = kept;
	}
}

/* Can others see how far the task had come when the signal took effect? */
static bool must_be_exact(const struct task *t, enum disposition disposition)
{
	if (t->vt && !t->passed)
		return true; /* its tracer is told of every signal */
	return disposition == DISP_HANDLER ||
	       (disposition != DISP_IGNORED && !rec_is_alone(t->as->domain));
}

/*
 * A breakpoint of ours that raised no signal, because one that the program blocks
 * waited already: the kernel has unblocked it for the trap, and dropped the
 * trap's own (force_sig_info_to_task, legacy_queue in kernel/signal.c).  No
 * program can stand behind the first byte of these instructions.
 */
static bool hides_trap(const struct task *t, const struct tr_regs *regs)
{
	struct tr_regs ignored = *regs;

	return tr_patches_hold(&t->as->patches, regs->rip - 1) ||
	       tr_calls_trapped(&t->as->calls, &ignored);
}

void rec_signal_stop(struct recorder *r, struct task *t, int sig)
{
	struct tr_regs regs;
	struct tr_site site;
	siginfo_t si;
	enum disposition disposition;
	bool boundary;

	if (t->delivering && sig == SIGTRAP) {
		handler_entered(r, t);
		return;
	}
	t->delivering = 0; /* the frame could not be pushed: SIGSEGV instead */
	if (tr_tracee_get_siginfo(t->tid, &si) < 0 ||
	    tr_tracee_get_regs(t->tid, &regs) < 0)
		return;
	if (sig == SIGTRAP && si.si_code <= 0 && hides_trap(t, &regs)) {
		keep(r, t, &si);
		rec_calls_trace_next(t);
		si = (siginfo_t){.si_signo = SIGTRAP, .si_code = SI_KERNEL};
	}
	if (sig == SIGTRAP && si.si_code == SI_KERNEL)
		tr_calls_trapped(&t->as->calls, &regs);
	if (tr_trapped_insn(t->tid, sig, si.si_code, &regs, &t->as->patches,
			    &site)) {
		trapped_insn(r, t, sig, &regs, &site);
		return;
	}
	if (rec_calls_fault(r, t, sig, si.si_code, &regs))
		return;
	restore_told(r, t, sig, &si);
	t->passed = restore_info(t, sig, &si);
	boundary = tr_signal_is_fault(sig, si.si_code) ||
		   (tr_at_call_boundary(&regs) && !tr_calls_hold(regs.rip));
	disposition = disposition_of(t->tid, sig);
	if (sig == SIGCONT)
		continued(r, t);
	if (tr_calls_hold(regs.rip) && must_be_exact(t, disposition)) {
		keep(r, t, &si);
		rec_calls_expel(t, &regs);
		return;
	}
	if (!boundary && must_be_exact(t, disposition))
		hold(r, t, &si);
	else if (t->passed || !rec_traced_signal(r, t, sig, &si, boundary))
		deliver(r, t, sig, &si, &regs, disposition, boundary);
}

bool rec_signal_keep(struct recorder *r, struct task *t, int sig)
{
	siginfo_t si;

	if (t->delivering || sig == SIGCONT ||
	    tr_tracee_get_siginfo(t->tid, &si) < 0 ||
	    tr_signal_is_fault(sig, si.si_code) ||
	    !must_be_exact(t, disposition_of(t->tid, sig)))
		return false;
	restore_told(r, t, sig, &si);
	t->passed = restore_info(t, sig, &si);
	keep(r, t, &si);
	rec_calls_trace_next(t);
	return true;
}

void rec_signal_pass(struct recorder *r, struct task *t, const siginfo_t *si,
		     bool exact)
{
	enum disposition disposition = disposition_of(t->tid, si->si_signo);
	struct tr_regs regs;

	t->passed = true;
	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return;
	if (!exact && must_be_exact(t, disposition))
		hold(r, t, si);
	else
		deliver(r, t, si->si_signo, si, &regs, disposition, exact);
}

void rec_send_sigchld(struct recorder *r, const struct task *tracer,
		      const siginfo_t *si)
{
	siginfo_t own = {.si_signo = SIGCHLD, .si_code = SI_QUEUE};
	struct task *o = r->tasks;

	while (o && o->pid != tracer->pid)
		o = o->next;
	if (!o || !notices(tracer->tid, SIGCHLD))
		return;
	if (!o->telling)
		o->told = *si;
	o->telling = true;
	/* Only the kernel may send what SIGCHLD says of a child. */
	own.si_pid = getpid();
	syscall(SYS_rt_sigqueueinfo, tracer->pid, SIGCHLD, &own);
}

void rec_release_held(struct task *t)
{
	for (size_t i = 0; i < t->nheld; i++) {
		if (t->held[i].queued)
			continue;
		t->held[i].queued = true;
		syscall(SYS_tgkill, t->pid, t->tid, t->held[i].info.si_signo);
	}
}

void rec_force_overdue(struct recorder *r)
{
	uint64_t now = tr_now_ns();

	for (struct task *t = r->tasks; t; t = t->next) {
		if (!t->nheld || t->in_call || t->held[0].queued ||
		    t->queued || rec_is_interrupting(t) ||
		    now - t->held[0].since < r->options->max_defer_ns)
			continue;
		t->force = true;
		rec_interrupt(t);
	}
}

bool rec_signals_waiting(const struct recorder *r)
{
	for (const struct task *t = r->tasks; t; t = t->next)
		if (t->nheld && !t->held[0].queued)
			return true;
	return false;
}
