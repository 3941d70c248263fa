/* poll, select, pselect and epoll: ready, not ready, interrupted. */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "check.h"

static int fds[2];
static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void alarm_soon(void)
{
	struct itimerval t = {.it_value = {0, 20000}};

	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
}

static void writer_soon(void)
{
	if (fork() == 0) {
		usleep(20000);
		_exit(write(fds[1], "x", 1) != 1);
	}
}

static void done(void)
{
	char c;

	CHECK(read(fds[0], &c, 1) == 1 && wait(NULL) > 0);
}

static void with_poll(void)
{
	struct pollfd p[3] = {{fds[0], POLLIN, 0}, {-1, POLLIN, 0},
			      {999, POLLIN, 0}};

	CHECK(poll(p, 2, 0) == 0 && poll(p, 2, 10) == 0);
	CHECK(poll(p, 3, -1) == 1 && p[2].revents == POLLNVAL);
	alarm_soon();
	CHECK(poll(p, 2, 10000) == -1 && errno == EINTR && alarms == 1);
	writer_soon();
	CHECK(poll(p, 2, -1) == 1 && p[0].revents == POLLIN);
	done();
}

static void with_select(void)
{
	struct timeval tv = {0, 10000};
	struct timespec ts = {10, 0};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	CHECK(select(fds[0] + 1, &set, NULL, NULL, &tv) == 0);
	CHECK(!FD_ISSET(fds[0], &set) && tv.tv_sec == 0 && tv.tv_usec == 0);
	FD_SET(fds[0], &set);
	alarm_soon();
	CHECK(pselect(fds[0] + 1, &set, NULL, NULL, &ts, NULL) == -1 &&
	      errno == EINTR);
	FD_SET(fds[0], &set);
	writer_soon();
	CHECK(select(fds[0] + 1, &set, NULL, NULL, NULL) == 1);
	CHECK(FD_ISSET(fds[0], &set));
	done();
}

static void with_epoll(void)
{
	struct epoll_event ev = {EPOLLIN, {.u64 = 0x1234567890ul}}, got[4];
	int ep = epoll_create1(EPOLL_CLOEXEC);

	CHECK(ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &ev) == 0);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &ev) == -1 &&
	      errno == EEXIST);
	CHECK(epoll_wait(ep, got, 4, 0) == 0 && epoll_wait(ep, got, 4, 10) == 0);
	alarm_soon();
	CHECK(epoll_wait(ep, got, 4, -1) == -1 && errno == EINTR);
	writer_soon();
	CHECK(epoll_pwait(ep, got, 4, -1, NULL) == 1);
	CHECK(got[0].data.u64 == 0x1234567890ul && got[0].events == EPOLLIN);
	done();
	ev.events = EPOLLIN | EPOLLET | EPOLLONESHOT;
	CHECK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &ev) == 0);
	CHECK(write(fds[1], "ab", 2) == 2 && epoll_wait(ep, got, 4, -1) == 1);
	CHECK(epoll_wait(ep, got, 4, 0) == 0);
	CHECK(epoll_ctl(ep, EPOLL_CTL_DEL, fds[0], NULL) == 0);
}

int main(void)
{
	struct sigaction sa = {.sa_handler = on_alarm};

	CHECK(pipe(fds) == 0 && sigaction(SIGALRM, &sa, NULL) == 0);
	with_poll();
	with_select();
	with_epoll();
	puts("ok");
	return 0;
}
