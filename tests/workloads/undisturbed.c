/* Threads that wait in a loop for their turn, compute about as long as a
 * recorder lets them alone then, and wait in calls that tell when something has
 * interrupted them: nothing has. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "check.h"

enum { THREADS = 2, ROUNDS = 300 };

static atomic_uint turn;

static void compute(unsigned n)
{
	volatile unsigned x = 1;

	for (unsigned i = 0; i < n; i++)
		x = x * 33 + i;
}

static void *work(void *arg)
{
	const struct itimerspec soon = {.it_value.tv_nsec = 50000};
	const struct timespec moment = {.tv_nsec = 50000};
	/* The rest of a sleep that is interrupted is written here. */
	struct timespec *bad = (struct timespec *)(uintptr_t)16;
	struct epoll_event event = {.events = EPOLLIN};
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), ep = epoll_create1(0);
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t times;

	CHECK(timer >= 0 && ep >= 0);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, timer, &event) == 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		while (turn % THREADS != me)
			;
		CHECK(timerfd_settime(timer, 0, &soon, NULL) == 0);
		compute(i % 50 * 4000);
		CHECK(epoll_wait(ep, &event, 1, -1) == 1);
		CHECK(read(timer, &times, sizeof times) == sizeof times);
		compute(i % 50 * 4000);
		CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, bad) == 0);
		turn++;
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, work,
				     (void *)(uintptr_t)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	puts("ok");
	return 0;
}
