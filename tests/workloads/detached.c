/* Many detached threads, some of which outlive the one that made them. */
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

enum { THREADS = 30 };

static sem_t done;
static _Atomic int sum;

static void *work(void *arg)
{
	char stack[8192];

	memset(stack, (int)(long)arg, sizeof stack);
	sum += stack[100];
	CHECK(sem_post(&done) == 0);
	return NULL;
}

static void *makes_one(void *arg)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, work, arg) == 0);
	CHECK(pthread_detach(t) == 0);
	return NULL;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t t;

	CHECK(sem_init(&done, 0, 0) == 0 && pthread_attr_init(&attr) == 0);
	CHECK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
	CHECK(pthread_attr_setstacksize(&attr, 65536) == 0);
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t, &attr, i % 3 ? work : makes_one,
				     (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(sem_wait(&done) == 0);
	CHECK(sum == THREADS * (THREADS - 1) / 2);
	puts("ok");
	return 0;
}
