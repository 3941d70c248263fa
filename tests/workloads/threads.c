/* Threads with mutexes, condition variables and joins: the order in which
 * they take turns is printed as a hash, so that replay must repeat it. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long order = 17, turns;
static int waiting;
static __thread unsigned long own;

static void *work(void *arg)
{
	unsigned long me = (unsigned long)arg;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		order = order * 31 + me;
		turns++;
		own++;
		if (i % 50 == 49) {
			waiting++;
			if (waiting % THREADS == 0)
				pthread_cond_broadcast(&changed);
			else
				pthread_cond_wait(&changed, &lock);
		}
		pthread_mutex_unlock(&lock);
		if (i % 7 == 0)
			usleep(10);
	}
	return (void *)own;
}

int main(void)
{
	pthread_t t[THREADS];
	void *result;

	for (unsigned long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, work, (void *)(i + 1)))
			return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_join(t[i], &result) || result != (void *)ROUNDS)
			return 2;
	printf("%lu %lx\n", turns, order);
	return turns != THREADS * ROUNDS;
}
