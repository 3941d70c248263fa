/* A program with a filter of its own: one call answered with an errno, one
 * with SIGSYS, one that a tracer should answer, the others allowed; inherited
 * by a child, which is traced in the end. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t trapped;

static void on_sigsys(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	trapped = si->si_syscall;
}

/* The filter's verdict on getgid: without a tracer, there is no such call. */
static int child(void)
{
	if (syscall(SYS_getppid) != -1 || errno != EDOM)
		return 6;
	if (syscall(SYS_getgid) != -1 || errno != ENOSYS)
		return 7;
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	if (syscall(SYS_getgid) != 4711)
		return 8;
	return 5;
}

/* Answers the call that the filter leaves to a tracer. */
static int trace(pid_t pid)
{
	struct user_regs_struct g;
	unsigned long data;
	int status, stops = 0;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESECCOMP))
		return status;
	for (;;) {
		ptrace(PTRACE_CONT, pid, 0, 0);
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		if (status >> 8 != (SIGTRAP | PTRACE_EVENT_SECCOMP << 8) ||
		    ptrace(PTRACE_GETEVENTMSG, pid, 0, &data) || data != 77 ||
		    ptrace(PTRACE_GETREGS, pid, 0, &g) ||
		    g.orig_rax != SYS_getgid)
			return -1;
		stops++;
		g.orig_rax = (unsigned long)-1;
		g.rax = 4711;
		ptrace(PTRACE_SETREGS, pid, 0, &g);
	}
	return stops == 1 ? status : -2;
}

int main(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getuid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | 77),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof code / sizeof *code, code};
	struct sigaction sa = {.sa_sigaction = on_sigsys,
			       .sa_flags = SA_SIGINFO};
	int status;
	pid_t pid;

	sigaction(SIGSYS, &sa, NULL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 1;
	for (int i = 0; i < 3; i++)
		if (syscall(SYS_getppid) != -1 || errno != EDOM)
			return 2;
	syscall(SYS_getuid);
	if (trapped != SYS_getuid)
		return 3;
	pid = fork();
	if (pid == 0)
		_exit(child());
	status = trace(pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 5)
		return 4;
	puts("ok");
	return 0;
}
