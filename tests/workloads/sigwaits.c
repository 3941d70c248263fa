/* Waiting for signals: sigwait, sigwaitinfo, sigtimedwait, sigsuspend, ppoll
 * with a mask. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static volatile sig_atomic_t seen;

static void on_signal(int sig)
{
	seen = sig;
}

static void from_child(int sig)
{
	if (fork() == 0) {
		usleep(10000);
		_exit(kill(getppid(), sig));
	}
}

int main(void)
{
	struct timespec t = {0, 10000000}, l = {10, 0};
	struct sigaction sa = {.sa_handler = on_signal};
	sigset_t set, open;
	siginfo_t si;
	int sig;

	sigemptyset(&open);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	CHECK(sigaction(SIGUSR2, &sa, NULL) == 0);
	for (int i = 0; i < 5; i++) {
		from_child(SIGUSR1);
		CHECK(sigwait(&set, &sig) == 0 && sig == SIGUSR1);
		CHECK(wait(NULL) > 0);
	}
	CHECK(raise(SIGUSR1) == 0 && sigwaitinfo(&set, &si) == SIGUSR1);
	CHECK(si.si_pid == getpid() && si.si_signo == SIGUSR1);
	CHECK(sigtimedwait(&set, &si, &t) == -1 && errno == EAGAIN);
	from_child(SIGUSR1);
	CHECK(sigtimedwait(&set, &si, &l) == SIGUSR1 && wait(NULL) > 0);
	CHECK(ppoll(NULL, 0, &t, &open) == 0);
	from_child(SIGUSR2);
	CHECK(ppoll(NULL, 0, &l, &open) == -1 && errno == EINTR);
	CHECK(seen == SIGUSR2 && wait(NULL) > 0);
	seen = 0;
	CHECK(raise(SIGUSR2) == 0 && seen == 0); /* blocked again */
	CHECK(ppoll(NULL, 0, &l, &open) == -1 && seen == SIGUSR2);
	seen = 0;
	from_child(SIGUSR2);
	CHECK(sigsuspend(&open) == -1 && errno == EINTR && seen == SIGUSR2);
	CHECK(wait(NULL) > 0);
	puts("ok");
	return 0;
}
