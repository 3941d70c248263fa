/* Threads that are cancelled: in a call, asynchronously, late; cleanup runs. */
#include <pthread.h>
#include <time.h>

#include "check.h"

static int cleaned;
static _Atomic int running;

static void cleanup(void *arg)
{
	cleaned += (int)(long)arg;
}

static void *in_a_call(void *arg)
{
	int *fds = arg;
	char c;

	pthread_cleanup_push(cleanup, (void *)1l);
	running = 1;
	(void)!read(fds[0], &c, 1);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *counting(void *arg)
{
	volatile unsigned long *n = arg;

	CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
	pthread_cleanup_push(cleanup, (void *)10l);
	running = 1;
	for (;; ++*n)
		getppid();
	pthread_cleanup_pop(0);
	return NULL;
}

static void *later(void *arg)
{
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
	pthread_cleanup_push(cleanup, (void *)100l);
	running = 1;
	while (running)
		usleep(1000);
	CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL) == 0);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return arg;
}

static void cancel(void *(*f)(void *), void *arg)
{
	pthread_t t;
	void *result;

	running = 0;
	CHECK(pthread_create(&t, NULL, f, arg) == 0);
	while (!running)
		usleep(1000);
	CHECK(pthread_cancel(t) == 0);
	running = 0;
	CHECK(pthread_join(t, &result) == 0 && result == PTHREAD_CANCELED);
}

int main(void)
{
	static volatile unsigned long n;
	int fds[2];

	CHECK(pipe(fds) == 0);
	for (int i = 1; i <= 3; i++) {
		cancel(in_a_call, fds);
		cancel(counting, (void *)&n);
		cancel(later, NULL);
		CHECK(cleaned == 111 * i);
	}
	puts("ok");
	return 0;
}
