/* Threads that end their process while others are in system calls: by a fault,
 * by abort, by a file that is too large; a timer that signals one thread; and
 * memory that an address-space limit refuses. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static int never[2];

static void *block(void *arg)
{
	char bytes[64];

	(void)arg;
	CHECK(read(never[0], bytes, sizeof bytes) == -1);
	return NULL;
}

static void *wait_long(void *arg)
{
	struct timespec long_time = {100, 0};

	nanosleep(&long_time, NULL);
	return arg;
}

static void *die(void *arg)
{
	int how = *(int *)arg, fd;
	struct rlimit small = {4096, 4096};

	usleep(500);
	switch (how) {
	case SIGSEGV:
		*(volatile int *)arg = *(volatile int *)((char *)arg - (1L << 46));
		break;
	case SIGABRT:
		abort();
	case SIGXFSZ:
		fd = memfd_create("large", 0);
		CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
		CHECK(ftruncate(fd, 4097) == 0);
		break;
	case SIGILL:
		__builtin_trap();
	}
	return NULL;
}

static void end_by(int sig)
{
	const struct rlimit no_core = {0, 0};
	pthread_t th[4];
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setrlimit(RLIMIT_CORE, &no_core) == 0);
		CHECK(pthread_create(&th[0], NULL, block, NULL) == 0);
		CHECK(pthread_create(&th[1], NULL, wait_long, NULL) == 0);
		CHECK(pthread_create(&th[2], NULL, die, &sig) == 0);
		pthread_join(th[1], NULL);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == sig);
	CHECK(!WCOREDUMP(status));
}

static volatile sig_atomic_t ticks;
static volatile pid_t ticked;

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
	ticked = (pid_t)syscall(SYS_gettid);
}

static void *be_ticked(void *arg)
{
	pid_t me = (pid_t)syscall(SYS_gettid);
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID,
			      .sigev_signo = SIGRTMIN};
	struct itimerspec when = {{0, 2000000}, {0, 2000000}};
	timer_t timer;

	ev._sigev_un._tid = me;
	CHECK(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0);
	CHECK(timer_settime(timer, 0, &when, NULL) == 0);
	while (ticks < 5)
		usleep(500);
	CHECK(timer_delete(timer) == 0);
	CHECK(ticked == me);
	return arg;
}

static void limits(void)
{
	struct rlimit old, small;
	void *p;

	CHECK(getrlimit(RLIMIT_AS, &old) == 0);
	small = (struct rlimit){512ul << 20, old.rlim_max};
	CHECK(setrlimit(RLIMIT_AS, &small) == 0);
	p = mmap(NULL, 1ul << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p == MAP_FAILED && errno == ENOMEM);
	CHECK(setrlimit(RLIMIT_AS, &old) == 0);
}

int main(void)
{
	pthread_t th[2];

	CHECK(pipe(never) == 0);
	signal(SIGRTMIN, on_tick);
	end_by(SIGSEGV);
	end_by(SIGABRT);
	end_by(SIGXFSZ);
	end_by(SIGILL);
	CHECK(pthread_create(&th[0], NULL, wait_long, NULL) == 0);
	CHECK(pthread_create(&th[1], NULL, be_ticked, NULL) == 0);
	CHECK(pthread_join(th[1], NULL) == 0);
	limits();
	puts("ok");
	return 0;
}
