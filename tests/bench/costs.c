/*
 * What the kernel charges for the primitives that recording and replaying are
 * made of, as one line of JSON in nanoseconds.
 *
 * The traced child is pinned to one core and the tracer is not, as under
 * trace-record: where the scheduler puts the tracer decides whether a stop is
 * a switch on one core or a wake-up of another.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STOPS = 20000, CALLS = 1000000, FORKS = 200 };

static char word[8];

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) < 0)
		perror("sched_setaffinity");
}

static void wait_stop(pid_t child)
{
	int status;

	if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) {
		fprintf(stderr, "costs: the traced child is gone\n");
		exit(1);
	}
}

/* A traced child that makes system calls until it is killed. */
static pid_t start(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child == 0) {
		pin();
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(1);
		raise(SIGSTOP);
		for (;;)
			syscall(SYS_getppid);
	}
	wait_stop(child);
	if (ptrace(PTRACE_SETOPTIONS, child, NULL,
		   (uintptr_t)PTRACE_O_EXITKILL) < 0)
		die("PTRACE_SETOPTIONS");
	return child;
}

static void finish(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
}

/* From one stop to the next, with nothing done in between. */
static double stop(int request)
{
	pid_t child = start();
	uint64_t begun = 0;

	for (int i = 0; i < STOPS + 100; i++) {
		if (i == 100)
			begun = now();
		if (ptrace(request, child, NULL, NULL) < 0)
			die("ptrace");
		wait_stop(child);
	}
	double each = (double)(now() - begun) / STOPS;

	finish(child);
	return each;
}

static double registers(int request)
{
	pid_t child = start();
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, child, NULL, &regs) < 0)
		die("PTRACE_GETREGS");
	uint64_t begun = now();
	for (int i = 0; i < STOPS; i++)
		ptrace(request, child, NULL, &regs);
	double each = (double)(now() - begun) / STOPS;

	finish(child);
	return each;
}

static double read_memory(void)
{
	pid_t child = start();
	char to[sizeof word];
	struct iovec local = {to, sizeof to}, remote = {word, sizeof word};
	uint64_t begun = now();

	for (int i = 0; i < STOPS; i++)
		if (process_vm_readv(child, &local, 1, &remote, 1, 0) < 0)
			die("process_vm_readv");
	double each = (double)(now() - begun) / STOPS;

	finish(child);
	return each;
}

static double native_call(void)
{
	uint64_t begun = now();

	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	return (double)(now() - begun) / CALLS;
}

static double fork_exec_exit(void)
{
	uint64_t begun = now();

	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (child == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(127);
		}
		waitpid(child, NULL, 0);
	}
	return (double)(now() - begun) / FORKS;
}

int main(void)
{
	printf("{\"native_syscall\":%.0f", native_call());
	printf(",\"sysemu_stop\":%.0f", stop(PTRACE_SYSEMU));
	/* An entry and an exit: two stops. */
	printf(",\"syscall_pair\":%.0f", 2 * stop(PTRACE_SYSCALL));
	printf(",\"single_step\":%.0f", stop(PTRACE_SINGLESTEP));
	printf(",\"getregs\":%.0f", registers(PTRACE_GETREGS));
	printf(",\"setregs\":%.0f", registers(PTRACE_SETREGS));
	printf(",\"read_memory\":%.0f", read_memory());
	printf(",\"fork_exec_exit\":%.0f}\n", fork_exec_exit());
	return 0;
}
