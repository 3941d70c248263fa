/*
 * Programs that are interrupted inside computations:
 *
 *   points alarm          compute for about a second, with a timer of 10 ms
 *   points spin           two threads hand over 50 times, and spin until then
 *   points once MS        pass through a loop until a timer has run for so many
 *                         milliseconds, and print how often
 *   points pass N         the same loop N times
 *   points resident MB    write all over so much memory, with a timer of 20 ms,
 *                         until it has come 10 times
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

static void timer(long ms, long every_ms)
{
	struct itimerval t = {{0, every_ms * 1000},
			      {ms / 1000, ms % 1000 * 1000}};

	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &t, NULL);
}

static void alarm10(void)
{
	unsigned long x = 88172645463325252;

	timer(10, 10);
	for (long i = 0; i < 600000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	timer(0, 0);
	printf("%lx\n", x);
}

enum { HANDOVERS = 50 };

static volatile int turn;

static void *play(void *arg)
{
	int me = arg != NULL;

	for (int i = 0; i < HANDOVERS; i++) {
		while (turn != me)
			;
		for (volatile int n = 0; n < 10000000; n++)
			;
		turn = !me;
	}
	return NULL;
}

static void spin(void)
{
	pthread_t t;

	pthread_create(&t, NULL, play, &t);
	play(NULL);
	pthread_join(t, NULL);
}

static void loop(unsigned long times)
{
	volatile unsigned long n = 0;

	while (n < times && !ticks)
		n++;
	printf("%lu\n", n);
}

static void resident(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at = 0;

	memset(p, 1, bytes);
	timer(20, 20);
	while (ticks < 10) {
		p[at] = (char)(p[at] + 1);
		at = (at + 4096 * 3 + 7) % bytes;
		for (volatile int i = 0; i < 10000; i++)
			;
	}
	timer(0, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	if (strcmp(what, "alarm") == 0) {
		alarm10();
	} else if (strcmp(what, "spin") == 0) {
		spin();
	} else if (strcmp(what, "once") == 0 && n) {
		timer((long)n, 0);
		loop((unsigned long)-1);
	} else if (strcmp(what, "pass") == 0) {
		loop(n);
	} else if (strcmp(what, "resident") == 0 && n) {
		resident(n << 20);
	} else {
		fprintf(stderr, "usage: points alarm|spin|once MS|pass N|"
			"resident MB\n");
		return 2;
	}
	return 0;
}
