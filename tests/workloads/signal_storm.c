/* Signals that interrupt calls all the time: SIGCHLD of many children and
 * queued real-time signals, with SA_RESTART. */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

enum { CHILDREN = 40, QUEUED = 200 };

static volatile sig_atomic_t reaped, queued, in_order = 1;

static void on_child(int sig)
{
	int saved = errno;

	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		reaped++;
	errno = saved;
}

static void on_queued(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	in_order &= si->si_value.sival_int == queued;
	queued++;
}

static void children(void)
{
	struct sigaction sa = {.sa_handler = on_child, .sa_flags = SA_RESTART};
	int fds[2], sum = 0;
	unsigned char c;

	CHECK(sigaction(SIGCHLD, &sa, NULL) == 0 && pipe(fds) == 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			c = (unsigned char)i;
			_exit(write(fds[1], &c, 1) != 1);
		}
		if (i % 4 == 0) {
			CHECK(read(fds[0], &c, 1) == 1); /* never EINTR */
			sum += c;
		}
	}
	close(fds[1]);
	while (read(fds[0], &c, 1) == 1)
		sum += c;
	CHECK(sum == CHILDREN * (CHILDREN - 1) / 2);
	while (reaped < CHILDREN)
		usleep(1000);
}

static void real_time(void)
{
	struct sigaction sa = {.sa_sigaction = on_queued,
			       .sa_flags = SA_SIGINFO | SA_RESTART};
	pid_t parent = getpid(), pid;
	int fds[2];
	char c;

	CHECK(sigaction(SIGRTMIN, &sa, NULL) == 0 && pipe(fds) == 0);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < QUEUED; i++)
			while (sigqueue(parent, SIGRTMIN,
					(union sigval){.sival_int = i}) < 0)
				usleep(1000);
		_exit(write(fds[1], "x", 1) != 1);
	}
	CHECK(read(fds[0], &c, 1) == 1);
	while (queued < QUEUED)
		usleep(1000);
	CHECK(in_order && queued == QUEUED);
}

int main(void)
{
	children();
	real_time();
	puts("ok");
	return 0;
}
