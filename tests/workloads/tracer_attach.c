/*
 * Tracers of tasks that run already: attached and seized, blocked in calls
 * that go on undisturbed, interrupted, in group-stops, not their children;
 * and what becomes of tracees when their tracer ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

#define EVENT_STOP 128

static bool stopped_as(int status, int code)
{
	return WIFSTOPPED(status) && status >> 8 == code;
}

/* A child that reads one byte and exits with it. */
static pid_t reader(int fds[2])
{
	unsigned char byte = 0;
	pid_t pid;

	CHECK(pipe(fds) == 0);
	pid = fork();
	if (pid)
		return pid;
	CHECK(read(fds[0], &byte, 1) == 1);
	_exit(byte);
}

static void finish(pid_t pid, int fds[2], unsigned char byte)
{
	int status;

	CHECK(write(fds[1], &byte, 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == byte);
	close(fds[0]);
	close(fds[1]);
}

/* Until the task sleeps in its call. */
static void wait_until_blocked(pid_t pid)
{
	char path[64], line[256];

	for (int i = 0; i < 5000; i++) {
		FILE *f;

		snprintf(path, sizeof path, "/proc/%d/stat", pid);
		f = fopen(path, "r");
		CHECK(f && fgets(line, sizeof line, f));
		fclose(f);
		if (strstr(line, ") S "))
			return;
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	CHECK(!"it blocks");
}

static void attach_and_detach(void)
{
	struct user_regs_struct g;
	int fds[2], status;
	pid_t pid = reader(fds);

	wait_until_blocked(pid);
	CHECK(ptrace(PTRACE_ATTACH, pid, 0, 0) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGSTOP));
	CHECK(ptrace(PTRACE_GETREGS, pid, 0, &g) == 0);
	CHECK(g.orig_rax == SYS_read);
	CHECK(ptrace(PTRACE_DETACH, pid, 0, 0) == 0);
	CHECK(ptrace(PTRACE_GETREGS, pid, 0, &g) == -1 && errno == ESRCH);
	finish(pid, fds, 11);
}

static void seize_and_interrupt(void)
{
	struct user_regs_struct g;
	siginfo_t si;
	int fds[2], status;
	pid_t pid = reader(fds);

	wait_until_blocked(pid);
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD) == 0);
	CHECK(waitpid(pid, &status, WNOHANG) == 0);
	CHECK(ptrace(PTRACE_GETREGS, pid, 0, &g) == -1 && errno == ESRCH);
	CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGTRAP | EVENT_STOP << 8));
	CHECK(ptrace(PTRACE_GETSIGINFO, pid, 0, &si) == 0);
	CHECK(si.si_code == (SIGTRAP | EVENT_STOP << 8));
	CHECK(ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0);
	/* The interrupted call begins again. */
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGTRAP | 0x80));
	CHECK(ptrace(PTRACE_GETREGS, pid, 0, &g) == 0);
	CHECK(g.orig_rax == SYS_read && (long)g.rax == -ENOSYS);
	CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	finish(pid, fds, 12);
}

static void group_stop(void)
{
	int fds[2], status;
	pid_t pid = reader(fds);

	CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
	CHECK(kill(pid, SIGSTOP) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGSTOP)); /* the signal's delivery */
	CHECK(ptrace(PTRACE_CONT, pid, 0, SIGSTOP) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGSTOP | EVENT_STOP << 8));
	CHECK(ptrace(PTRACE_LISTEN, pid, 0, 0) == 0);
	CHECK(waitpid(pid, &status, WNOHANG) == 0);
	CHECK(kill(pid, SIGCONT) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGTRAP | EVENT_STOP << 8));
	CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGCONT));
	CHECK(ptrace(PTRACE_DETACH, pid, 0, 0) == 0);
	finish(pid, fds, 13);
}

/* The tracee's parent is another process, which reaps it in the end. */
static void not_a_child(void)
{
	int fds[2], ends[2], status;
	struct timespec moment = {0, 20000000};
	pid_t pid, middle;
	siginfo_t si;

	CHECK(pipe(ends) == 0);
	middle = fork();
	if (middle == 0) {
		pid = reader(fds);
		CHECK(write(ends[1], &pid, sizeof pid) == sizeof pid);
		CHECK(write(ends[1], fds + 1, sizeof(int)) == sizeof(int));
		CHECK(waitpid(pid, &status, 0) == pid);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
	}
	CHECK(read(ends[0], &pid, sizeof pid) == sizeof pid);
	CHECK(read(ends[0], fds, sizeof(int)) == sizeof(int));
	wait_until_blocked(pid);
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT) == 0);
	nanosleep(&moment, NULL);
	CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
	CHECK(waitid(P_PID, (id_t)pid, &si, WSTOPPED | WNOWAIT | __WALL) == 0);
	CHECK(si.si_pid == pid && si.si_code == CLD_TRAPPED);
	CHECK(waitpid(-1, &status, __WALL) == pid);
	CHECK(stopped_as(status, SIGTRAP | EVENT_STOP << 8));
	CHECK(kill(pid, SIGTERM) == 0);
	CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGTERM));
	CHECK(ptrace(PTRACE_CONT, pid, 0, SIGTERM) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(stopped_as(status, SIGTRAP | PTRACE_EVENT_EXIT << 8));
	CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK(waitpid(middle, &status, 0) == middle);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 99);
	CHECK(waitpid(-1, &status, __WALL) == -1 && errno == ECHILD);
}

static volatile sig_atomic_t trapped;

static void on_child(int sig, siginfo_t *si, void *context)
{
	(void)sig;
	(void)context;
	trapped += si->si_code == CLD_TRAPPED;
}

/* A tracer that hears of stops by a signal and sleeps meanwhile. */
static void told_by_signal(void)
{
	struct sigaction sa = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO};
	sigset_t chld, old;
	int status, n = 0;
	pid_t pid;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &old);
	sigaction(SIGCHLD, &sa, NULL);
	pid = fork();
	if (pid == 0) {
		CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
		for (int i = 0; i < 3; i++)
			raise(SIGUSR1);
		_exit(0);
	}
	for (;;) {
		while (waitpid(-1, &status, WNOHANG | __WALL) == 0)
			sigsuspend(&old);
		if (!WIFSTOPPED(status))
			break;
		n++;
		CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	}
	CHECK(n == 3 && trapped == 3);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Its tracer ends without a word: the tracee runs on, or dies with it. */
static void tracer_ends(long options, int expected)
{
	int fds[2], status;
	pid_t pid = reader(fds), tracer;

	wait_until_blocked(pid);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	tracer = fork();
	if (tracer == 0) {
		CHECK(ptrace(PTRACE_SEIZE, pid, 0, options) == 0);
		CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
		CHECK(waitpid(pid, &status, __WALL) == pid);
		_exit(0);
	}
	CHECK(waitpid(tracer, &status, 0) == tracer && status == 0);
	if (!expected) {
		finish(pid, fds, 14);
		return;
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == expected);
	close(fds[0]);
	close(fds[1]);
}

static void refusals(void)
{
	CHECK(ptrace(PTRACE_ATTACH, getpid(), 0, 0) == -1 && errno == EPERM);
	CHECK(ptrace(PTRACE_ATTACH, 4194303, 0, 0) == -1 && errno == ESRCH);
	CHECK(ptrace(PTRACE_CONT, getppid(), 0, 0) == -1 && errno == ESRCH);
	CHECK(ptrace(PTRACE_SEIZE, getppid(), 1, 0) == -1 && errno == EIO);
}

int main(void)
{
	refusals();
	attach_and_detach();
	seize_and_interrupt();
	group_stop();
	not_a_child();
	told_by_signal();
	tracer_ends(0, 0);
	tracer_ends(PTRACE_O_EXITKILL, SIGKILL);
	puts("ok");
	return 0;
}
