/* Two threads that hand a ball to each other without any system call. */
#include <pthread.h>

#include "check.h"

enum { ROUNDS = 2 };

static _Atomic int ball;

static void *play(void *me)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (ball % 2 != (int)(long)me)
			;
		ball++;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];

	for (long i = 0; i < 2; i++)
		CHECK(pthread_create(&t[i], NULL, play, (void *)i) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(ball == 2 * ROUNDS);
	puts("ok");
	return 0;
}
