/* Threads that compute for longer than a turn lasts, without a lock and
 * without system calls, while signals come that interrupt nothing that could
 * be named: handled, ignored, and a stop. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "check.h"

enum { THREADS = 3, ROUNDS = 10000000 };

static volatile unsigned long plain;
static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

static void *work(void *arg)
{
	for (unsigned long i = 0; i < ROUNDS; i++)
		plain = plain * 3 + i;
	CHECK(pwrite(-1, (void *)(uintptr_t)&plain, sizeof plain, 0) == -1);
	return arg;
}

/* Sends the parent what it ignores, and stops it for a moment. */
static pid_t disturb(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid != 0)
		return pid;
	for (int i = 0; i < 20; i++) {
		usleep(5000);
		kill(getppid(), i % 4 ? SIGUSR1 : SIGSTOP);
		kill(getppid(), SIGCONT);
	}
	_exit(0);
}

int main(void)
{
	struct itimerval t = {{0, 5000}, {0, 5000}};
	pthread_t th[THREADS];
	pid_t pid;

	signal(SIGALRM, on_tick);
	signal(SIGUSR1, SIG_IGN);
	pid = disturb();
	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&th[i], NULL, work, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(th[i], NULL) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	printf("%lu %d\nok\n", plain, (int)ticks);
	return 0;
}
