/* Asynchronous cancellation of a thread that makes no system calls. */
#include <pthread.h>

#include "check.h"

static int cleaned;
static _Atomic int running;

static void cleanup(void *arg)
{
	(void)arg;
	cleaned++;
}

static void *computing(void *arg)
{
	CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
	pthread_cleanup_push(cleanup, NULL);
	running = 1;
	for (volatile unsigned long n = 0;; n++)
		;
	pthread_cleanup_pop(0);
	return arg;
}

int main(void)
{
	pthread_t t;
	void *result;

	CHECK(pthread_create(&t, NULL, computing, NULL) == 0);
	while (!running)
		usleep(1000);
	CHECK(pthread_cancel(t) == 0);
	CHECK(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
	CHECK(cleaned == 1);
	puts("ok");
	return 0;
}
