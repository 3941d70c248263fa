/*
 * A periodic timer over a computation that makes a system call now and then:
 * its handler's count is printed, so that every delivery must be replayed at
 * its place.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks;

static void on_alarm(int sig)
{
	(void)sig;
	ticks++;
}

int main(void)
{
	struct itimerval every = {{0, 2000}, {0, 2000}};
	unsigned long long seen = 0, x = 88172645463325252ull;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 20000; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		seen = seen * 31 + (unsigned long long)ticks;
		getppid();
	}
	printf("%d %llx %llx\n", ticks > 0, seen, x);
	return 0;
}
