/* timer_create with signals and values, ITIMER_VIRTUAL and ITIMER_PROF while
 * computing, with a system call now and then. */
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

static volatile sig_atomic_t ticks, value, overrun, virtuals, profs;

static void on_timer(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	ticks++;
	value = si->si_value.sival_int;
	overrun += si->si_overrun;
}

static void on_virtual(int sig)
{
	if (sig == SIGPROF)
		profs++;
	else
		virtuals++;
}

static void posix_timer(void)
{
	struct sigaction sa = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO};
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL,
			      .sigev_signo = SIGRTMIN + 1,
			      .sigev_value = {.sival_int = 77}};
	struct itimerspec t = {{0, 5000000}, {0, 5000000}};
	timer_t id;

	CHECK(sigaction(SIGRTMIN + 1, &sa, NULL) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, &ev, &id) == 0);
	CHECK(timer_settime(id, 0, &t, NULL) == 0);
	while (ticks < 10)
		pause();
	CHECK(value == 77 && timer_getoverrun(id) >= 0);
	CHECK(timer_delete(id) == 0);
}

static void while_computing(void)
{
	struct itimerval t = {{0, 10000}, {0, 10000}};
	volatile unsigned x = 0;
	unsigned expect = 0, n = 0;

	signal(SIGVTALRM, on_virtual);
	signal(SIGPROF, on_virtual);
	CHECK(setitimer(ITIMER_VIRTUAL, &t, NULL) == 0);
	CHECK(setitimer(ITIMER_PROF, &t, NULL) == 0);
	while (virtuals < 3 || profs < 3) {
		for (unsigned i = 0; i < 100000; i++)
			x = x * 1103515245u + i;
		getppid();
		n++;
	}
	t = (struct itimerval){0};
	CHECK(setitimer(ITIMER_VIRTUAL, &t, NULL) == 0);
	CHECK(setitimer(ITIMER_PROF, &t, NULL) == 0);
	while (n-- > 0)
		for (unsigned i = 0; i < 100000; i++)
			expect = expect * 1103515245u + i;
	CHECK(x == expect);
	printf("%u\n", x); /* depends on where the signals came */
}

int main(void)
{
	posix_timer();
	while_computing();
	puts("ok");
	return 0;
}
