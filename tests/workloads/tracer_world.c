/*
 * A helper that shares the memory of its parent stops all threads of the
 * parent, looks at their registers and lets them go on, as leak checkers do.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

#define THREADS 3
#define ROUNDS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;
static bool over;
static volatile int go, stopped;
static char stack[65536] __attribute__((aligned(16)));

static void *sleeper(void *arg)
{
	pthread_mutex_lock(&lock);
	ready++;
	pthread_cond_broadcast(&changed);
	while (!over)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

/* One that makes calls all the time. */
static void *caller(void *arg)
{
	bool end = false;

	while (!end) {
		nanosleep(&(struct timespec){0, 1000000}, NULL);
		pthread_mutex_lock(&lock);
		end = over;
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static void stop(pid_t tid)
{
	struct user_regs_struct g;
	int status;

	CHECK(ptrace(PTRACE_ATTACH, tid, 0, 0) == 0);
	CHECK(waitpid(tid, &status, __WALL) == tid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	CHECK(ptrace(PTRACE_GETREGS, tid, 0, &g) == 0);
	CHECK(g.rip && g.rsp);
}

/* The parent waits with a plain variable, which it looks at between calls. */
static int helper(void *arg)
{
	pid_t tids[THREADS + 3], parent = *(pid_t *)arg;
	char path[64];
	int n = 0;
	struct dirent *e;
	DIR *d;

	while (!go)
		sched_yield();
	snprintf(path, sizeof path, "/proc/%d/task", parent);
	d = opendir(path);
	CHECK(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			CHECK(n < THREADS + 3);
			tids[n++] = atoi(e->d_name);
		}
	closedir(d);
	CHECK(n == THREADS + 2);
	for (int i = 0; i < n; i++)
		stop(tids[i]);
	stopped++;
	for (int i = 0; i < n; i++)
		CHECK(ptrace(PTRACE_DETACH, tids[i], 0, 0) == 0);
	return 0;
}

static void round_of(int n)
{
	pid_t self = getpid(), pid;
	int status;

	go = 0;
	pid = clone(helper, stack + sizeof stack,
		    CLONE_VM | CLONE_FS | CLONE_FILES, &self);
	CHECK(pid > 0);
	prctl(PR_SET_PTRACER, pid, 0, 0, 0);
	go = 1;
	CHECK(waitpid(pid, &status, __WALL) == pid && status == 0);
	CHECK(stopped == n);
}

int main(void)
{
	pthread_t id[THREADS + 1];

	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&id[i], NULL, sleeper, NULL) == 0);
	CHECK(pthread_create(&id[THREADS], NULL, caller, NULL) == 0);
	pthread_mutex_lock(&lock);
	while (ready < THREADS)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 1; i <= ROUNDS; i++)
		round_of(i);
	pthread_mutex_lock(&lock);
	over = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i <= THREADS; i++)
		CHECK(pthread_join(id[i], NULL) == 0);
	puts("ok");
	return 0;
}
