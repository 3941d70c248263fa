/* A bounded queue with condition variables, timed waits, broadcasts. */
#include <pthread.h>
#include <time.h>

#include "check.h"

enum { SIZE = 4, ITEMS = 60, WORKERS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int queue[SIZE], count, head, closed, order;

static void put(int item)
{
	pthread_mutex_lock(&lock);
	while (count == SIZE)
		pthread_cond_wait(&not_full, &lock);
	queue[(head + count++) % SIZE] = item;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

static void *worker(void *arg)
{
	long sum = 0;
	int me = (int)(long)arg;

	pthread_mutex_lock(&lock);
	for (;;) {
		while (count == 0 && !closed)
			pthread_cond_wait(&not_empty, &lock);
		if (count == 0)
			break;
		sum += queue[head];
		head = (head + 1) % SIZE;
		count--;
		order = (order * 31 + me) % 65521;
		pthread_cond_signal(&not_full);
		pthread_mutex_unlock(&lock);
		sched_yield();
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return (void *)sum;
}

static void times_out(void)
{
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec t;

	CHECK(clock_gettime(CLOCK_REALTIME, &t) == 0);
	t.tv_nsec += 5000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	pthread_mutex_lock(&lock);
	CHECK(pthread_cond_timedwait(&never, &lock, &t) == ETIMEDOUT);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	pthread_t t[WORKERS];
	long total = 0;
	void *sum;

	times_out();
	for (long i = 0; i < WORKERS; i++)
		CHECK(pthread_create(&t[i], NULL, worker, (void *)i) == 0);
	for (int i = 0; i < ITEMS; i++)
		put(i);
	pthread_mutex_lock(&lock);
	closed = 1;
	pthread_cond_broadcast(&not_empty);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < WORKERS; i++) {
		CHECK(pthread_join(t[i], &sum) == 0);
		total += (long)sum;
	}
	CHECK(total == ITEMS * (ITEMS - 1) / 2);
	printf("%d\nok\n", order);
	return 0;
}
