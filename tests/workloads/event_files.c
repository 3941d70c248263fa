/* eventfd, timerfd, signalfd, inotify and pidfd. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "check.h"

static void events(void)
{
	uint64_t n = 5;
	int fd = eventfd(2, EFD_NONBLOCK), sem = eventfd(2, EFD_SEMAPHORE);

	CHECK(write(fd, &n, 8) == 8 && read(fd, &n, 8) == 8 && n == 7);
	CHECK(read(fd, &n, 8) == -1 && errno == EAGAIN);
	CHECK(read(sem, &n, 8) == 8 && n == 1 && read(sem, &n, 8) == 8);
	if (fork() == 0) {
		usleep(10000);
		n = 1;
		_exit(write(sem, &n, 8) != 8);
	}
	CHECK(read(sem, &n, 8) == 8 && n == 1 && wait(NULL) > 0);
}

static void timers(void)
{
	struct itimerspec t = {{0, 5000000}, {0, 5000000}}, left;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t n, total = 0;

	CHECK(fd >= 0 && timerfd_settime(fd, 0, &t, NULL) == 0);
	while (total < 5) {
		CHECK(read(fd, &n, 8) == 8 && n > 0);
		total += n;
	}
	CHECK(timerfd_gettime(fd, &left) == 0);
	CHECK(left.it_interval.tv_nsec == 5000000 &&
	      left.it_value.tv_nsec <= 5000000);
}

static void signals(void)
{
	struct signalfd_siginfo si[2];
	union sigval v = {.sival_int = 42};
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	CHECK((fd = signalfd(-1, &set, SFD_CLOEXEC)) >= 0);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	CHECK(sigqueue(getpid(), SIGRTMIN, v) == 0);
	CHECK(read(fd, si, sizeof si) == sizeof si);
	CHECK(si[0].ssi_signo == SIGUSR1 && si[0].ssi_pid == (uint32_t)getpid());
	CHECK(si[1].ssi_signo == (uint32_t)SIGRTMIN && si[1].ssi_int == 42);
	if (fork() == 0) {
		usleep(10000);
		_exit(kill(getppid(), SIGUSR1));
	}
	CHECK(read(fd, si, sizeof *si) == sizeof *si && wait(NULL) > 0);
}

static void watches(void)
{
	char dir[] = "/tmp/event_files.XXXXXX", name[64];
	char buf[512] __attribute__((aligned(8)));
	struct inotify_event *ev = (struct inotify_event *)buf;
	int fd = inotify_init1(0);

	CHECK(mkdtemp(dir) && inotify_add_watch(fd, dir, IN_CREATE) >= 0);
	snprintf(name, sizeof name, "%s/made", dir);
	CHECK(close(open(name, O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(read(fd, buf, sizeof buf) > (ssize_t)sizeof *ev);
	CHECK(ev->mask == IN_CREATE && strcmp(ev->name, "made") == 0);
	CHECK(unlink(name) == 0 && rmdir(dir) == 0);
}

static void process_file(void)
{
	pid_t pid = fork();
	siginfo_t si;
	int fd;

	if (pid == 0)
		for (;;)
			pause();
	CHECK((fd = (int)syscall(SYS_pidfd_open, pid, 0)) >= 0);
	CHECK(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0);
	CHECK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1) == 1);
	CHECK(waitid(P_PIDFD, (id_t)fd, &si, WEXITED) == 0);
	CHECK(si.si_code == CLD_KILLED && si.si_status == SIGKILL);
}

int main(void)
{
	events();
	timers();
	signals();
	watches();
	process_file();
	puts("ok");
	return 0;
}
