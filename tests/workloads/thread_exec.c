/* execve by a thread that is not the first, with others blocked, busy
 * and ending at the same time: the process goes on under its own number. */
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static char *self, pid_text[16];

static void *blocks(void *arg)
{
	pause();
	return arg;
}

static void *busy(void *arg)
{
	for (;;)
		getppid();
	return arg;
}

static void *short_life(void *arg)
{
	return arg;
}

static void *executes(void *arg)
{
	usleep(5000);
	execl(self, self, pid_text, NULL);
	_exit(99);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	int status;

	if (argc == 2)
		return atoi(argv[1]) == getpid() ? 0 : 97;
	self = argv[0];
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			snprintf(pid_text, sizeof pid_text, "%d", getpid());
			pthread_create(&t, NULL, blocks, NULL);
			if (i == 1)
				pthread_create(&t, NULL, busy, NULL);
			pthread_create(&t, NULL, executes, NULL);
			for (int j = 0; j < 5; j++)
				pthread_create(&t, NULL, short_life, NULL);
			if (i == 2)
				pthread_exit(NULL);
			for (;;)
				pause();
		}
		CHECK(wait(&status) > 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	puts("ok");
	return 0;
}
