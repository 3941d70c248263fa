/* Two threads that hand a ball to each other: by sched_yield, by a condition
 * variable, by spinning with other calls, by a futex. */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "check.h"

static _Atomic int ball;
static int rounds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *by_yield(void *me)
{
	for (int i = 0; i < rounds; i++) {
		while (ball % 2 != (int)(long)me)
			sched_yield();
		ball++;
	}
	return NULL;
}

/* No yield: only the end of its turn helps. */
static void *by_calling(void *me)
{
	for (int i = 0; i < rounds; i++) {
		while (ball % 2 != (int)(long)me)
			getppid();
		ball++;
	}
	return NULL;
}

static void *by_condition(void *me)
{
	for (int i = 0; i < rounds; i++) {
		pthread_mutex_lock(&lock);
		while (ball % 2 != (int)(long)me)
			pthread_cond_wait(&changed, &lock);
		ball++;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *by_futex(void *me)
{
	for (int i = 0; i < rounds; i++) {
		int seen;

		while ((seen = ball) % 2 != (int)(long)me)
			syscall(SYS_futex, &ball, FUTEX_WAIT, seen, NULL);
		ball++;
		syscall(SYS_futex, &ball, FUTEX_WAKE, 1);
	}
	return NULL;
}

static void play(void *(*f)(void *), int n)
{
	pthread_t t[2];

	rounds = n;
	ball = 0;
	for (long i = 0; i < 2; i++)
		CHECK(pthread_create(&t[i], NULL, f, (void *)i) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(ball == 2 * n);
}

int main(void)
{
	play(by_yield, 50);
	play(by_condition, 50);
	play(by_futex, 50);
	play(by_calling, 5);
	puts("ok");
	return 0;
}
