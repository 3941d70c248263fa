/*
 * Computations of every kind, without system calls, under a timer whose
 * handler looks at them: registers alone, memory, thread-local memory that no
 * register points to, vectors, x87, strings, recursion, indirect calls,
 * longjmp, locked instructions, pauses, and loops in libc and in the dynamic
 * loader.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "check.h"

static volatile sig_atomic_t ticks;
static char from[1 << 20], to[1 << 20];

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

/* dec and jnz: the shortest instructions there are */
static void registers(void)
{
	uint32_t n = 30000000;

	__asm__ volatile("1: dec %0; jnz 1b" : "+r"(n));
	CHECK(n == 0);
}

static void memory(void)
{
	volatile unsigned long n = 0;

	while (n < 6000000)
		n++;
	CHECK(n == 6000000);
}

static __thread unsigned long local;

static void in_thread_local(void)
{
	__asm__ volatile("1: addq $1, %0; cmpq %1, %0; jb 1b"
			 : "+m"(local) : "r"(6000000ul) : "cc");
	CHECK(local == 6000000);
}

static void vectors(void)
{
	static volatile float sum[8];

	for (int i = 0; i < 3000000; i++)
		sum[i & 7] += 1;
	CHECK(sum[3] == 375000);
}

static void x87(void)
{
	volatile long double x = 1;

	for (int i = 0; i < 2000000; i++)
		x = x + 1;
	CHECK(x == 2000001);
}

static void strings(void)
{
	for (int i = 0; i < 100; i++) {
		void *d = to, *s = from;
		size_t n = sizeof from;

		from[i] = (char)i;
		__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n)
				 : : "memory");
		CHECK(to[i] == (char)i);
	}
}

static unsigned __attribute__((noinline)) fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static unsigned add(unsigned a) { return a + 3; }
static unsigned twist(unsigned a) { return a ^ 5; }

static void calls(void)
{
	unsigned (*volatile f[2])(unsigned) = {add, twist};
	unsigned a = 0, b = 0;

	for (int i = 0; i < 3000000; i++)
		a = f[i & 1](a);
	for (int i = 0; i < 3000000; i++)
		b = i & 1 ? b ^ 5 : b + 3;
	CHECK(a == b);
}

static void jumps(void)
{
	static jmp_buf back;
	volatile int n = 0;

	_setjmp(back);
	if (++n < 500000)
		_longjmp(back, 1);
	CHECK(n == 500000);
}

static void locked(void)
{
	static unsigned long n;

	for (int i = 0; i < 1000000; i++)
		__atomic_fetch_add(&n, 3, __ATOMIC_SEQ_CST);
	CHECK(n == 3000000);
}

static void pauses(void)
{
	unsigned n = 200000;

	while (n--)
		__builtin_ia32_pause();
	CHECK(n + 1 == 0);
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void in_libc(void)
{
	static uint32_t v[50000];
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		v[i] = x = x * 1664525 + 1013904223;
	qsort(v, sizeof v / sizeof *v, sizeof *v, by_value);
	for (size_t i = 1; i < sizeof v / sizeof *v; i++)
		CHECK(v[i - 1] <= v[i]);
	memset(from, 'a', sizeof from - 1);
	from[sizeof from - 1] = '\0';
	for (int i = 0; i < 100; i++) {
		from[i] = 'b';
		CHECK(strlen(from) == sizeof from - 1);
		CHECK(strchr(from, 'a') == from + i + 1);
	}
}

static void in_loader(void)
{
	for (int i = 0; i < 20000; i++)
		CHECK(dlsym(RTLD_DEFAULT, i & 1 ? "qsort" : "no such name") !=
		      NULL || !(i & 1));
}

int main(void)
{
	struct itimerval t = {{0, 4000}, {0, 4000}};

	signal(SIGALRM, on_tick);
	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
	registers();
	memory();
	in_thread_local();
	vectors();
	x87();
	strings();
	CHECK(fib(27) == 196418);
	calls();
	jumps();
	locked();
	pauses();
	in_libc();
	in_loader();
	t = (struct itimerval){0};
	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
	printf("%d\nok\n", (int)ticks);
	return 0;
}
