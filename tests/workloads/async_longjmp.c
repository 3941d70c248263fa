/* siglongjmp out of a handler that interrupts a computation without system
 * calls. */
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "check.h"

static sigjmp_buf back;

static void jump(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

int main(void)
{
	struct itimerval t = {.it_value = {0, 3000}};
	volatile unsigned long n = 0;

	signal(SIGALRM, jump);
	if (sigsetjmp(back, 1) == 0) {
		CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
		for (;;)
			n++;
	}
	CHECK(n > 0);
	puts("ok");
	return 0;
}
