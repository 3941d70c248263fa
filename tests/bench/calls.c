/*
 * A program that does little but system calls:
 *
 *   calls getppid N    the cheapest call there is
 *   calls read N       64 bytes of /dev/zero each
 *   calls clock N      the time, by the C library
 *   calls write N      64 KB to /dev/null each
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int do_getppid(long count)
{
	while (count-- > 0)
		syscall(SYS_getppid);
	return 0;
}

static int do_read(long count)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char buf[64];

	while (count-- > 0)
		if (read(fd, buf, sizeof buf) != sizeof buf)
			return 1;
	return 0;
}

static int do_clock(long count)
{
	struct timespec now;

	while (count-- > 0)
		if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
			return 1;
	return 0;
}

static int do_write(long count)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	static char buf[65536];

	while (count-- > 0) {
		buf[count % (long)sizeof buf]++;
		if (write(fd, buf, sizeof buf) != sizeof buf)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(long count);
	} modes[] = {{"getppid", do_getppid}, {"read", do_read},
		     {"clock", do_clock}, {"write", do_write}};

	for (size_t i = 0; argc == 3 && i < sizeof modes / sizeof *modes; i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			return modes[i].run(atol(argv[2]));
	fprintf(stderr, "usage: calls getppid|read|clock|write N\n");
	return 2;
}
