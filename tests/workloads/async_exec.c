/* execve by a thread while another computes without system calls. */
#include <pthread.h>

#include "check.h"

static char *self;

static void *computes(void *arg)
{
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void *executes(void *arg)
{
	usleep(5000);
	execl(self, self, "again", NULL);
	_exit(99);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (argc == 2) {
		puts("ok");
		return 0;
	}
	self = argv[0];
	CHECK(pthread_create(&t, NULL, computes, NULL) == 0);
	CHECK(pthread_create(&t, NULL, executes, NULL) == 0);
	for (;;)
		pause();
}
