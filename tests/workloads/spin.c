/* A thread that spins, without any system call, on what another is to do. */
#include <pthread.h>
#include <stdio.h>

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

	if (pthread_create(&t, NULL, other, NULL))
		return 1;
	for (int i = 0; i < 3; i++) {
		volatile unsigned n = 0;

		while (n < 50000000)
			n++;
	}
	flag = 1;
	while (!answer)
		;
	pthread_join(t, NULL);
	puts("ok");
	return 0;
}
