/* A thread that calls exit while others are blocked and busy: all end, and
 * what was left to do at exit is done once. */
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static int fds[2];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void at_exit(void)
{
	CHECK(write(fds[1], "e", 1) == 1);
}

static void *reads(void *arg)
{
	char c;

	(void)!read(*(int *)arg, &c, 1);
	return NULL;
}

static void *waits(void *arg)
{
	pthread_mutex_lock(&held);
	return arg;
}

static void *busy(void *arg)
{
	for (;;)
		getppid();
	return arg;
}

static void *exits(void *arg)
{
	usleep(10000);
	exit((int)(long)arg);
}

static void process(int how)
{
	pthread_t t;
	int idle[2];

	CHECK(pipe(idle) == 0 && pthread_mutex_lock(&held) == 0);
	CHECK(pthread_create(&t, NULL, reads, idle) == 0);
	CHECK(pthread_create(&t, NULL, waits, NULL) == 0);
	if (how == 1)
		CHECK(pthread_create(&t, NULL, busy, NULL) == 0);
	CHECK(pthread_create(&t, NULL, exits, (void *)(long)how) == 0);
	if (how == 2)
		pthread_exit(NULL); /* the first thread ends before */
	for (;;)
		pause();
}

int main(void)
{
	char c;
	int status;

	CHECK(pipe(fds) == 0);
	for (int how = 0; how < 3; how++) {
		if (fork() == 0) {
			atexit(at_exit);
			process(how);
		}
		CHECK(wait(&status) > 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == how);
		CHECK(read(fds[0], &c, 1) == 1 && c == 'e');
	}
	puts("ok");
	return 0;
}
