/* Processes with blocked threads: signals to a whole group, children by vfork
 * beside other threads, a storm of SIGCHLD, and a daemon made by two forks. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static int never[2], daemon_pipe[2];
static volatile sig_atomic_t ended, told;

static void on_child(int sig)
{
	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		ended++;
}

static void on_usr1(int sig)
{
	(void)sig;
	told++;
}

static void *block(void *arg)
{
	char byte;

	(void)arg;
	CHECK(read(never[0], &byte, 1) == 1);
	return NULL;
}

/* A thread that takes no signal: whoever waits for one gets it. */
static pthread_t start_blocked(void)
{
	sigset_t all, old;
	pthread_t th;

	sigfillset(&all);
	CHECK(pthread_sigmask(SIG_BLOCK, &all, &old) == 0);
	CHECK(pthread_create(&th, NULL, block, NULL) == 0);
	CHECK(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
	return th;
}

static void wait_for(volatile sig_atomic_t *what, int n)
{
	sigset_t mask, old;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGUSR1);
	CHECK(pthread_sigmask(SIG_BLOCK, &mask, &old) == 0);
	while (*what < n)
		sigsuspend(&old);
	CHECK(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
}

/* Members of a group of their own, with a thread that is blocked. */
static void member(pid_t group, int ready)
{
	CHECK(setpgid(0, group) == 0 || errno == EACCES);
	told = 0;
	start_blocked();
	CHECK(write(ready, "", 1) == 1);
	wait_for(&told, 1);
	_exit(7);
}

static void group(void)
{
	pid_t first = 0, pid;
	int ready[2], status;
	char byte;

	CHECK(pipe(ready) == 0);
	for (int i = 0; i < 3; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			member(first, ready[1]);
		first = first ? first : pid;
		CHECK(setpgid(pid, first) == 0 || errno == EACCES);
	}
	for (int i = 0; i < 3; i++)
		CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(kill(-first, SIGUSR1) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(waitpid(-first, &status, 0) > 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	}
	CHECK(kill(-first, SIGUSR1) == -1 && errno == ESRCH);
}

static void storm(void)
{
	signal(SIGCHLD, on_child);
	for (volatile int i = 0; i < 30; i++) {
		volatile pid_t pid = i % 2 ? fork() : vfork();

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(i);
	}
	wait_for(&ended, 30);
	CHECK(ended == 30);
	signal(SIGCHLD, SIG_DFL);
}

static void daemonise(void)
{
	pid_t pid = fork(), daemon;
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setsid() == getpid());
		if (fork() > 0)
			_exit(0);
		daemon = getpid();
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		CHECK(open("/dev/null", O_RDWR) == 0);
		CHECK(chdir("/") == 0 && getsid(0) != daemon);
		CHECK(write(daemon_pipe[1], &daemon, sizeof daemon) ==
		      sizeof daemon);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(read(daemon_pipe[0], &daemon, sizeof daemon) == sizeof daemon);
	CHECK(daemon != pid && daemon > 0);
}

int main(void)
{
	pthread_t th[2];

	CHECK(pipe(never) == 0 && pipe(daemon_pipe) == 0);
	signal(SIGUSR1, on_usr1);
	for (int i = 0; i < 2; i++)
		th[i] = start_blocked();
	group();
	storm();
	daemonise();
	CHECK(write(never[1], "ab", 2) == 2);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(th[i], NULL) == 0);
	puts("ok");
	return 0;
}
