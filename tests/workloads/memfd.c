/* Memory files: written as files and as memory, sealed, mapped twice, handed
 * to a child, executed. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define PAGE 4096ul

static void two_views(void)
{
	int fd = memfd_create("views", MFD_CLOEXEC);
	char *a, *b, c;

	CHECK(fd >= 0 && ftruncate(fd, 2 * (off_t)PAGE) == 0);
	a = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	b = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)PAGE);
	CHECK(a != MAP_FAILED && b != MAP_FAILED);
	a[PAGE + 5] = 'x';
	CHECK(b[5] == 'x' && pread(fd, &c, 1, (off_t)PAGE + 5) == 1 && c == 'x');
	CHECK(pwrite(fd, "yz", 2, (off_t)PAGE + 6) == 2);
	CHECK(b[6] == 'y' && a[PAGE + 7] == 'z');
	if (fork() == 0) {
		a[0] = 'k';
		_exit(0);
	}
	CHECK(wait(NULL) > 0 && a[0] == 'k');
	CHECK(munmap(a, 2 * PAGE) == 0 && b[5] == 'x');
	CHECK(munmap(b, PAGE) == 0 && close(fd) == 0);
}

static void sealed(void)
{
	int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
	char *p;

	CHECK(write(fd, "fixed", 5) == 5);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK) == 0);
	CHECK(write(fd, "x", 1) == -1 && errno == EPERM);
	CHECK(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED && memcmp(p, "fixed", 5) == 0);
	p[0] = 'F';
	CHECK(munmap(p, PAGE) == 0 && close(fd) == 0);
}

static void executed(void)
{
	int fd = memfd_create("program", MFD_CLOEXEC), in, status;
	char *argv[] = {"true", NULL}, *envp[] = {NULL}, buf[8192];
	ssize_t n;

	CHECK((in = open("/bin/true", O_RDONLY)) >= 0);
	while ((n = read(in, buf, sizeof buf)) > 0)
		CHECK(write(fd, buf, (size_t)n) == n);
	if (fork() == 0) {
		fexecve(fd, argv, envp);
		_exit(99);
	}
	CHECK(wait(&status) > 0 && status == 0);
}

int main(void)
{
	two_views();
	sealed();
	executed();
	puts("ok");
	return 0;
}
