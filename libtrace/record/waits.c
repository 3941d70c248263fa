/*
 * wait4(2) and waitid(2) of tracers.
 *
 * The kernel knows the caller's children, the recorder its tracees.  A stop of
 * a tracee is told at the call's entry, in the kernel's place, when there is
 * one; otherwise the kernel is asked, and the call is interrupted when a stop
 * comes.  A caller without children waits in pause(2).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/ptrace.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

#define ERESTARTSYS 512

/* What a call waits for. */
struct wait {
	idtype_t type;
	pid_t id;
	int options;
	uint64_t status, info, rusage; /* where the caller wants them */
};

bool rec_is_wait(const struct task *t)
{
	return t->fl.call.nr == SYS_wait4 || t->fl.call.nr == SYS_waitid;
}

/* The process a pidfd names, from /proc/PID/fdinfo. */
static pid_t pidfd_process(const struct task *t, int fd)
{
	TR_AUTOFREE char *path = tr_printf("/proc/%d/fdinfo/%d", (int)t->tid,
					   fd);
	TR_AUTOFCLOSE FILE *f = fopen(path, "re");
	char line[128];
	int pid = -1;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	return pid;
}

static struct wait wait_of(const struct task *t)
{
	const uint64_t *a = t->fl.call.args;
	pid_t pid = (pid_t)a[0];

	if (t->fl.call.nr == SYS_waitid) {
		struct wait w = {.type = (idtype_t)a[0], .id = (pid_t)a[1],
				 .options = (int)a[3], .info = a[2],
				 .rusage = a[4]};

		if (w.type == P_PIDFD) {
			w.type = P_PID;
			w.id = pidfd_process(t, (int)a[1]);
		} else if (w.type == P_PGID && w.id == 0) {
			w.id = getpgid(t->pid);
		}
		return w;
	}
	return (struct wait){
		.type = pid > 0 ? P_PID : pid == -1 ? P_ALL : P_PGID,
		.id = pid > 0 ? pid : pid == 0 ? getpgid(t->pid) : -pid,
		.options = (int)a[2] | WEXITED, .status = a[1], .rusage = a[3],
	};
}

static bool wants(const struct wait *w, pid_t tid, pid_t pgid)
{
	switch (w->type) {
	case P_ALL:
		return true;
	case P_PID:
		return tid == w->id;
	default:
		return pgid == w->id;
	}
}

/* Is o a tracee that the caller's process may wait for? */
static bool is_tracee(const struct task *t, const struct wait *w,
		      const struct task *o)
{
	if (!o->vt || o->vt->tracer->pid != t->pid ||
	    (w->options & __WNOTHREAD && o->vt->tracer != t))
		return false;
	return wants(w, o->tid, w->type == P_PGID ? getpgid(o->pid) : 0);
}

/* Tell of a change: the status as wait4 gives it. */
static int64_t tell(struct task *t, const struct wait *w, pid_t tid, int status)
{
	static const struct rusage none;
	siginfo_t si = {.si_signo = SIGCHLD};
	int failed = 0;

	si.si_pid = tid;
	if (WIFSTOPPED(status)) {
		si.si_code = CLD_TRAPPED;
		si.si_status = status >> 8;
	} else if (WIFSIGNALED(status)) {
		si.si_code = WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED;
		si.si_status = WTERMSIG(status);
	} else {
		si.si_code = CLD_EXITED;
		si.si_status = WEXITSTATUS(status);
	}
	if (w->status)
		failed |= tr_memory_write(t->tid, w->status, &status,
					  sizeof status);
	if (w->info)
		failed |= tr_memory_write(t->tid, w->info, &si, sizeof si);
	if (w->rusage)
		failed |= tr_memory_write(t->tid, w->rusage, &none,
					  sizeof none);
	if (failed)
		return -EFAULT;
	return t->fl.call.nr == SYS_waitid ? 0 : tid;
}

bool rec_wait_answer(struct recorder *r, struct task *t, int64_t *result)
{
	const struct wait w = wait_of(t);

	for (struct task *o = r->tasks; o; o = o->next) {
		if (!is_tracee(t, &w, o) || !o->vt->stopped || o->vt->reported ||
		    o->vt->listening)
			continue;
		o->vt->reported = !(w.options & WNOWAIT);
		*result = tell(t, &w, o->tid, o->vt->status);
		return true;
	}
	for (size_t i = 0; i < r->ndeaths; i++) {
		struct death d = r->deaths[i];

		if (d.tracer != t->pid || !(w.options & WEXITED) ||
		    !wants(&w, d.tid, d.pgid))
			continue;
		if (!(w.options & WNOWAIT))
			r->deaths[i] = r->deaths[--r->ndeaths];
		*result = tell(t, &w, d.tid, d.status);
		return true;
	}
	return false;
}

static bool has_tracees(const struct recorder *r, const struct task *t,
			const struct wait *w)
{
	for (const struct task *o = r->tasks; o; o = o->next)
		if (is_tracee(t, w, o))
			return true;
	return false;
}

/* Back into the kernel, with this call. */
static void call_again(struct task *t, uint64_t nr)
{
	struct tr_regs regs = t->fl.entry;

	regs.rip -= 2; /* the syscall instruction */
	regs.rax = nr;
	regs.orig_rax = (uint64_t)-1;
	t->fl.interrupted = t->fl.again = true;
	t->fl.pausing = nr == SYS_pause;
	if (tr_tracee_set_regs(t->tid, &regs) == 0)
		rec_resume(t, TR_RESUME_CONT, 0); /* to the filter's stop */
}

/* The kernel told of a stop of a task that the recorder holds for this one,
 * as the group-stop it also is: once is enough. */
static bool told_twice(const struct recorder *r, const struct task *t,
		       const struct wait *w, int64_t result)
{
	int status = 0;

	if (result <= 0 || !w->status ||
	    tr_memory_read(t->tid, w->status, &status, sizeof status) < 0 ||
	    !WIFSTOPPED(status))
		return false;
	for (const struct task *o = r->tasks; o; o = o->next)
		if (o->tid == result && is_tracee(t, w, o))
			return true;
	return false;
}

static void set_result(struct task *t, struct tr_regs *regs, int64_t result)
{
	*regs = tr_regs_after_call(&t->fl.entry, result);
	regs->orig_rax = t->fl.call.nr;
	if (tr_tracee_set_regs(t->tid, regs) < 0)
		return; /* SIGKILL took it */
}

/* Has the kernel nothing to tell?  waitid(2) says so with a process id of 0. */
static bool tells_nothing(const struct task *t, const struct wait *w,
			  int64_t result)
{
	siginfo_t si = {.si_signo = 0};

	if (rec_is_restart(result) || result == -ECHILD)
		return true;
	if (result != 0 || !(w->options & WNOHANG))
		return false;
	return !w->info || (tr_memory_read(t->tid, w->info, &si, sizeof si) == 0
			    && si.si_pid == 0);
}

bool rec_wait_exit(struct recorder *r, struct task *t, struct tr_regs *regs)
{
	const struct wait w = wait_of(t);
	int64_t result = (int64_t)regs->rax, told;
	bool nothing = tells_nothing(t, &w, result);

	if (t->fl.answered)
		return false;
	if (nothing && rec_wait_answer(r, t, &told)) {
		t->fl.answered = true;
		set_result(t, regs, told);
		return false;
	}
	if (t->fl.pausing && rec_is_restart(result)) {
		/* A signal: as if wait itself had been interrupted. */
		t->fl.pausing = false;
		set_result(t, regs, -ERESTARTSYS);
		return false;
	}
	if (told_twice(r, t, &w, result)) {
		call_again(t, t->fl.call.nr);
		return true;
	}
	if (result != -ECHILD || !has_tracees(r, t, &w))
		return false;
	if (w.options & WNOHANG) {
		t->fl.answered = true;
		set_result(t, regs, 0);
		return false;
	}
	call_again(t, SYS_pause);
	return true;
}

void rec_wait_wake(struct recorder *r, const struct task *tracer)
{
	for (struct task *o = r->tasks; o; o = o->next)
		if (o->pid == tracer->pid && o->in_call && rec_is_wait(o) &&
		    !o->fl.answered)
			rec_resume(o, TR_RESUME_INTERRUPT, 0);
}

void rec_wait_death(struct recorder *r, struct task *t, int status)
{
	const struct task *tracer = t->vt->tracer, *parent;
	siginfo_t si = {.si_signo = SIGCHLD};

	/* The kernel itself tells of a process its parent traces. */
	parent = t->tid == t->pid ? rec_real_parent(r, t) : NULL;
	if (parent && parent->pid == tracer->pid)
		return;
	TR_GROW(r->deaths, r->ndeaths, r->deaths_cap);
	r->deaths[r->ndeaths++] = (struct death){
		tracer->pid, t->tid, getpgid(tracer->pid), status};
	si.si_pid = t->tid;
	si.si_code = WIFEXITED(status) ? CLD_EXITED : CLD_KILLED;
	si.si_status = WIFEXITED(status) ? WEXITSTATUS(status)
					 : WTERMSIG(status);
	rec_send_sigchld(r, tracer, &si);
	rec_wait_wake(r, tracer);
}

void rec_wait_forget(struct recorder *r, pid_t tracer)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->ndeaths; i++)
		if (r->deaths[i].tracer != tracer)
			r->deaths[kept++] = r->deaths[i];
	r->ndeaths = kept;
}
