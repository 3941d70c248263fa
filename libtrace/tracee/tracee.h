/*
 * Traced tasks: the only callers of ptrace(2).
 *
 * Functions that return int give 0, or -1 with errno set.  ESRCH means that
 * the task is not stopped any more, which for a task that was stopped means
 * that SIGKILL ended it: the caller goes on and waits for its death.
 */
#ifndef TR_TRACEE_TRACEE_H
#define TR_TRACEE_TRACEE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"

/* PTRACE_SEIZE with everything the engine needs to see, for recording the
 * filter's verdicts and ends, too; the task dies with us. */
int tr_tracee_seize(pid_t tid, bool recording) TR_MUST_CHECK;

int tr_tracee_get_regs(pid_t tid, struct tr_regs *regs) TR_MUST_CHECK;
int tr_tracee_set_regs(pid_t tid, const struct tr_regs *regs) TR_MUST_CHECK;

/* The XSAVE image in standard format; *len is the buffer's size, then the
 * image's.  A buffer of TR_MAX_XSTATE always suffices. */
int tr_tracee_get_xstate(pid_t tid, void *buf, size_t *len) TR_MUST_CHECK;
int tr_tracee_set_xstate(pid_t tid, const void *buf, size_t len) TR_MUST_CHECK;
/* Bytes of the XSAVE image on this machine (CPUID leaf 0xd). */
size_t tr_xstate_size(void);

/* A request of a program's own tracer, passed on as ptrace(2) has it: 0 or a
 * count, or -1 with errno. */
long tr_tracee_request(pid_t tid, long request, uint64_t addr, void *data);

int tr_tracee_get_siginfo(pid_t tid, siginfo_t *si) TR_MUST_CHECK;
int tr_tracee_set_siginfo(pid_t tid, const siginfo_t *si) TR_MUST_CHECK;
int tr_tracee_get_sigmask(pid_t tid, uint64_t *mask) TR_MUST_CHECK;
int tr_tracee_set_sigmask(pid_t tid, uint64_t mask) TR_MUST_CHECK;
/* The message of a PTRACE_EVENT stop: the new task's id. */
int tr_tracee_event_msg(pid_t tid, unsigned long *msg) TR_MUST_CHECK;

enum tr_resume {
	TR_RESUME_CONT,    /* to the next event */
	TR_RESUME_SYSCALL, /* to the next syscall entry or exit as well */
	TR_RESUME_STEP,    /* one instruction, or to a handler's entry */
	TR_RESUME_LISTEN,  /* stay in group-stop, but report its end */
	TR_RESUME_INTERRUPT, /* make a running task stop */
};
int tr_tracee_resume(pid_t tid, enum tr_resume how, int sig) TR_MUST_CHECK;

/* SIGKILL has moved the task on from the stop it was seen in: its stop before
 * it ends, or its death, is there to be waited for.  To resume it now would
 * take that stop for the other, and nobody would be told of it. */
bool tr_tracee_was_killed(pid_t tid);

/*
 * Wait for one task's next stop or death.  Gives up with ETIMEDOUT when
 * nothing happened for timeout_ns (0: never gives up).  SIGCHLD must be
 * blocked in the calling thread and not ignored.
 */
int tr_tracee_wait(pid_t tid, int *status, uint64_t timeout_ns) TR_MUST_CHECK;

/* Was the signal raised by the task's own instruction, at a place that replay
 * reaches by itself? */
bool tr_signal_is_fault(int sig, int si_code);

/* What a wait status says. */
static inline bool tr_stopped_by_syscall(int status)
{
	return status >> 8 == (SIGTRAP | 0x80);
}

static inline int tr_stop_event(int status)
{
	return status >> 16;
}

#endif
