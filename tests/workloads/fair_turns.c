/* Threads of different priorities that need each other: those that wait spin
 * with system calls, yield, or ask for real-time priority; the one they wait
 * for is the least of all.  Everybody gets somewhere. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "check.h"

enum { STEPS = 6, WAITERS = 4 };

static atomic_int step, seen[WAITERS];

static void set_nice(int nice)
{
	/* Favours need privilege; without it there is less to try. */
	if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice) < 0)
		CHECK(nice < 0 && errno == EACCES);
}

static void *waiter(void *arg)
{
	int me = (int)(intptr_t)arg;
	struct sched_param rt = {.sched_priority = 1};

	if (me == 0)
		set_nice(-20);
	if (me == 1 && sched_setscheduler(0, SCHED_FIFO, &rt) < 0)
		CHECK(errno == EPERM);
	while (seen[me] < STEPS) {
		if (me % 2)
			CHECK(syscall(SYS_getppid) > 0);
		else
			CHECK(sched_yield() == 0);
		if (step > seen[me])
			seen[me]++;
	}
	return arg;
}

static int all_have_seen(int n)
{
	for (int i = 0; i < WAITERS; i++)
		if (seen[i] < n)
			return 0;
	return 1;
}

static void *leader(void *arg)
{
	set_nice(19);
	while (step < STEPS) {
		int next = step + 1;

		step = next;
		while (!all_have_seen(next))
			CHECK(syscall(SYS_getppid) > 0);
	}
	return arg;
}

int main(void)
{
	pthread_t th[WAITERS + 1];

	CHECK(pthread_create(&th[WAITERS], NULL, leader, NULL) == 0);
	for (int i = 0; i < WAITERS; i++)
		CHECK(pthread_create(&th[i], NULL, waiter,
				     (void *)(intptr_t)i) == 0);
	for (int i = 0; i <= WAITERS; i++)
		CHECK(pthread_join(th[i], NULL) == 0);
	puts("ok");
	return 0;
}
