/* A thread that spins, without any system call, on what another is to do. */
#include <pthread.h>

#include "check.h"

static volatile int flag, answer;

static void *other(void *arg)
{
	while (!flag)
		;
	answer = 1;
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, other, NULL) == 0);
	flag = 1;
	while (!answer)
		;
	CHECK(pthread_join(t, NULL) == 0);
	puts("ok");
	return 0;
}
