/* A program with a bug that hardly ever shows: a thread announces what it
 * stores only after the announcement.  Fails with status 3 when the other one
 * comes between, with 40 system calls of its own. */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "check.h"

enum { ROUNDS = 20 };

static volatile int announced, stored, taken;

static void call(int n)
{
	for (int i = 0; i < n; i++)
		CHECK(syscall(SYS_getppid) > 0);
}

static void *reader(void *arg)
{
	for (int i = 1; i <= ROUNDS; i++) {
		while (announced < i)
			sched_yield();
		call(40);
		if (stored < i) {
			puts("too early");
			fflush(stdout);
			_exit(3);
		}
		taken = i;
	}
	return arg;
}

int main(void)
{
	pthread_t th;

	CHECK(pthread_create(&th, NULL, reader, NULL) == 0);
	for (int i = 1; i <= ROUNDS; i++) {
		announced = i;
		call(1);
		stored = i;
		while (taken < i)
			sched_yield();
	}
	CHECK(pthread_join(th, NULL) == 0);
	puts("ok");
	return 0;
}
