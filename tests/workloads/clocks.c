/* Every way to the time and to chance: RDTSC, RDTSCP, clock_gettime as a call
 * and as a system call, time, gettimeofday, getrandom, getcpu, times. */
#include <sched.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <x86intrin.h>

#include "check.h"

static int64_t ns(struct timespec t)
{
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void counters(void)
{
	unsigned aux;
	uint64_t a = __rdtsc(), b = __rdtscp(&aux), c;

	CHECK(b >= a);
	for (int i = 0; i < 100; i++) {
		c = __rdtsc();
		CHECK(c >= a);
		a = c;
	}
	printf("%lu %lu\n", a, b);
}

static void clocks(void)
{
	static const clockid_t ids[] = {CLOCK_REALTIME, CLOCK_MONOTONIC,
		CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
		CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_MONOTONIC_COARSE};
	struct timespec a, b;

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		CHECK(clock_gettime(ids[i], &a) == 0);
		CHECK(syscall(SYS_clock_gettime, ids[i], &b) == 0);
		CHECK(ns(b) >= ns(a));
		printf("%ld %ld\n", (long)ns(a), (long)ns(b));
		CHECK(clock_getres(ids[i], &a) == 0 && ns(a) > 0);
	}
	CHECK(clock_gettime((clockid_t)100, &a) == -1 && errno == EINVAL);
}

int main(void)
{
	struct timeval tv;
	struct rusage ru;
	struct tms tms;
	unsigned cpu, node;
	uint64_t r[4] = {0};
	time_t now = time(NULL);

	counters();
	clocks();
	CHECK(gettimeofday(&tv, NULL) == 0 && tv.tv_sec >= now);
	CHECK(getrandom(r, sizeof r, 0) == sizeof r && r[0] != r[1]);
	CHECK(getentropy(r, sizeof r) == 0);
	CHECK(getrusage(RUSAGE_SELF, &ru) == 0 && times(&tms) != -1);
	CHECK(getcpu(&cpu, &node) == 0 && sched_getcpu() >= 0);
	printf("%ld %ld %lx %ld %d %d\n", (long)now, tv.tv_usec, r[3],
	       ru.ru_minflt, getpid(), getppid());
	puts("ok");
	return 0;
}
