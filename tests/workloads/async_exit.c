/* A thread that calls exit while another computes without system calls. */
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static void *computes(void *arg)
{
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void *exits(void *arg)
{
	usleep(10000);
	exit((int)(long)arg);
}

int main(void)
{
	pthread_t t;
	int status;

	if (fork() == 0) {
		CHECK(pthread_create(&t, NULL, computes, NULL) == 0);
		CHECK(pthread_create(&t, NULL, exits, (void *)5l) == 0);
		for (;;)
			pause();
	}
	CHECK(wait(&status) > 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
	puts("ok");
	return 0;
}
