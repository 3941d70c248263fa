/* Threads that compute, in loops as short as those in which threads wait:
 * with registers alone, counting in memory, up to a limit in memory, over an
 * array. */
#include <pthread.h>
#include <stdint.h>

#include "check.h"

enum { THREADS = 2, ELEMENTS = 4096 };

static volatile long limit = 100000000;
static uint32_t elements[ELEMENTS];

static uint64_t registers(void)
{
	uint64_t x = 1;

	for (long i = 0; i < 10000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}

static uint64_t memory(void)
{
	volatile uint64_t n = 0;

	while (n < 10000000)
		n++;
	return n;
}

static uint64_t to_limit(void)
{
	long n = 0;

	while (n < limit)
		n++;
	return (uint64_t)n;
}

static uint64_t array(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < 2000; i++)
		for (int k = 0; k < ELEMENTS; k++)
			sum += elements[k] ^ (uint32_t)i;
	return sum;
}

static void *work(void *sums)
{
	uint64_t *s = sums;

	s[0] = registers();
	s[1] = memory();
	s[2] = to_limit();
	s[3] = array();
	return NULL;
}

int main(void)
{
	static uint64_t sums[THREADS][4];
	pthread_t t[THREADS];

	for (uint32_t i = 0; i < ELEMENTS; i++)
		elements[i] = i * 2654435761u;
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, work, sums[i]) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(sums[0][1] == 10000000 && sums[0][2] == (uint64_t)limit);
	CHECK(memcmp(sums[0], sums[1], sizeof sums[0]) == 0);
	puts("ok");
	return 0;
}
