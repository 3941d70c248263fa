/*
 * Threads that change a number without a lock, so that what comes out depends
 * on exactly where they were interrupted; and one that others lock adaptively,
 * which spins before it sleeps.
 */
#include <pthread.h>

#include "check.h"

enum { THREADS = 3, TIMES = 3000000, LOCKED = 200000 };

static volatile unsigned long racy, safe;
static pthread_mutex_t lock;

static void *change(void *arg)
{
	for (int i = 0; i < TIMES; i++)
		racy = racy + 1;
	for (int i = 0; i < LOCKED; i++) {
		pthread_mutex_lock(&lock);
		safe++;
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];
	pthread_mutexattr_t adaptive;

	CHECK(pthread_mutexattr_init(&adaptive) == 0);
	CHECK(pthread_mutexattr_settype(&adaptive,
					PTHREAD_MUTEX_ADAPTIVE_NP) == 0);
	CHECK(pthread_mutex_init(&lock, &adaptive) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, change, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(safe == (unsigned long)THREADS * LOCKED);
	CHECK(racy <= (unsigned long)THREADS * TIMES);
	printf("%lu\nok\n", racy);
	return 0;
}
