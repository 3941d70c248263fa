/* madvise: what is not needed comes back as zeros, or as the file has it;
 * what is wiped on fork is zero in the child only. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define PAGE 4096ul

static char *map(size_t pages, int flags)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		       MAP_ANONYMOUS | flags, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 1, pages * PAGE);
	return p;
}

int main(void)
{
	char *p = map(8, MAP_PRIVATE), *s = map(2, MAP_SHARED), c;
	unsigned char core[8];
	int status;

	CHECK(madvise(p + PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
	CHECK(p[0] == 1 && p[PAGE] == 0 && p[3 * PAGE - 1] == 0);
	CHECK(p[3 * PAGE] == 1);
	p[PAGE] = 2;
	CHECK(madvise(p, 8 * PAGE, MADV_DONTNEED) == 0 && p[PAGE] == 0);
	/* Shared memory keeps its contents, unless they are removed. */
	CHECK(madvise(s, PAGE, MADV_DONTNEED) == 0 && s[0] == 1);
	CHECK(madvise(s, PAGE, MADV_REMOVE) == 0 && s[0] == 0 && s[PAGE] == 1);
	CHECK(madvise(p, PAGE, MADV_WIPEONFORK) == 0);
	CHECK(madvise(p + PAGE, PAGE, MADV_DONTFORK) == 0);
	p[0] = 3;
	if (fork() == 0)
		_exit(p[0] == 0 && mincore(p + PAGE, PAGE, core) == -1 ? 0 : 1);
	CHECK(wait(&status) > 0 && status == 0 && p[0] == 3);
	CHECK(madvise(p, 2 * PAGE, MADV_WILLNEED) == 0);
	CHECK(madvise(p, 2 * PAGE, 12345) == -1 && errno == EINVAL);
	/* Free pages may be zero or not, until they are written; and kernels
	 * before 4.5 do not know of it. */
	memset(p, 4, 8 * PAGE);
	CHECK(madvise(p, 8 * PAGE, MADV_FREE) == 0 || errno == EINVAL);
	c = p[5 * PAGE];
	CHECK(c == 0 || c == 4);
	p[5 * PAGE] = 6;
	CHECK(p[5 * PAGE] == 6);
	puts("ok");
	return 0;
}
