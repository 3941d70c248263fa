/* Thread-local storage: variables, keys, destructors that set keys anew. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 6 };

static __thread int own = 5;
static pthread_key_t key;
static _Atomic int destroyed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int prepared;

static void destroy(void *p)
{
	destroyed++;
	if (*(int *)p > 0) { /* comes again, until it is zero */
		--*(int *)p;
		pthread_setspecific(key, p);
	} else {
		free(p);
	}
}

static void prepare(void)
{
	prepared++;
	CHECK(pthread_key_create(&key, destroy) == 0);
}

static void *work(void *arg)
{
	int *p = malloc(sizeof *p);

	CHECK(pthread_once(&once, prepare) == 0 && own == 5);
	own += (int)(long)arg;
	*p = 2;
	CHECK(pthread_getspecific(key) == NULL);
	CHECK(pthread_setspecific(key, p) == 0);
	sched_yield();
	CHECK(own == 5 + (int)(long)arg && pthread_getspecific(key) == p);
	return &own;
}

int main(void)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(destroyed == 3 * THREADS && prepared == 1 && own == 5);
	puts("ok");
	return 0;
}
