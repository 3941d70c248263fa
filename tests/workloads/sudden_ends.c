/* Processes whose threads, the first one among them, make calls all the time,
 * until one of them ends the process by a fault or a signal. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 8 };

static volatile int calls;
static volatile long bad_address = 16;

static void *call(void *arg)
{
	for (;;) {
		syscall(SYS_getppid);
		calls++;
	}
	return arg;
}

static void *end(void *arg)
{
	long round = (long)arg;

	while (calls < round % 7)
		syscall(SYS_sched_yield);
	if (round % 2)
		kill(getpid(), SIGKILL);
	else
		*(volatile int *)bad_address = 1;
	return NULL;
}

static void process(long round)
{
	const struct rlimit no_core = {0, 0};
	pthread_t th;

	CHECK(setrlimit(RLIMIT_CORE, &no_core) == 0);
	for (int i = 0; i < THREADS - 2; i++)
		CHECK(pthread_create(&th, NULL, call, NULL) == 0);
	CHECK(pthread_create(&th, NULL, end, (void *)round) == 0);
	call(NULL);
}

int main(void)
{
	for (long round = 0; round < ROUNDS; round++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0)
			process(round);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status));
		CHECK(WTERMSIG(status) == (round % 2 ? SIGKILL : SIGSEGV));
	}
	puts("ok");
	return 0;
}
