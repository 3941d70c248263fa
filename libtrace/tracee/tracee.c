/* Traced tasks: thin, checked wrappers of ptrace(2). */
#include "libtrace/tracee/tracee.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libtrace/base/io.h"

_Static_assert(sizeof(struct tr_regs) == sizeof(struct user_regs_struct),
	       "tr_regs mirrors user_regs_struct");

/* ptrace's prototype is variadic and takes pointers for everything. */
static long request(int req, pid_t tid, uintptr_t addr, uintptr_t data)
{
	return ptrace((enum __ptrace_request)req, tid, (void *)addr,
		      (void *)data);
}

long tr_tracee_request(pid_t tid, long req, uint64_t addr, void *data)
{
	/* The C library's function changes what PEEK requests mean. */
	return syscall(SYS_ptrace, req, (long)tid, addr, data);
}

int tr_tracee_seize(pid_t tid, bool recording)
{
	uintptr_t options = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD |
			    PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			    PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
			    PTRACE_O_TRACESECCOMP;

	if (recording)
		options |= PTRACE_O_TRACEEXIT;
	return request(PTRACE_SEIZE, tid, 0, options) < 0 ? -1 : 0;
}

int tr_tracee_get_regs(pid_t tid, struct tr_regs *regs)
{
	return request(PTRACE_GETREGS, tid, 0, (uintptr_t)regs) < 0 ? -1 : 0;
}

int tr_tracee_set_regs(pid_t tid, const struct tr_regs *regs)
{
	return request(PTRACE_SETREGS, tid, 0, (uintptr_t)regs) < 0 ? -1 : 0;
}

static size_t xstate_size;

static void find_xstate_size(void)
{
	unsigned a, b, c, d;

	/* EBX: size of the standard-format area for what XCR0 enables, which
	 * is the only size PTRACE_SETREGSET takes (arch/x86/kernel/fpu/regset.c). */
	xstate_size = __get_cpuid_count(0xd, 0, &a, &b, &c, &d) ? b : 512;
}

size_t tr_xstate_size(void)
{
	static pthread_once_t found = PTHREAD_ONCE_INIT;

	pthread_once(&found, find_xstate_size);
	return xstate_size;
}

int tr_tracee_get_xstate(pid_t tid, void *buf, size_t *len)
{
	size_t size = tr_xstate_size();
	struct iovec iov = {buf, size};

	if (*len < size) {
		errno = ENOBUFS;
		return -1;
	}
	*len = size;
	return request(PTRACE_GETREGSET, tid, NT_X86_XSTATE,
		       (uintptr_t)&iov) < 0 ? -1 : 0;
}

int tr_tracee_set_xstate(pid_t tid, const void *buf, size_t len)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return request(PTRACE_SETREGSET, tid, NT_X86_XSTATE,
		       (uintptr_t)&iov) < 0 ? -1 : 0;
}

int tr_tracee_get_siginfo(pid_t tid, siginfo_t *si)
{
	return request(PTRACE_GETSIGINFO, tid, 0, (uintptr_t)si) < 0 ? -1 : 0;
}

int tr_tracee_set_siginfo(pid_t tid, const siginfo_t *si)
{
	return request(PTRACE_SETSIGINFO, tid, 0, (uintptr_t)si) < 0 ? -1 : 0;
}

int tr_tracee_get_sigmask(pid_t tid, uint64_t *mask)
{
	return request(PTRACE_GETSIGMASK, tid, sizeof *mask,
		       (uintptr_t)mask) < 0 ? -1 : 0;
}

int tr_tracee_set_sigmask(pid_t tid, uint64_t mask)
{
	return request(PTRACE_SETSIGMASK, tid, sizeof mask,
		       (uintptr_t)&mask) < 0 ? -1 : 0;
}

int tr_tracee_event_msg(pid_t tid, unsigned long *msg)
{
	return request(PTRACE_GETEVENTMSG, tid, 0, (uintptr_t)msg) < 0 ? -1 : 0;
}

int tr_tracee_resume(pid_t tid, enum tr_resume how, int sig)
{
	static const int requests[] = {
		[TR_RESUME_CONT] = PTRACE_CONT,
		[TR_RESUME_SYSCALL] = PTRACE_SYSCALL,
		[TR_RESUME_STEP] = PTRACE_SINGLESTEP,
		[TR_RESUME_LISTEN] = PTRACE_LISTEN,
		[TR_RESUME_INTERRUPT] = PTRACE_INTERRUPT,
	};

	return request(requests[how], tid, 0, (uintptr_t)sig) < 0 ? -1 : 0;
}

bool tr_tracee_was_killed(pid_t tid)
{
	siginfo_t si = {.si_pid = 0};

	if (waitid(P_PID, (id_t)tid, &si, WEXITED | WSTOPPED | WNOHANG |
					  WNOWAIT | __WALL) < 0 || !si.si_pid)
		return false;
	return si.si_code == CLD_TRAPPED
	       ? si.si_status == (SIGTRAP | PTRACE_EVENT_EXIT << 8)
	       : si.si_code != CLD_STOPPED;
}

int tr_tracee_wait(pid_t tid, int *status, uint64_t timeout_ns)
{
	uint64_t deadline = timeout_ns ? tr_now_ns() + timeout_ns : 0;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (;;) {
		int flags = __WALL | (timeout_ns ? WNOHANG : 0);
		pid_t got = waitpid(tid, status, flags);
		struct timespec ts = {1, 0};

		if (got == tid)
			return 0;
		if (got < 0 && errno != EINTR)
			return -1;
		if (!timeout_ns)
			continue;
		if (tr_now_ns() > deadline) {
			errno = ETIMEDOUT;
			return -1;
		}
		/* Every ptrace stop sends the tracer SIGCHLD; a second at most
		 * in case it was taken by an earlier wait. */
		if (got == 0 && sigtimedwait(&chld, NULL, &ts) < 0 &&
		    errno != EAGAIN && errno != EINTR)
			return -1;
	}
}

bool tr_signal_is_fault(int sig, int si_code)
{
	switch (sig) {
	case SIGSEGV: case SIGBUS: case SIGFPE: case SIGILL: case SIGTRAP:
		return si_code > 0;
	default:
		return false;
	}
}
