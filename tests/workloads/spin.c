/* A thread that spins on what another is to do; both compute between system
 * calls that have nothing to do with it. */
#include <pthread.h>

#include "check.h"

static volatile int flag, answer;

static void compute(unsigned rounds)
{
	volatile unsigned n = 0;

	while (n < rounds)
		n++;
}

static void *other(void *arg)
{
	while (!flag) {
		compute(10000);
		getppid();
	}
	answer = 1;
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, other, NULL) == 0);
	for (int i = 0; i < 100; i++) {
		compute(500000);
		getppid();
	}
	flag = 1;
	while (!answer) {
		compute(10000);
		getppid();
	}
	CHECK(pthread_join(t, NULL) == 0);
	puts("ok");
	return 0;
}
