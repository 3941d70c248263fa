/*
 * A thread stopped by a tracer inside a call that it had just made, while
 * another thread of the process runs, and computes: the tracer changes their
 * memory meanwhile, in every way there is, as debuggers do whose breakpoints
 * come and go while threads run.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

enum { WAYS = 3, TIMES = 4 };

static struct {
	volatile long flag; /* of what the tracer has changed */
	volatile long mark; /* by the thread that is stopped, late */
	volatile pid_t tid;
} shared;
static int to_sleeper[2], to_spinner[2], from_spinner[2];

static void *sleeper(void *arg)
{
	char byte;

	shared.tid = (pid_t)syscall(SYS_gettid);
	shared.mark = 1; /* no event comes before the call */
	CHECK(read(to_sleeper[0], &byte, 1) == 1);
	CHECK(shared.mark == 1);
	return arg;
}

/* Computes until the tracer has changed the flag. */
static void *spinner(void *arg)
{
	char byte = 0;

	CHECK(read(to_spinner[0], &byte, 1) == 1);
	for (long i = 0; i < WAYS * TIMES; i++) {
		volatile long passes = 0;

		while (shared.flag == i)
			passes++;
		CHECK(shared.flag == i + 1);
		CHECK(write(from_spinner[1], &byte, 1) == 1);
	}
	return arg;
}

static void tracee(void)
{
	pthread_t a, b;

	CHECK(pthread_create(&b, NULL, spinner, NULL) == 0);
	CHECK(pthread_create(&a, NULL, sleeper, NULL) == 0);
	CHECK(pthread_join(b, NULL) == 0);
	CHECK(pthread_join(a, NULL) == 0);
	_exit(7);
}

/* The sleeper's number, when it is in its call. */
static pid_t find_sleeper(pid_t pid)
{
	struct { long flag, mark; pid_t tid; } seen = {0, 0, 0};
	struct iovec l = {&seen, sizeof seen};
	struct iovec r = {(void *)&shared, sizeof seen};

	while (!seen.mark) {
		usleep(1000);
		CHECK(process_vm_readv(pid, &l, 1, &r, 1, 0) > 0);
	}
	usleep(20000);
	return seen.tid;
}

static void change(pid_t pid, pid_t tid, int mem, long value)
{
	uint64_t at = (uint64_t)(uintptr_t)&shared.flag;
	struct iovec l = {&value, sizeof value};
	struct iovec r = {(void *)&shared.flag, sizeof value};

	switch (value % WAYS) {
	case 0:
		CHECK(ptrace(PTRACE_POKEDATA, tid, at, value) == 0);
		break;
	case 1:
		CHECK(pwrite(mem, &value, sizeof value, (off_t)at) ==
		      sizeof value);
		break;
	default:
		CHECK(process_vm_writev(pid, &l, 1, &r, 1, 0) == sizeof value);
	}
}

int main(void)
{
	char byte = 0, path[64];
	int status, mem;
	pid_t pid, tid;

	CHECK(pipe(to_sleeper) == 0 && pipe(to_spinner) == 0 &&
	      pipe(from_spinner) == 0);
	pid = fork();
	if (pid == 0)
		tracee();
	tid = find_sleeper(pid);
	CHECK(ptrace(PTRACE_ATTACH, tid, 0, 0) == 0);
	CHECK(waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status));
	snprintf(path, sizeof path, "/proc/%d/mem", (int)tid);
	mem = open(path, O_RDWR);
	CHECK(mem >= 0);
	CHECK(write(to_spinner[1], &byte, 1) == 1);
	for (long i = 1; i <= WAYS * TIMES; i++) {
		usleep(3000);
		change(pid, tid, mem, i);
		CHECK(read(from_spinner[0], &byte, 1) == 1);
	}
	CHECK(ptrace(PTRACE_DETACH, tid, 0, 0) == 0);
	CHECK(write(to_sleeper[1], &byte, 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	puts("ok");
	return 0;
}
