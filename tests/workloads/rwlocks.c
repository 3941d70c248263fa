/* Readers and writers: a reader never sees half of a write. */
#include <pthread.h>
#include <time.h>

#include "check.h"

enum { READERS = 3, WRITERS = 2, ROUNDS = 50 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int a, b;

static void *reads(void *arg)
{
	long different = 0, last = -1;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(pthread_rwlock_rdlock(&lock) == 0);
		CHECK(a == b);
		different += a != last;
		last = a;
		CHECK(pthread_rwlock_unlock(&lock) == 0);
		if (i % 10 == 0)
			usleep(500);
	}
	return (void *)different;
}

static void *writes(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(pthread_rwlock_wrlock(&lock) == 0);
		a++;
		if (i % 10 == 0)
			usleep(200); /* others must wait */
		b++;
		CHECK(pthread_rwlock_unlock(&lock) == 0);
	}
	return NULL;
}

static void timed_out(void)
{
	struct timespec t;

	CHECK(pthread_rwlock_wrlock(&lock) == 0);
	CHECK(pthread_rwlock_tryrdlock(&lock) == EBUSY);
	CHECK(clock_gettime(CLOCK_REALTIME, &t) == 0);
	CHECK(pthread_rwlock_timedrdlock(&lock, &t) == EDEADLK ||
	      pthread_rwlock_tryrdlock(&lock) == EBUSY);
	CHECK(pthread_rwlock_unlock(&lock) == 0);
}

int main(void)
{
	pthread_t t[READERS + WRITERS];
	void *n;

	for (int i = 0; i < READERS + WRITERS; i++)
		CHECK(pthread_create(&t[i], NULL, i < READERS ? reads : writes,
				     NULL) == 0);
	for (int i = 0; i < READERS + WRITERS; i++) {
		CHECK(pthread_join(t[i], &n) == 0);
		if (i < READERS)
			printf("%ld\n", (long)n);
	}
	CHECK(a == WRITERS * ROUNDS && a == b);
	timed_out();
	puts("ok");
	return 0;
}
