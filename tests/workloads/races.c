/* Data races: threads that count without a lock while a timer interrupts
 * them; what is lost differs from run to run and is printed. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "check.h"

enum { THREADS = 3, ROUNDS = 3000000 };

static volatile int plain;
static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		plain++;
	return arg;
}

int main(void)
{
	struct itimerval t = {{0, 7000}, {0, 7000}};
	pthread_t th[THREADS];

	signal(SIGALRM, on_tick);
	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&th[i], NULL, work, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(th[i], NULL) == 0);
	CHECK(plain > 0 && plain <= THREADS * ROUNDS);
	printf("%d %d\nok\n", plain, (int)ticks);
	return 0;
}
