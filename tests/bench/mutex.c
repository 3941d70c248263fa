/* Four threads that take turns at one mutex, with some work in between. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { THREADS = 4, TURNS = 20000, WORK = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sum;

static void *run(void *arg)
{
	uint64_t x = (uintptr_t)arg;

	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < WORK; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		pthread_mutex_lock(&lock);
		sum += x & 1;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)(i + 1)) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
