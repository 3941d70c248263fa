/* Threads that meet at barriers and see each other's writes. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 30 };

static pthread_barrier_t barrier;
static int cells[2][THREADS], serial;

static void *work(void *arg)
{
	int me = (int)(long)arg;

	for (int r = 0; r < ROUNDS; r++) {
		int *from = cells[r % 2], *to = cells[1 - r % 2], b;

		to[me] = from[me] + from[(me + 1) % THREADS] + 1;
		b = pthread_barrier_wait(&barrier);
		CHECK(b == 0 || b == PTHREAD_BARRIER_SERIAL_THREAD);
		if (b == PTHREAD_BARRIER_SERIAL_THREAD)
			serial++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(cells[0][i] == (1 << ROUNDS) - 1); /* 2x + 1, 30 times */
	CHECK(serial == ROUNDS);
	puts("ok");
	return 0;
}
