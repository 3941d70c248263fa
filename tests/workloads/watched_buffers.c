/* Threads watch memory that blocked calls of another thread fill: pieces of
 * it, and when they come, decide what the watchers do. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

#define N 40

static volatile unsigned char buffer[3][4096];
static volatile siginfo_t info;
static volatile int status;
static volatile struct pollfd fds[2];
static struct epoll_event event;
static volatile struct timeval timeout;
static atomic_int done;
static int pair[2];
static uint64_t seen[2];

static uint64_t mix(uint64_t h, uint64_t v)
{
	return (h ^ v) * 0x100000001b3u;
}

static uint64_t look(uint64_t h)
{
	for (int i = 0; i < 3; i++)
		for (size_t k = 0; k < sizeof buffer[i]; k += 64)
			h = mix(h, buffer[i][k]);
	h = mix(h, (uint64_t)info.si_pid + (uint64_t)status);
	h = mix(h, (uint64_t)(fds[0].revents + fds[1].revents));
	h = mix(h, *(volatile uint32_t *)&event.events);
	return mix(h, (uint64_t)timeout.tv_usec);
}

/* What is seen is an argument of a call, and decides how many follow. */
static void *watch(void *arg)
{
	uint64_t *out = arg, h = 0;

	while (!done) {
		h = look(h);
		for (uint64_t n = h % 3; n > 0; n--)
			CHECK(pwrite(-1, &h, sizeof h, 0) == -1);
		sched_yield();
	}
	*out = h;
	return NULL;
}

static void send_all(const void *data, size_t n)
{
	CHECK(write(pair[1], data, n) == (ssize_t)n);
}

static void *feed(void *arg)
{
	static unsigned char data[3 * 4096];

	(void)arg;
	for (int i = 0; i < N; i++) {
		memset(data, i + 1, sizeof data);
		send_all(data, 4096);
		usleep(300);
		send_all(data, sizeof data);
		usleep(300);
		send_all("x", 1);
		usleep(300);
		send_all("y", 1);
		usleep(300);
	}
	return NULL;
}

static void receive_message(void)
{
	struct iovec iov[3];
	char control[256];
	struct sockaddr_storage name;
	struct msghdr msg = {.msg_name = &name, .msg_namelen = sizeof name,
			     .msg_iov = iov, .msg_iovlen = 3,
			     .msg_control = control,
			     .msg_controllen = sizeof control};
	ssize_t n;

	for (int i = 0; i < 3; i++)
		iov[i] = (struct iovec){(void *)(uintptr_t)buffer[i], 4096};
	n = recvmsg(pair[0], &msg, MSG_WAITALL);
	CHECK(n == 3 * 4096);
	CHECK(msg.msg_iov == iov && msg.msg_control == control);
	CHECK(msg.msg_iovlen == 3 && msg.msg_controllen == 0);
	CHECK(iov[1].iov_base == (void *)(uintptr_t)buffer[1]);
}

static void wait_for_child(int i)
{
	pid_t pid = fork();
	int s;

	CHECK(pid >= 0);
	if (pid == 0) {
		usleep(500);
		_exit(i);
	}
	CHECK(waitid(P_PID, (id_t)pid, (siginfo_t *)(uintptr_t)&info,
		     WEXITED | WNOWAIT) == 0);
	CHECK(info.si_pid == pid);
	CHECK(wait4(pid, (int *)(uintptr_t)&status, 0, NULL) == pid);
	s = status;
	CHECK(WIFEXITED(s) && WEXITSTATUS(s) == i);
}

static void wait_for_input(int ep)
{
	char byte;
	fd_set set;

	fds[0] = (struct pollfd){.fd = pair[0], .events = POLLIN};
	fds[1] = (struct pollfd){.fd = -1, .events = POLLIN};
	CHECK(poll((struct pollfd *)(uintptr_t)fds, 2, -1) == 1);
	CHECK(fds[0].revents == POLLIN && fds[0].fd == pair[0]);
	CHECK(read(pair[0], &byte, 1) == 1 && byte == 'x');
	CHECK(epoll_wait(ep, &event, 1, -1) == 1);
	CHECK(event.data.u32 == 77);
	FD_ZERO(&set);
	FD_SET(pair[0], &set);
	timeout.tv_sec = 10;
	timeout.tv_usec = 0;
	CHECK(select(pair[0] + 1, &set, NULL, NULL,
		     (struct timeval *)(uintptr_t)&timeout) == 1);
	CHECK(FD_ISSET(pair[0], &set));
	CHECK(read(pair[0], &byte, 1) == 1 && byte == 'y');
}

/* Pointers that are not the program's to write to are still refused. */
static void bad_pointers(void)
{
	struct timespec soon = {0, 1000000};
	void *volatile bad = (void *)8;
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED);
	CHECK(mprotect(pages + 4096, 4096, PROT_READ) == 0);
	send_all("0123456789", 10);
	errno = 0;
	CHECK(read(pair[0], bad, 1) == -1 && errno == EFAULT);
	CHECK(read(pair[0], pages + 4096, 1) == -1 && errno == EFAULT);
	CHECK(poll(bad, 1, 1) == -1 && errno == EFAULT);
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &soon, bad) == 0);
	/* As much as there is room for. */
	CHECK(read(pair[0], pages + 4092, 4) == 4);
	CHECK(memcmp(pages + 4092, "0123", 4) == 0);
	errno = 0;
	CHECK(read(pair[0], pages + 4094, 6) == -1 && errno == EFAULT);
	CHECK(read(pair[0], (void *)(uintptr_t)buffer[0], 6) == 6);
	CHECK(memcmp((void *)(uintptr_t)buffer[0], "456789", 6) == 0);
	CHECK(munmap(pages, 8192) == 0);
}

int main(void)
{
	struct epoll_event interest = {.events = EPOLLIN, .data.u32 = 77};
	pthread_t watchers[2], feeder;
	int ep = epoll_create1(0);

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, pair[0], &interest) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&watchers[i], NULL, watch, &seen[i]) == 0);
	bad_pointers();
	CHECK(pthread_create(&feeder, NULL, feed, NULL) == 0);
	for (int i = 0; i < N; i++) {
		ssize_t got = 0;

		while (got < 4096) {
			ssize_t n = read(pair[0], (void *)(uintptr_t)
					 (buffer[0] + got), 4096 - (size_t)got);
			CHECK(n > 0);
			got += n;
		}
		receive_message();
		wait_for_input(ep);
		if (i % 8 == 0)
			wait_for_child(i);
	}
	done = 1;
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(watchers[i], NULL) == 0);
	CHECK(pthread_join(feeder, NULL) == 0);
	printf("%llx\n", (unsigned long long)(seen[0] ^ seen[1]));
	puts("ok");
	return 0;
}
