/*
 * Handlers on the normal and the alternate stack, nested, interrupting
 * blocking calls, with SA_RESTART and without, and signals sent to oneself.
 * Verifies itself; prints "ok" and nothing that differs between runs.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t usr1, usr2, alarms, info_pid, on_altstack;
static char altstack[65536];

#define CHECK(cond)                                                  \
	do {                                                         \
		if (!(cond)) {                                       \
			printf("line %d: %s\n", __LINE__, #cond);    \
			exit(1);                                     \
		}                                                    \
	} while (0)

static void on_usr1(int sig, siginfo_t *si, void *uc)
{
	char here;

	(void)sig;
	(void)uc;
	usr1++;
	info_pid = si->si_pid;
	on_altstack = &here >= altstack && &here < altstack + sizeof altstack;
	if (usr1 == 1)
		raise(SIGUSR2); /* nested */
}

static void on_usr2(int sig)
{
	(void)sig;
	usr2++;
}

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void set(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

	CHECK(sigaction(sig, &sa, NULL) == 0);
}

static void self_sent(void)
{
	struct sigaction sa = {.sa_sigaction = on_usr1,
			       .sa_flags = SA_SIGINFO | SA_ONSTACK};
	stack_t ss = {.ss_sp = altstack, .ss_size = sizeof altstack};

	CHECK(sigaltstack(&ss, NULL) == 0);
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	set(SIGUSR2, on_usr2, 0);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	CHECK(usr1 == 1 && usr2 == 1); /* delivered before kill returned */
	CHECK(info_pid == getpid() && on_altstack);
}

static void masked(void)
{
	sigset_t set1, pending;

	sigemptyset(&set1);
	sigaddset(&set1, SIGUSR2);
	CHECK(sigprocmask(SIG_BLOCK, &set1, NULL) == 0);
	CHECK(raise(SIGUSR2) == 0 && usr2 == 1);
	CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR2));
	CHECK(sigprocmask(SIG_UNBLOCK, &set1, NULL) == 0);
	CHECK(usr2 == 2);
}

static void interrupted(void)
{
	struct itimerval once = {.it_value = {0, 20000}};
	struct timespec second = {5, 0}, rem = {0};
	int fds[2];
	char byte;

	set(SIGALRM, on_alarm, 0);
	CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
	CHECK(nanosleep(&second, &rem) == -1 && errno == EINTR);
	CHECK(alarms == 1 && (rem.tv_sec == 4 || rem.tv_sec == 5));
	CHECK(pipe(fds) == 0);
	CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
	CHECK(read(fds[0], &byte, 1) == -1 && errno == EINTR && alarms == 2);
	/* With SA_RESTART the read goes on until the child writes. */
	set(SIGALRM, on_alarm, SA_RESTART);
	CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
	if (fork() == 0) {
		usleep(60000);
		_exit(write(fds[1], "x", 1) != 1);
	}
	CHECK(read(fds[0], &byte, 1) == 1 && byte == 'x' && alarms == 3);
	CHECK(wait(NULL) > 0);
	set(SIGALRM, on_alarm, 0);
	CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
	CHECK(pause() == -1 && errno == EINTR && alarms == 4);
}

static void ignored(void)
{
	struct itimerval once = {.it_value = {0, 10000}};
	struct timespec t = {0, 50000000};

	signal(SIGALRM, SIG_IGN);
	CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
	CHECK(nanosleep(&t, NULL) == 0); /* restarted by the kernel */
	signal(SIGCHLD, SIG_DFL);
	for (int i = 0; i < 20; i++)
		if (fork() == 0)
			_exit(i);
	for (int i = 0; i < 20; i++)
		CHECK(wait(NULL) > 0);
	CHECK(wait(NULL) == -1 && errno == ECHILD);
}

int main(void)
{
	self_sent();
	masked();
	interrupted();
	ignored();
	puts("ok");
	return 0;
}
