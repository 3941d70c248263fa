/* The break moves up and down; what was given back comes back as zeros. */
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "check.h"

static char *set_break(char *to)
{
	return (char *)(intptr_t)syscall(SYS_brk, to);
}

int main(void)
{
	char *start = set_break(NULL), *p;
	struct rlimit rl;

	p = (char *)(((uintptr_t)start + 4095) & ~4095ul);
	for (size_t n = 1; n < 40; n++) {
		CHECK(set_break(p + n * 8192) == p + n * 8192);
		CHECK(p[n * 8192 - 1] == 0);
		p[n * 8192 - 1] = (char)n;
	}
	CHECK(p[8191] == 1 && p[20 * 8192 - 1] == 20);
	CHECK(set_break(p + 4096) == p + 4096);
	CHECK(set_break(p + 40 * 8192) == p + 40 * 8192);
	CHECK(p[8191] == 0 && p[20 * 8192 - 1] == 0);
	CHECK(set_break(p + 100) == p + 100);
	p[99] = 9; /* the last page stays while a byte of it is in use */
	CHECK(set_break(p + 50) == p + 50 && p[99] == 9);
	CHECK(set_break(start) == start);
	CHECK(set_break((char *)1) == start); /* refused: stays */
	CHECK(getrlimit(RLIMIT_DATA, &rl) == 0);
	rl.rlim_cur = 1 << 20;
	CHECK(setrlimit(RLIMIT_DATA, &rl) == 0);
	CHECK(set_break(start + (64 << 20)) == start);
	write(1, "ok\n", 3);
	_exit(0);
}
