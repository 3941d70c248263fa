/* Fifty short children at a time, and children of children that are left. */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

static void fifty(void)
{
	int status, sum = 0;

	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(i);
	}
	for (int i = 0; i < 50; i++) {
		CHECK(wait(&status) > 0 && WIFEXITED(status));
		sum += WEXITSTATUS(status);
	}
	CHECK(sum == 49 * 50 / 2);
}

/* A grandchild whose parent has gone comes to the subreaper. */
static void orphans(void)
{
	int status, seen = 0;

	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	for (int i = 0; i < 5; i++) {
		if (fork() == 0) {
			if (fork() == 0) {
				usleep(10000);
				_exit(9);
			}
			_exit(8);
		}
	}
	while (wait(&status) > 0)
		seen += WEXITSTATUS(status);
	CHECK(errno == ECHILD && seen == 5 * 17);
}

int main(void)
{
	fifty();
	orphans();
	puts("ok");
	return 0;
}
