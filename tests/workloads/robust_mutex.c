/* A robust mutex whose owner dies, as a thread and as a process; and the
 * other kinds: recursive, error-checking, priority-inheriting. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static void *dies_with(void *m)
{
	CHECK(pthread_mutex_lock(m) == 0);
	return NULL;
}

static void taken_over(pthread_mutex_t *m)
{
	CHECK(pthread_mutex_lock(m) == EOWNERDEAD);
	CHECK(pthread_mutex_consistent(m) == 0);
	CHECK(pthread_mutex_unlock(m) == 0);
}

static void robust(void)
{
	pthread_mutex_t *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;
	pthread_t t;
	pid_t pid;

	CHECK(m != MAP_FAILED && pthread_mutexattr_init(&a) == 0);
	CHECK(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED) == 0);
	CHECK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) == 0);
	CHECK(pthread_mutex_init(m, &a) == 0);
	CHECK(pthread_create(&t, NULL, dies_with, m) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	taken_over(m);
	pid = fork();
	if (pid == 0) {
		CHECK(pthread_mutex_lock(m) == 0);
		usleep(20000);
		raise(SIGKILL);
	}
	while (pthread_mutex_trylock(m) == 0) {
		CHECK(pthread_mutex_unlock(m) == 0);
		usleep(1000);
	}
	taken_over(m); /* waits until the kernel lets go of it */
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void *unlocks_soon(void *m)
{
	usleep(5000);
	CHECK(pthread_mutex_lock(m) == 0);
	CHECK(pthread_mutex_unlock(m) == 0);
	return NULL;
}

static void other_kinds(void)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;
	pthread_t t;

	CHECK(pthread_mutexattr_init(&a) == 0);
	CHECK(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE) == 0);
	CHECK(pthread_mutex_init(&m, &a) == 0);
	CHECK(pthread_mutex_lock(&m) == 0 && pthread_mutex_lock(&m) == 0);
	CHECK(pthread_mutex_unlock(&m) == 0 && pthread_mutex_unlock(&m) == 0);
	CHECK(pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK) == 0);
	CHECK(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT) == 0);
	CHECK(pthread_mutex_init(&m, &a) == 0);
	CHECK(pthread_mutex_lock(&m) == 0);
	CHECK(pthread_mutex_lock(&m) == EDEADLK);
	CHECK(pthread_create(&t, NULL, unlocks_soon, &m) == 0);
	usleep(10000);
	CHECK(pthread_mutex_unlock(&m) == 0);
	CHECK(pthread_join(t, NULL) == 0);
}

int main(void)
{
	robust();
	other_kinds();
	puts("ok");
	return 0;
}
