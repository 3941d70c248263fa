/* Handlers that compute, interrupted by other handlers, that of a profiling
 * timer among them, while the program computes. */
#include <signal.h>
#include <sys/time.h>

#include "check.h"

enum { ROUNDS = 8 };

static volatile sig_atomic_t outer, inner, within, nested, samples;

static unsigned work(unsigned n)
{
	volatile unsigned x = n;

	for (unsigned i = 0; i < n; i++)
		x = x * 69069 + i;
	return x;
}

static void on_alarm(int sig)
{
	(void)sig;
	within++;
	/* For longer than any recorder should hold back a signal. */
	CHECK(work(12000000) != 1);
	within--;
	outer++;
}

static void on_virtual(int sig)
{
	(void)sig;
	inner++;
	nested += within > 0;
}

static void on_profile(int sig)
{
	(void)sig;
	samples++;
}

static void every(int which, int microseconds)
{
	struct itimerval t = {{0, microseconds}, {0, microseconds}};

	CHECK(setitimer(which, &t, NULL) == 0);
}

int main(void)
{
	unsigned x = 0, expect = work(30000);

	signal(SIGALRM, on_alarm);
	signal(SIGVTALRM, on_virtual);
	signal(SIGPROF, on_profile);
	every(ITIMER_REAL, 100000);
	every(ITIMER_VIRTUAL, 3000);
	every(ITIMER_PROF, 5000);
	while (outer < ROUNDS || !nested || !samples) {
		x = work(30000);
		CHECK(x == expect);
	}
	every(ITIMER_REAL, 0);
	every(ITIMER_VIRTUAL, 0);
	every(ITIMER_PROF, 0);
	CHECK(inner >= nested && within == 0);
	printf("%d %d %d %d\nok\n", (int)outer, (int)inner, (int)nested,
	       (int)samples);
	return 0;
}
