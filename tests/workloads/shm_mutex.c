/* Shared anonymous memory over fork, and a mutex and a condition variable in
 * it that processes share. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

enum { PROCESSES = 3, ROUNDS = 100 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t turn_changed;
	int turn, plain, order[PROCESSES * ROUNDS];
	_Atomic int total;
} *shared;

static void prepare(void)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	CHECK(pthread_mutexattr_init(&ma) == 0);
	CHECK(pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(pthread_mutex_init(&shared->lock, &ma) == 0);
	CHECK(pthread_condattr_init(&ca) == 0);
	CHECK(pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(pthread_cond_init(&shared->turn_changed, &ca) == 0);
}

static void child(int me)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(pthread_mutex_lock(&shared->lock) == 0);
		shared->order[shared->plain++] = me;
		CHECK(pthread_mutex_unlock(&shared->lock) == 0);
		shared->total++;
	}
	for (int i = 0; i < 10; i++) {
		CHECK(pthread_mutex_lock(&shared->lock) == 0);
		while (shared->turn % PROCESSES != me)
			pthread_cond_wait(&shared->turn_changed, &shared->lock);
		shared->turn++;
		CHECK(pthread_cond_broadcast(&shared->turn_changed) == 0);
		CHECK(pthread_mutex_unlock(&shared->lock) == 0);
	}
	_exit(0);
}

int main(void)
{
	int status, hash = 0;

	prepare();
	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			child(i);
	for (int i = 0; i < PROCESSES; i++)
		CHECK(wait(&status) > 0 && status == 0);
	CHECK(shared->plain == PROCESSES * ROUNDS);
	CHECK(shared->total == shared->plain && shared->turn == PROCESSES * 10);
	for (int i = 0; i < shared->plain; i++)
		hash = hash * 31 % 65521 + shared->order[i];
	printf("%d\nok\n", hash);
	return 0;
}
