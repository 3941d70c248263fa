/* siglongjmp out of handlers: of a call, of a loop that computes and calls, of
 * a handler in a handler, with and without the mask. */
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "check.h"

static sigjmp_buf back;
static volatile sig_atomic_t depth, count;

static void jump(int sig)
{
	(void)sig;
	count++;
	siglongjmp(back, 1);
}

static void nest(int sig)
{
	(void)sig;
	if (++depth < 5)
		raise(SIGUSR1); /* SA_NODEFER: at once */
	else
		siglongjmp(back, depth);
	CHECK(0);
}

static void alarm_after(long us)
{
	struct itimerval t = {.it_value = {0, us}};

	CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
}

static int is_blocked(int sig)
{
	sigset_t set;

	CHECK(sigprocmask(SIG_BLOCK, NULL, &set) == 0);
	return sigismember(&set, sig);
}

static void out_of_a_call(void)
{
	int fds[2];
	char c;

	CHECK(pipe(fds) == 0);
	for (volatile int i = 0; i < 5; i++) {
		if (sigsetjmp(back, 1) == 0) {
			alarm_after(3000);
			(void)!read(fds[0], &c, 1);
			CHECK(0);
		}
		CHECK(count == i + 1 && !is_blocked(SIGALRM));
	}
	if (sigsetjmp(back, 0) == 0) {
		alarm_after(3000);
		(void)!read(fds[0], &c, 1);
	}
	CHECK(is_blocked(SIGALRM)); /* the mask was not saved */
	sigset_t none;
	sigemptyset(&none);
	CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
}

static void out_of_a_loop(void)
{
	volatile unsigned long n = 0;

	for (volatile int i = 0; i < 5; i++) {
		if (sigsetjmp(back, 1) == 0) {
			alarm_after(3000);
			for (;; n++)
				getppid();
		}
	}
	CHECK(n > 0);
	printf("%lu\n", n);
}

int main(void)
{
	struct sigaction sa = {.sa_handler = nest, .sa_flags = SA_NODEFER};

	signal(SIGALRM, jump);
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	out_of_a_call();
	out_of_a_loop();
	if (sigsetjmp(back, 1) == 0)
		raise(SIGUSR1);
	CHECK(depth == 5 && !is_blocked(SIGUSR1));
	puts("ok");
	return 0;
}
