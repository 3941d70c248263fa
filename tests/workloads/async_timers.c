/* A computation without system calls that ends when the handlers of two
 * timers have run. */
#include <signal.h>
#include <sys/time.h>

#include "check.h"

static volatile sig_atomic_t alarms, virtuals;

static void on_timer(int sig)
{
	if (sig == SIGALRM)
		alarms++;
	else
		virtuals++;
}

int main(void)
{
	struct itimerval t = {{0, 10000}, {0, 10000}};
	volatile unsigned x = 1;
	unsigned expect = 1;
	unsigned long n = 0;

	signal(SIGALRM, on_timer);
	signal(SIGVTALRM, on_timer);
	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
	CHECK(setitimer(ITIMER_VIRTUAL, &t, NULL) == 0);
	for (; !alarms || !virtuals; n++)
		x = x * 1103515245u + 12345;
	t = (struct itimerval){0};
	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
	CHECK(setitimer(ITIMER_VIRTUAL, &t, NULL) == 0);
	while (n-- > 0)
		expect = expect * 1103515245u + 12345;
	CHECK(x == expect);
	puts("ok");
	return 0;
}
