/*
 * A program that does little but system calls:
 *
 *   calls getppid N    the cheapest call there is
 *   calls read N       64 bytes of /dev/zero each
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char buf[64];

	if (argc != 3) {
		fprintf(stderr, "usage: calls getppid|read N\n");
		return 2;
	}
	long count = atol(argv[2]);

	if (strcmp(argv[1], "getppid") == 0) {
		for (long i = 0; i < count; i++)
			syscall(SYS_getppid);
		return 0;
	}
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		perror("/dev/zero");
		return 2;
	}
	for (long i = 0; i < count; i++)
		if (read(fd, buf, sizeof buf) != sizeof buf)
			return 1;
	return 0;
}
