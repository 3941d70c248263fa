/* A memory file of a terabyte, nearly all of it holes, mapped as a whole. */
#include <fcntl.h>
#include <sys/mman.h>

#include "check.h"

#define SIZE ((off_t)1 << 40)
#define HALF (SIZE / 2)

int main(void)
{
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	char *p, *q, c;

	CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0);
	CHECK(pwrite(fd, "first", 5, 0) == 5);
	CHECK(pwrite(fd, "half", 4, HALF + 4094) == 4); /* on two pages */
	CHECK(pwrite(fd, "last", 4, SIZE - 4) == 4);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		 fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK(memcmp(p, "first", 5) == 0 && p[4096] == 0);
	CHECK(memcmp(p + HALF + 4094, "half", 4) == 0);
	CHECK(memcmp(p + SIZE - 4, "last", 4) == 0);
	p[HALF / 2] = 'x';
	CHECK(pread(fd, &c, 1, HALF / 2) == 1 && c == 'x');
	q = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	CHECK(q != MAP_FAILED && q[HALF / 2] == 'x');
	q[HALF / 2] = 'y';
	CHECK(p[HALF / 2] == 'x' && q[0] == 'f');
	CHECK(munmap(p, SIZE) == 0 && munmap(q, SIZE) == 0 && close(fd) == 0);
	puts("holes are zero");
	return 0;
}
