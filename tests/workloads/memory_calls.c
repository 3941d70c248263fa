/* Memory got, protected, given back and got again at the same place, many times
 * over: by one task, by threads side by side, and by a child with what its
 * parent had. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

enum { PAGE = 4096, ROUNDS = 60 };

static __thread sigjmp_buf back;
static int alone = 1;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

/* Does a write there fault? */
static int faults(volatile char *p)
{
	if (sigsetjmp(back, 1))
		return 1;
	*p = 1;
	return 0;
}

static void check_zero(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 64)
		CHECK(p[i] == 0);
}

static void one_round(unsigned k)
{
	size_t n = (1 + k % 7) * PAGE;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	check_zero(p, n);
	memset(p, (int)k, n);
	CHECK(mprotect(p, n, PROT_READ) == 0);
	CHECK(p[n - 1] == (char)k && faults(p));
	CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE) == 0);
	CHECK(!faults(p) && p[0] == 1 && (n == PAGE || faults(p + PAGE)));
	CHECK(mprotect(p, n, PROT_READ | PROT_WRITE) == 0);
	CHECK(madvise(p, PAGE, MADV_DONTNEED) == 0);
	check_zero(p, PAGE);
	CHECK(n == PAGE || p[n - 1] == (char)k);
	CHECK(munmap(p + n - PAGE, PAGE) == 0);
	CHECK(!alone || faults(p + n - PAGE)); /* nobody else took it */
	CHECK(n == PAGE || munmap(p, n - PAGE) == 0);
}

static void heap(void)
{
	for (unsigned k = 0; k < ROUNDS; k++) {
		char *p = sbrk(3 * PAGE);

		CHECK(p != (void *)-1);
		check_zero(p, 3 * PAGE);
		memset(p, 'h', 3 * PAGE);
		CHECK(sbrk(-2 * PAGE) != (void *)-1);
		CHECK(p[PAGE - 1] == 'h');
		CHECK(sbrk(-PAGE) != (void *)-1);
	}
}

static void failing(void)
{
	char *p = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	for (int k = 0; k < 3; k++) {
		CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0) == MAP_FAILED && errno == EINVAL);
		CHECK(munmap(p + 1, PAGE) < 0 && errno == EINVAL);
		CHECK(mprotect(p + 1, PAGE, PROT_READ) < 0 && errno == EINVAL);
		CHECK(madvise(p + 1, PAGE, MADV_DONTNEED) < 0 &&
		      errno == EINVAL);
		CHECK(faults(p));
	}
	CHECK(munmap(p, PAGE) == 0);
	CHECK(mprotect(p, PAGE, PROT_READ) < 0 && errno == ENOMEM);
}

/* mov $k, %eax; ret */
static void make_code(uint8_t *p, uint8_t k)
{
	const uint8_t code[] = {0xb8, k, 0, 0, 0, 0xc3};

	memcpy(p, code, sizeof code);
}

static void code(void)
{
	uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*call)(void);

	CHECK(p != MAP_FAILED);
	memcpy(&call, &p, sizeof call);
	for (uint8_t k = 0; k < ROUNDS; k++) {
		make_code(p, k);
		CHECK(mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0);
		CHECK(call() == k);
		CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE) == 0);
	}
	CHECK(munmap(p, PAGE) == 0);
}

static void *rounds(void *arg)
{
	for (unsigned k = 0; k < ROUNDS; k++)
		one_round(k);
	return arg;
}

int main(void)
{
	struct sigaction sa = {.sa_handler = on_fault};
	pthread_t thread[3];
	int status;
	pid_t pid;

	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	rounds(NULL);
	heap();
	failing();
	code();
	alone = 0;
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, rounds, NULL) == 0);
	rounds(NULL);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		rounds(NULL);
		heap();
		_exit(7);
	}
	rounds(NULL);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	puts("ok");
	return 0;
}
