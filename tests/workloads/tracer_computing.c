/*
 * Tracers that stop a computation wherever it is, look at it, change a register
 * or a variable, and let it go on; several times, in processes and threads.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

#define EVENT_STOP 128

static volatile long go_on, passes;

/* Counts until somebody sets go_on, then says how often it has passed. */
static void count(void)
{
	while (!go_on)
		passes++;
	printf("%ld\n", passes);
}

/* Nothing but registers: rbx is what ends it, rcx counts. */
static long spin_on_register(void)
{
	long n = 0, end = 0;

	__asm__ volatile("1: inc %0; test %1, %1; jz 1b"
			 : "+c"(n), "+b"(end));
	printf("%ld %ld\n", n, end);
	return end;
}

static void moment(void)
{
	nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static int here[2]; /* a pipe: tasks that are about to compute */

static void tell(void)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	CHECK(write(here[1], &tid, sizeof tid) == sizeof tid);
}

static pid_t next_task(void)
{
	pid_t tid;

	CHECK(read(here[0], &tid, sizeof tid) == sizeof tid);
	return tid;
}

static void stopped(pid_t pid, int code)
{
	int status;

	CHECK(waitpid(pid, &status, __WALL) == pid);
	CHECK(WIFSTOPPED(status) && status >> 8 == code);
}

static void ended(pid_t pid, int code)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

static long peek(pid_t pid, volatile long *p)
{
	errno = 0;
	return ptrace(PTRACE_PEEKDATA, pid, p, 0);
}

/* Where it was stopped decides what it does from then on. */
static void attach_and_write(void)
{
	pid_t pid = fork();
	long before;

	if (pid == 0) {
		tell();
		count();
		fflush(stdout);
		_exit(0);
	}
	CHECK(next_task() == pid);
	for (int i = 0; i < 3; i++) {
		moment();
		CHECK(ptrace(PTRACE_ATTACH, pid, 0, 0) == 0);
		stopped(pid, SIGSTOP);
		before = peek(pid, &passes);
		CHECK(before >= 0 && errno == 0);
		printf("%ld\n", before);
		CHECK(ptrace(PTRACE_POKEDATA, pid, &passes,
			     before + 1000000000) == 0);
		if (i == 2)
			CHECK(ptrace(PTRACE_POKEDATA, pid, &go_on, 1) == 0);
		CHECK(ptrace(PTRACE_DETACH, pid, 0, 0) == 0);
	}
	ended(pid, 0);
}

static void seize_and_set_registers(void)
{
	struct user_regs_struct g;
	pid_t pid = fork();

	if (pid == 0) {
		int end;

		tell();
		end = (int)spin_on_register();
		fflush(stdout);
		_exit(end);
	}
	CHECK(next_task() == pid);
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
	for (int i = 0; i < 3; i++) {
		moment();
		CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
		stopped(pid, SIGTRAP | EVENT_STOP << 8);
		CHECK(ptrace(PTRACE_GETREGS, pid, 0, &g) == 0);
		printf("%lld\n", g.rcx);
		g.rcx += 1000000000;
		g.rbx = i == 2 ? 42 : 0;
		CHECK(ptrace(PTRACE_SETREGS, pid, 0, &g) == 0);
		CHECK(ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	}
	ended(pid, 42);
}

static void *computes(void *arg)
{
	tell();
	count();
	return arg;
}

/* Three threads that compute, each stopped by itself. */
static void threads(void)
{
	pid_t tids[3], pid = fork();

	if (pid == 0) {
		pthread_t t[2];

		for (int i = 0; i < 2; i++)
			CHECK(pthread_create(&t[i], NULL, computes, NULL) == 0);
		computes(NULL);
		for (int i = 0; i < 2; i++)
			CHECK(pthread_join(t[i], NULL) == 0);
		fflush(stdout);
		_exit(7);
	}
	for (int i = 0; i < 3; i++)
		tids[i] = next_task();
	moment();
	for (int i = 0; i < 3; i++)
		CHECK(ptrace(PTRACE_SEIZE, tids[i], 0, 0) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(ptrace(PTRACE_INTERRUPT, tids[i], 0, 0) == 0);
		stopped(tids[i], SIGTRAP | EVENT_STOP << 8);
	}
	printf("%ld\n", peek(tids[1], &passes));
	CHECK(ptrace(PTRACE_POKEDATA, tids[2], &go_on, 1) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(ptrace(PTRACE_DETACH, tids[i], 0, 0) == 0);
	ended(pid, 7);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
	CHECK(pipe(here) == 0);
	attach_and_write();
	fflush(stdout);
	seize_and_set_registers();
	fflush(stdout);
	threads();
	puts("ok");
	return 0;
}
