/* dup, dup2, dup3, fcntl, and closing every descriptor there is. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static void duplicates(void)
{
	int fds[2], high;
	char c;

	CHECK(pipe(fds) == 0);
	CHECK((high = fcntl(fds[1], F_DUPFD_CLOEXEC, 200)) == 200);
	CHECK(fcntl(high, F_GETFD) == FD_CLOEXEC);
	CHECK(dup2(fds[1], fds[1]) == fds[1]);
	CHECK(dup3(fds[1], fds[1], 0) == -1 && errno == EINVAL);
	CHECK(dup2(fds[0], 201) == 201 && write(high, "a", 1) == 1);
	CHECK(read(201, &c, 1) == 1 && c == 'a');
	CHECK(dup2(5000000, 3) == -1 && errno == EBADF);
	CHECK(close(high) == 0 && close(high) == -1 && errno == EBADF);
}

/* Output after this goes through a descriptor that was put aside. */
static void close_all_and_reopen(void)
{
	struct stat st;
	int keep = fcntl(1, F_DUPFD, 700);

	CHECK(keep == 700);
	CHECK(close_range(0, 699, 0) == 0);
	CHECK(fstat(0, &st) == -1 && errno == EBADF);
	CHECK(fstat(2, &st) == -1 && errno == EBADF);
	CHECK(open("/dev/null", O_RDWR) == 0);
	CHECK(dup2(keep, 1) == 1 && dup2(0, 2) == 2);
	CHECK(close_range(3, ~0u, 0) == 0);
	CHECK(fstat(keep, &st) == -1 && errno == EBADF);
}

static void close_on_exec(void)
{
	int status;

	CHECK(dup2(1, 50) == 50);
	if (fork() == 0) {
		if (close_range(50, 60, CLOSE_RANGE_CLOEXEC) < 0)
			_exit(98);
		execl("/bin/sh", "sh", "-c",
		      "test ! -e /proc/self/fd/50 && test -e /proc/self/fd/1",
		      NULL);
		_exit(99);
	}
	CHECK(wait(&status) > 0 && status == 0);
}

static void limit(void)
{
	struct rlimit rl = {16, 64};
	int n = 0;

	CHECK(setrlimit(RLIMIT_NOFILE, &rl) == 0);
	while (dup(0) >= 0)
		n++;
	CHECK(errno == EMFILE && n > 5 && n < 16);
	for (int fd = 0; fd < 64; fd++)
		if (fd != 1)
			close(fd);
	CHECK(dup(1) == 0);
}

int main(void)
{
	duplicates();
	close_all_and_reopen();
	close_on_exec();
	limit();
	puts("ok");
	return 0;
}
