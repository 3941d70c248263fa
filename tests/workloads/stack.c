/* A stack that grows far, and one that overflows, caught on another stack. */
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>

#include "check.h"

static sigjmp_buf back;
static char other[65536];
static volatile sig_atomic_t on_other;

static unsigned deep(unsigned n)
{
	volatile char local[512];

	local[n % 512] = (char)n;
	return n == 0 ? 0 : deep(n - 1) + (unsigned char)local[n % 512];
}

static void on_segv(int sig)
{
	char here;

	(void)sig;
	on_other = &here >= other && &here < other + sizeof other;
	siglongjmp(back, 1);
}

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static unsigned endless(unsigned n)
{
	volatile char local[4096];

	local[0] = (char)n;
	return endless(n + 1) + (unsigned char)local[0];
}

int main(void)
{
	struct sigaction sa = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};
	stack_t ss = {.ss_sp = other, .ss_size = sizeof other};
	struct rlimit rl = {2u << 20, 2u << 20};
	unsigned want = 0;

	for (unsigned i = 1; i <= 10000; i++)
		want += (unsigned char)i;
	CHECK(deep(10000) == want);
	CHECK(setrlimit(RLIMIT_STACK, &rl) == 0 || errno == EPERM);
	CHECK(sigaltstack(&ss, NULL) == 0);
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	for (volatile int i = 0; i < 3; i++) {
		on_other = 0;
		if (sigsetjmp(back, 1) == 0)
			endless(0);
		CHECK(on_other);
	}
	CHECK(deep(1000) > 0);
	puts("ok");
	return 0;
}
