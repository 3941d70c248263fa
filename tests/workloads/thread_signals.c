/* Signals sent to single threads, blocked in some of them, and to the
 * process, which any thread that lets them in may take. */
#include <pthread.h>
#include <signal.h>

#include "check.h"

static __thread volatile sig_atomic_t mine;
static _Atomic int total, up;
static _Atomic int stop;

static void on_usr1(int sig)
{
	(void)sig;
	mine++;
	total++;
}

static void *idle(void *arg)
{
	up++;
	while (!stop)
		usleep(2000);
	return arg ? arg : (void *)(long)mine;
}

static void *blocked(void *arg)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	up++;
	CHECK(sigwait(&set, &sig) == 0 && sig == SIGUSR1 && mine == 0);
	return arg;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};
	pthread_t a, b, w;
	void *n;

	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	CHECK(pthread_create(&a, NULL, idle, NULL) == 0);
	CHECK(pthread_create(&b, NULL, idle, NULL) == 0);
	CHECK(pthread_create(&w, NULL, blocked, NULL) == 0);
	while (up < 3)
		usleep(1000);
	for (int i = 1; i <= 10; i++) {
		CHECK(pthread_kill(i % 2 ? a : b, SIGUSR1) == 0);
		while (total < i)
			usleep(500);
	}
	CHECK(mine == 0 && pthread_kill(pthread_self(), SIGUSR1) == 0);
	CHECK(mine == 1);
	CHECK(pthread_kill(w, SIGUSR1) == 0 && pthread_join(w, NULL) == 0);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	while (total < 12)
		usleep(500);
	stop = 1;
	CHECK(pthread_join(a, &n) == 0 && (long)n >= 5);
	CHECK(pthread_join(b, &n) == 0 && (long)n >= 5);
	puts("ok");
	return 0;
}
