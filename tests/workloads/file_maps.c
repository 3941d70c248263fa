/* Files mapped privately, many times over and at the same places: while SIGTRAP
 * is ignored, blocked or has a handler, while an alarm goes off, by threads side
 * by side, and by a child. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "check.h"

enum { PAGE = 4096, PAGES = 4, ROUNDS = 25 };

static volatile sig_atomic_t traps, alarms;

static void on_trap(int sig)
{
	(void)sig;
	traps++;
}

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

/* A file without a name whose pages begin with a letter each, the first one with
 * what is given; open to be read alone, so that nobody expects it to grow. */
static int make_file_of(char first, const void *begin, size_t n)
{
	char name[] = "/tmp/file_maps.XXXXXX", page[PAGE] = {0};
	int fd = mkstemp(name), own;

	CHECK(fd >= 0);
	for (int i = 0; i < PAGES; i++) {
		page[0] = (char)(first + i);
		CHECK(write(fd, page, PAGE) == PAGE);
	}
	CHECK(pwrite(fd, begin, n, 0) == (ssize_t)n);
	own = open(name, O_RDONLY);
	CHECK(own >= 0 && unlink(name) == 0);
	close(fd);
	return own;
}

static int make_file(char first)
{
	return make_file_of(first, &first, 1);
}

static char *map(void *at, int prot, int flags, int fd, int page)
{
	char *p = mmap(at, PAGE * (size_t)(PAGES - page), prot,
		       MAP_PRIVATE | flags, fd, (off_t)PAGE * page);

	CHECK(p != MAP_FAILED && (!at || p == at));
	return p;
}

/* Over each other, as a loader does, and back. */
static void one_round(int a, int b)
{
	char *p = map(NULL, PROT_READ, 0, a, 0);

	CHECK(p[0] == 'a' && p[3 * PAGE] == 'd');
	map(p + PAGE, PROT_READ | PROT_WRITE, MAP_FIXED, b, 1);
	CHECK(p[0] == 'a' && p[PAGE] == 'B' && p[3 * PAGE] == 'D');
	p[PAGE] = 'x';
	map(p + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_ANONYMOUS, -1,
	    2);
	CHECK(p[PAGE] == 'x' && p[2 * PAGE] == 0 && p[3 * PAGE] == 0);
	map(p + PAGE, PROT_READ, MAP_FIXED, a, 1);
	CHECK(p[PAGE] == 'b');
	CHECK(munmap(p, PAGES * PAGE) == 0);
}

/* mov $k, %eax; syscall; ret, where k is getpid: a site in mapped code. */
static void code(void)
{
	static const uint8_t bytes[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
	int one = make_file_of('a', bytes, sizeof bytes);
	int other = make_file('a');
	int (*call)(void);
	char *p;

	for (int i = 0; i < 5; i++) {
		p = map(NULL, PROT_READ | PROT_EXEC, 0, one, 0);
		memcpy(&call, &p, sizeof call);
		CHECK(call() == getpid() && call() == getpid());
		/* Something else in its place, then it again. */
		map(p, PROT_READ, MAP_FIXED, other, 0);
		CHECK(p[0] == 'a');
		map(p, PROT_READ | PROT_EXEC, MAP_FIXED, one, 0);
		CHECK(call() == getpid());
		map(p, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_ANONYMOUS, -1, 0);
		CHECK(p[0] == 0 && p[6] == 0);
		CHECK(munmap(p, PAGES * PAGE) == 0);
	}
	close(one);
	close(other);
}

static void fails(int prot, int flags, int fd, off_t offset, int error)
{
	for (int i = 0; i < 2; i++)
		CHECK(mmap(NULL, PAGE, prot, flags, fd, offset) ==
		      MAP_FAILED && errno == error);
}

static void failing(void)
{
	int fd = make_file('a'), ends[2], dir = open("/", O_RDONLY);
	int zero = open("/dev/zero", O_RDWR);
	char *p;

	CHECK(pipe(ends) == 0 && dir >= 0 && zero >= 0);
	fails(PROT_READ, MAP_PRIVATE, 999, 0, EBADF);
	fails(PROT_READ, MAP_PRIVATE, ends[0], 0, ENODEV);
	fails(PROT_READ, MAP_PRIVATE, ends[1], 0, EACCES);
	fails(PROT_READ, MAP_PRIVATE, dir, 0, ENODEV);
	fails(PROT_READ, MAP_PRIVATE, fd, 1, EINVAL);
	fails(PROT_READ, 0, fd, 0, EINVAL);
	p = map(NULL, PROT_READ | PROT_WRITE, 0, zero, 0);
	CHECK(p[0] == 0 && (p[0] = 1) == 1);
	CHECK(munmap(p, PAGES * PAGE) == 0);
	close(fd);
	close(dir);
	close(zero);
	close(ends[0]);
	close(ends[1]);
}

static void *rounds(void *arg)
{
	int a = make_file('a'), b = make_file('A');

	for (int i = 0; i < ROUNDS; i++)
		one_round(a, b);
	close(a);
	close(b);
	return arg;
}

/* What the program has made of SIGTRAP stays as it is. */
static void trapped(void)
{
	struct sigaction handler = {.sa_handler = on_trap}, now;
	sigset_t trap, set;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	signal(SIGTRAP, SIG_IGN);
	rounds(NULL);
	CHECK(sigaction(SIGTRAP, NULL, &now) == 0 &&
	      now.sa_handler == SIG_IGN);
	CHECK(sigaction(SIGTRAP, &handler, NULL) == 0);
	CHECK(sigprocmask(SIG_BLOCK, &trap, NULL) == 0);
	rounds(NULL);
	CHECK(raise(SIGTRAP) == 0 && traps == 0);
	rounds(NULL);
	CHECK(sigprocmask(SIG_SETMASK, NULL, &set) == 0 &&
	      sigismember(&set, SIGTRAP));
	CHECK(sigprocmask(SIG_UNBLOCK, &trap, NULL) == 0 && traps == 1);
	rounds(NULL);
	CHECK(sigaction(SIGTRAP, NULL, &now) == 0 &&
	      now.sa_handler == on_trap && traps == 1);
	signal(SIGTRAP, SIG_DFL);
}

static void interrupted(void)
{
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};

	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	while (alarms < 5)
		rounds(NULL);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

int main(void)
{
	pthread_t thread[3];
	int status;
	pid_t pid;

	rounds(NULL);
	code();
	failing();
	trapped();
	interrupted();
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, rounds, NULL) == 0);
	code();
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		rounds(NULL);
		code();
		_exit(7);
	}
	rounds(NULL);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	puts("ok");
	return 0;
}
