/* Every call that writes to the standard output, in several pieces: what is
 * seen there is the check. */
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

static struct iovec piece(const char *s)
{
	return (struct iovec){(void *)s, strlen(s)};
}

int main(void)
{
	struct iovec v[] = {piece("one "), piece(""), piece("two "),
			    {NULL, 0}, piece("three\n")};
	struct iovec many[100];
	struct msghdr msg = {.msg_iov = v, .msg_iovlen = 5};
	int pair[2], n;
	char got[64];

	CHECK(write(1, "start\n", 6) == 6);
	CHECK(writev(1, v, 5) == 14);
	for (n = 0; n < 100; n++)
		many[n] = piece(n % 10 == 9 ? ".\n" : n % 2 ? "-" : "ab");
	CHECK(writev(1, many, 100) == 160);
	CHECK(writev(1, v, 0) == 0);
	/* Not a position, but where the output is: the same for all kinds. */
	CHECK(pwritev2(1, v, 5, -1, 0) == 14);
	CHECK(writev(2, v, 3) == 8);
	CHECK(write(2, "\n", 1) == 1);
	/* The same calls on something else are not seen. */
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(writev(pair[0], v, 5) == 14);
	CHECK(sendmsg(pair[0], &msg, 0) == 14);
	CHECK(send(pair[0], "x", 1, 0) == 1);
	CHECK(read(pair[1], got, sizeof got) == 29);
	/* A socket that takes the output's place is not the output. */
	CHECK(dup2(1, 9) == 9 && dup2(pair[0], 1) == 1);
	CHECK(sendmsg(1, &msg, 0) == 14);
	CHECK(dup2(9, 1) == 1);
	CHECK(write(1, "ok\n", 3) == 3);
	return 0;
}
