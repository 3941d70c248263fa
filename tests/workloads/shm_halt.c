/*
 * A process comes to share memory with another one, which maps the file that it
 * reads, at all kinds of moments: it computes, with signals or without, waits in
 * a call, is stopped, ends, is killed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "check.h"

enum kind { SPINS, COMPUTES, SIGNALLED, READS, SLEEPS, STOPPED, ENDS, KILLED,
	    KINDS };
enum { ROUNDS = 2, SIZE = 4096 };

static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

static int wait_for(volatile int *p, enum kind kind, int in)
{
	struct itimerval t = {{0, 1000}, {0, 1000}};
	volatile unsigned passes = 0;
	char c = 0;

	switch (kind) {
	case COMPUTES:
		while (!*p)
			for (int i = 0; i < 1000; i++)
				passes++;
		break;
	case SIGNALLED:
		signal(SIGALRM, on_tick);
		CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
		while (!*p || ticks < 3)
			passes++;
		break;
	case READS:
		CHECK(read(in, &c, 1) == 1 && c == 'x');
		break;
	case SLEEPS:
	case STOPPED:
		while (!*p)
			usleep(300);
		break;
	case ENDS:
		return 0;
	default:
		while (!*p)
			;
	}
	CHECK(*p == 1);
	return 0;
}

static int child(char **argv)
{
	int fd = open(argv[1], O_RDONLY), ready = atoi(argv[2]);
	void *p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(fd >= 0 && p != MAP_FAILED);
	CHECK(write(ready, "", 1) == 1);
	return wait_for(p, (enum kind)atoi(argv[4]), atoi(argv[3]));
}

static void start(const char *self, const char *name, int ready, int in, int kind)
{
	char a[16], b[16], c[16];

	snprintf(a, sizeof a, "%d", ready);
	snprintf(b, sizeof b, "%d", in);
	snprintf(c, sizeof c, "%d", kind);
	execl(self, self, name, a, b, c, NULL);
	_exit(99);
}

static void ended(pid_t pid, int expected)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(expected ? WIFSIGNALED(status) && WTERMSIG(status) == expected
		       : status == 0);
}

static void play(const char *self, enum kind kind, unsigned us)
{
	char name[] = "/tmp/shm_halt.XXXXXX", c;
	int fd = mkstemp(name), ready[2], in[2];
	volatile int *p;
	pid_t pid;

	CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0);
	CHECK(pipe(ready) == 0 && pipe(in) == 0);
	pid = fork();
	if (pid == 0)
		start(self, name, ready[1], in[0], kind);
	CHECK(read(ready[0], &c, 1) == 1);
	if (us)
		usleep(us);
	if (kind == STOPPED)
		CHECK(kill(pid, SIGSTOP) == 0);
	if (kind == KILLED)
		CHECK(kill(pid, SIGKILL) == 0);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	*p = 1;
	if (kind == STOPPED)
		CHECK(kill(pid, SIGCONT) == 0);
	CHECK(write(in[1], "x", 1) == 1);
	ended(pid, kind == KILLED ? SIGKILL : 0);
	CHECK(munmap((void *)(uintptr_t)p, SIZE) == 0);
	CHECK(unlink(name) == 0 && close(fd) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(close(ready[i]) == 0 && close(in[i]) == 0);
}

int main(int argc, char **argv)
{
	if (argc == 5)
		return child(argv);
	for (unsigned i = 0; i < ROUNDS; i++)
		for (int kind = 0; kind < KINDS; kind++)
			play(argv[0], (enum kind)kind, i * 2000);
	puts("ok");
	return 0;
}
