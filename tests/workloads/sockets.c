/* sendmsg and recvmsg with descriptors and credentials, sockets of several
 * kinds, and what goes through them. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

static void send_descriptor(int to, int fd)
{
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec io[] = {{"he", 2}, {"re", 2}};
	struct msghdr m = {.msg_iov = io, .msg_iovlen = 2,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	CHECK(sendmsg(to, &m, 0) == 4);
}

static int receive_descriptor(int from)
{
	union {
		struct cmsghdr h;
		char bytes[200];
	} control;
	char a[3], b[100];
	struct iovec io[] = {{a, sizeof a}, {b, sizeof b}};
	struct msghdr m = {.msg_iov = io, .msg_iovlen = 2,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	int fd = -1;

	CHECK(recvmsg(from, &m, MSG_CMSG_CLOEXEC) == 4);
	CHECK(memcmp(a, "her", 3) == 0 && b[0] == 'e');
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(c), sizeof fd);
	return fd;
}

static void rights(void)
{
	int pair[2], fds[2], fd, on = 1, status;
	char c;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
	if (fork() == 0) {
		CHECK(pipe(fds) == 0);
		send_descriptor(pair[1], fds[0]);
		CHECK(write(fds[1], "z", 1) == 1);
		_exit(0);
	}
	fd = receive_descriptor(pair[0]);
	CHECK(fd >= 0 && read(fd, &c, 1) == 1 && c == 'z');
	CHECK(wait(&status) > 0 && status == 0);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

static void tcp(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0), s, status;
	char text[64];

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(l >= 0 && bind(l, (struct sockaddr *)&a, n) == 0);
	CHECK(listen(l, 5) == 0);
	CHECK(getsockname(l, (struct sockaddr *)&a, &n) == 0 && a.sin_port);
	if (fork() == 0) {
		s = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(connect(s, (struct sockaddr *)&a, sizeof a) == 0);
		CHECK(send(s, "question", 8, 0) == 8);
		CHECK(recv(s, text, 6, MSG_WAITALL) == 6);
		CHECK(memcmp(text, "answer", 6) == 0);
		_exit(0);
	}
	n = sizeof a;
	s = accept4(l, (struct sockaddr *)&a, &n, SOCK_CLOEXEC);
	CHECK(s >= 0 && a.sin_family == AF_INET);
	CHECK(recv(s, text, 8, MSG_PEEK | MSG_WAITALL) == 8);
	CHECK(recv(s, text, sizeof text, 0) == 8);
	CHECK(memcmp(text, "question", 8) == 0 && write(s, "answer", 6) == 6);
	CHECK(wait(&status) > 0 && status == 0);
	n = sizeof status;
	CHECK(getsockopt(s, SOL_SOCKET, SO_TYPE, &status, &n) == 0);
	CHECK(status == SOCK_STREAM);
	CHECK(shutdown(s, SHUT_WR) == 0 && recv(s, text, 1, 0) == 0);
	close(s);
	close(l);
}

static void many_at_once(void)
{
	char a[8], b[8];
	struct iovec out[] = {{"one", 3}, {"three", 5}};
	struct iovec in[] = {{a, sizeof a}, {b, sizeof b}};
	struct mmsghdr m[2] = {{{.msg_iov = &out[0], .msg_iovlen = 1}, 0},
			       {{.msg_iov = &out[1], .msg_iovlen = 1}, 0}};
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	CHECK(sendmmsg(pair[0], m, 2, 0) == 2 && m[1].msg_len == 5);
	m[0].msg_hdr.msg_iov = &in[0];
	m[1].msg_hdr.msg_iov = &in[1];
	CHECK(recvmmsg(pair[1], m, 2, 0, NULL) == 2);
	CHECK(m[0].msg_len == 3 && memcmp(a, "one", 3) == 0);
	CHECK(m[1].msg_len == 5 && memcmp(b, "three", 5) == 0);
}

int main(void)
{
	rights();
	tcp();
	many_at_once();
	puts("ok");
	return 0;
}
