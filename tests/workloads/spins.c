/*
 * Threads that wait for each other by spinning, in every way that is usual:
 * plain, with pauses, counting, with a back-off, through calls, with locked
 * instructions; hand-overs, spin locks whose holder computes, and a barrier.
 */
#include <pthread.h>
#include <string.h>

#include "check.h"

enum { HANDOVERS = 2, THREADS = 4, ROUNDS = 2 };

typedef void waiter(volatile int *p, int value);

static void compute(unsigned n)
{
	volatile unsigned x = 0;

	while (x < n)
		x++;
}

static void plain(volatile int *p, int value)
{
	while (*p != value)
		;
}

static void pausing(volatile int *p, int value)
{
	while (*p != value)
		__builtin_ia32_pause();
}

static __thread unsigned long spins;

static void counting(volatile int *p, int value)
{
	unsigned long n = 0;

	while (*p != value)
		n++;
	spins = n;
}

static void counting_in_memory(volatile int *p, int value)
{
	while (*p != value)
		*(volatile unsigned long *)&spins += 1;
}

static void counting_and_pausing(volatile int *p, int value)
{
	unsigned long n = 0;

	while (*p != value) {
		n++;
		__builtin_ia32_pause();
	}
	spins = n;
}

static void backing_off(volatile int *p, int value)
{
	for (unsigned n = 1; *p != value; n *= n < 4096 ? 2 : 1)
		for (unsigned i = 0; i < n; i++)
			__builtin_ia32_pause();
}

static int __attribute__((noinline)) get(volatile int *p)
{
	return *p;
}

static void calling(volatile int *p, int value)
{
	while (get(p) != value)
		;
}

static void locked(volatile int *p, int value)
{
	while (__atomic_fetch_add(p, 0, __ATOMIC_SEQ_CST) != value)
		;
}

static void exchanging(volatile int *p, int value)
{
	int expected = value;

	while (!__atomic_compare_exchange_n(p, &expected, value, 0,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		expected = value;
}

static void vectors(volatile int *p, int value)
{
	volatile double *d = (volatile double *)(p + 2);

	(void)value; /* the double changes with it */
	while (*d * 2 != value * 2)
		;
}

static waiter *const waiters[] = {
	plain, pausing, counting, counting_in_memory, counting_and_pausing,
	backing_off, calling, locked, exchanging, vectors,
};

struct game {
	waiter *wait;
	volatile int turn;
	int unused;
	volatile double turn_too;
	int done[2];
};

struct player {
	struct game *game;
	int me;
};

static void *play(void *arg)
{
	const struct player *p = arg;
	struct game *g = p->game;

	for (int i = 0; i < HANDOVERS; i++) {
		g->wait(&g->turn, p->me);
		compute(100000);
		g->done[p->me]++;
		CHECK(g->done[0] - g->done[1] == !p->me);
		g->turn_too = !p->me;
		__atomic_store_n(&g->turn, !p->me, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void hand_over(waiter *wait)
{
	static struct game g;
	struct player p[2] = {{&g, 0}, {&g, 1}};
	pthread_t t;

	g = (struct game){.wait = wait};

	CHECK(pthread_create(&t, NULL, play, &p[1]) == 0);
	play(&p[0]);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(g.done[0] == HANDOVERS && g.done[1] == HANDOVERS);
}

static pthread_spinlock_t lock;
static volatile int ticket, serving;
static volatile long inside, entered;

static void hold(unsigned n)
{
	CHECK(++inside == 1);
	compute(n);
	entered++;
	CHECK(--inside == 0);
}

/* Most passes find the lock free. */
static void *lock_often(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		pthread_spin_lock(&lock);
		hold(i % 500 == 0 ? 200000 : 10);
		pthread_spin_unlock(&lock);
	}
	return arg;
}

static void *take_tickets(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int mine = __atomic_fetch_add(&ticket, 1, __ATOMIC_SEQ_CST);

		while (serving != mine)
			;
		hold(100000);
		serving = mine + 1;
	}
	return arg;
}

static volatile int arrived, sense;

static void *meet(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int mine = !sense;

		compute(50000 * (1 + (unsigned)(long)arg));
		if (__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST) ==
		    THREADS) {
			arrived = 0;
			sense = mine;
		}
		while (sense != mine)
			;
	}
	return arg;
}

static void all(void *(*f)(void *))
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, f, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
}

int main(void)
{
	CHECK(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE) == 0);
	for (size_t i = 0; i < sizeof waiters / sizeof *waiters; i++)
		hand_over(waiters[i]);
	all(lock_often);
	CHECK(entered == THREADS * 2000);
	all(take_tickets);
	CHECK(entered == THREADS * (2000 + ROUNDS));
	all(meet);
	puts("ok");
	return 0;
}
