/* mmap, mremap, munmap and mprotect in the patterns that allocators, loaders
 * and garbage collectors use. */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

#define PAGE 4096ul
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static sigjmp_buf back;
static char *volatile faulted;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	faulted = si->si_addr;
	siglongjmp(back, 1);
}

static int faults(char *p, int write)
{
	if (sigsetjmp(back, 1))
		return faulted == p;
	if (write)
		*(volatile char *)p = 1;
	else
		(void)*(volatile char *)p;
	return 0;
}

static char *map(char *at, size_t pages, int flags)
{
	char *p = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, ANON | flags,
		       -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void fixed_over_others(void)
{
	char *p = map(NULL, 16, 0);

	memset(p, 1, 16 * PAGE);
	/* Over the middle of one mapping, then over three pieces at once. */
	CHECK(map(p + 4 * PAGE, 4, MAP_FIXED) == p + 4 * PAGE);
	CHECK(p[4 * PAGE] == 0 && p[3 * PAGE] == 1 && p[8 * PAGE] == 1);
	memset(p + 4 * PAGE, 2, 4 * PAGE);
	CHECK(map(p + 3 * PAGE, 6, MAP_FIXED) == p + 3 * PAGE);
	CHECK(p[3 * PAGE] == 0 && p[8 * PAGE] == 0 && p[9 * PAGE] == 1);
	CHECK(mmap(p, PAGE, PROT_READ, ANON | MAP_FIXED_NOREPLACE, -1, 0) ==
	      MAP_FAILED && errno == EEXIST);
	CHECK(munmap(p + 2 * PAGE, 3 * PAGE) == 0);
	CHECK(faults(p + 2 * PAGE, 0) && !faults(p + 5 * PAGE, 1));
	CHECK(munmap(p, 16 * PAGE) == 0);
	CHECK(faults(p, 0) && munmap(p, 16 * PAGE) == 0);
}

static void protection(void)
{
	char *p = map(NULL, 8, 0);

	memset(p, 3, 8 * PAGE);
	CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
	CHECK(mprotect(p + 3 * PAGE, 2 * PAGE, PROT_READ) == 0);
	CHECK(faults(p + PAGE, 0) && faults(p + 3 * PAGE, 1));
	CHECK(!faults(p + 3 * PAGE, 0) && !faults(p + 2 * PAGE, 1));
	CHECK(mprotect(p, 8 * PAGE, PROT_READ | PROT_WRITE) == 0);
	CHECK(p[PAGE] == 3 && !faults(p + PAGE, 1));
	CHECK(munmap(p, 8 * PAGE) == 0);
	CHECK(mprotect(p, PAGE, PROT_READ) == -1 && errno == ENOMEM);
}

static void moved(void)
{
	char *p = map(NULL, 4, 0), *q, *to;

	memset(p, 4, 4 * PAGE);
	q = mremap(p, 4 * PAGE, 400 * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && q[3 * PAGE] == 4 && q[399 * PAGE] == 0);
	q[399 * PAGE] = 5;
	q = mremap(q, 400 * PAGE, 2 * PAGE, 0);
	CHECK(q != MAP_FAILED && faults(q + 2 * PAGE, 0));
	to = map(NULL, 8, 0);
	p = mremap(q, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   to + PAGE);
	CHECK(p == to + PAGE && p[PAGE] == 4 && faults(q, 0));
	q = mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP,
		   NULL);
	CHECK(q != MAP_FAILED && q[0] == 4 && p[0] == 0);
	CHECK(mremap(p, PAGE, 1ul << 46, 0) == MAP_FAILED && errno == ENOMEM);
	CHECK(munmap(q, 2 * PAGE) == 0 && munmap(to, 8 * PAGE) == 0);
}

/* Code written at run time, executed, and written again at the same place. */
static void generated(void)
{
	unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3}; /* mov eax, n; ret */
	char *p = map(NULL, 1, 0);
	int (*f)(void) = (int (*)(void))p;

	for (int i = 1; i < 20; i++) {
		code[1] = (unsigned char)i;
		CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE) == 0);
		memcpy(p, code, sizeof code);
		CHECK(mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0);
		CHECK(f() == i);
	}
	CHECK(munmap(p, PAGE) == 0);
}

/* Many small ones, freed in another order. */
static void many(void)
{
	static char *p[300];

	for (int i = 0; i < 300; i++) {
		p[i] = map(NULL, 1 + (size_t)i % 3, 0);
		p[i][0] = (char)i;
	}
	for (int i = 0; i < 300; i++) {
		int j = i * 7 % 300;

		CHECK(p[j][0] == (char)j);
		CHECK(munmap(p[j], (1 + (size_t)j % 3) * PAGE) == 0);
	}
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault,
			       .sa_flags = SA_SIGINFO};

	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	fixed_over_others();
	protection();
	moved();
	generated();
	many();
	puts("ok");
	return 0;
}
