/* A reader of a log that it has mapped beyond its end: what is appended shows
 * in the mapping, what is cut raises SIGBUS; by the reader and by another. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

enum { PAGE = 4096, PAGES = 16 };

static sigjmp_buf back;
static char *map;
static int fd;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

/* The byte at the offset, or -1 where there is no page. */
static int at(size_t offset)
{
	if (sigsetjmp(back, 1))
		return -1;
	return *(volatile unsigned char *)(map + offset);
}

static void append(int c, size_t n)
{
	char data[3 * PAGE];

	memset(data, c, sizeof data);
	CHECK(write(fd, data, n) == (ssize_t)n);
}

static void by_itself(void)
{
	CHECK(at(0) == 'a' && at(99) == 'a' && at(100) == 0);
	CHECK(at(PAGE) == -1);
	append('b', 50);
	CHECK(at(100) == 'b' && at(150) == 0 && at(PAGE) == -1);
	append('c', 2 * PAGE);
	CHECK(at(150) == 'c' && at(PAGE) == 'c');
	CHECK(at(2 * PAGE) == 'c' && at(2 * PAGE + 150) == 0);
	CHECK(at(3 * PAGE) == -1);
	CHECK(ftruncate(fd, PAGE + 10) == 0);
	CHECK(at(PAGE + 9) == 'c' && at(PAGE + 10) == 0);
	CHECK(at(2 * PAGE) == -1);
	CHECK(ftruncate(fd, 5 * PAGE) == 0);
	CHECK(at(2 * PAGE) == 0 && at(5 * PAGE - 1) == 0 && at(5 * PAGE) == -1);
}

/* Another process appends and says so. */
static void by_another(void)
{
	int said[2];
	char byte;
	pid_t pid;

	CHECK(lseek(fd, 0, SEEK_END) == 5 * PAGE && pipe(said) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 5; i++) {
			append('d' + i, PAGE);
			CHECK(write(said[1], "", 1) == 1);
			usleep(1000);
		}
		_exit(0);
	}
	for (size_t i = 0; i < 5; i++) {
		CHECK(read(said[0], &byte, 1) == 1);
		CHECK(at((5 + i) * PAGE) == (int)('d' + i));
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(at(10 * PAGE) == -1);
}

int main(void)
{
	char name[] = "/tmp/growing_file.XXXXXX";

	fd = mkstemp(name);
	CHECK(fd >= 0 && unlink(name) == 0);
	signal(SIGBUS, on_bus);
	append('a', 100);
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(map != MAP_FAILED);
	by_itself();
	by_another();
	CHECK(munmap(map, PAGES * PAGE) == 0);
	puts("ok");
	return 0;
}
