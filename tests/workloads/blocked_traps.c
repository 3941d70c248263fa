/* SIGTRAP blocked, ignored and handled by a program that executes CPUID, RDTSC
 * and RDTSCP, which are no business of SIGTRAP's. */
#include <cpuid.h>
#include <pthread.h>
#include <signal.h>
#include <x86intrin.h>

#include "check.h"

static volatile sig_atomic_t traps;

static void on_trap(int sig)
{
	traps += sig == SIGTRAP;
}

__attribute__((noinline)) static void instructions(void)
{
	unsigned a, b, c, d, aux;
	unsigned long long before = __rdtsc();

	CHECK(__get_cpuid(0, &a, &b, &c, &d) && a > 0);
	CHECK(__rdtscp(&aux) >= before);
}

static unsigned long long from_status(const char *field)
{
	unsigned long long mask = 0;
	char line[256];
	FILE *f = fopen("/proc/thread-self/status", "r");

	CHECK(f);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, field, strlen(field)) == 0)
			mask = strtoull(line + strlen(field) + 1, NULL, 16);
	fclose(f);
	return mask >> (SIGTRAP - 1) & 1;
}

static void expect(void (*handler)(int), int blocked)
{
	struct sigaction sa;
	sigset_t mask;

	CHECK(sigaction(SIGTRAP, NULL, &sa) == 0);
	CHECK(sa.sa_handler == handler);
	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
	CHECK(sigismember(&mask, SIGTRAP) == blocked);
	CHECK(from_status("SigBlk:") == (unsigned)blocked);
	CHECK(from_status("SigIgn:") == (handler == SIG_IGN));
	CHECK(from_status("SigCgt:") == (handler == on_trap));
}

static void try(void (*handler)(int), int blocked)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTRAP);
	CHECK(sigaction(SIGTRAP, &sa, NULL) == 0);
	CHECK(pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &mask,
			      NULL) == 0);
	expect(handler, blocked);
	for (int i = 0; i < 3; i++)
		instructions();
	expect(handler, blocked);
	CHECK(sigaction(SIGTRAP, NULL, &sa) == 0);
	CHECK(sa.sa_flags & SA_RESTART);
}

static void all(void)
{
	try(SIG_DFL, 1);
	try(SIG_IGN, 1);
	try(on_trap, 1);
	try(SIG_IGN, 0);
	try(on_trap, 0);
	try(SIG_DFL, 0);
}

static void *thread(void *arg)
{
	sigset_t mask;

	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
	CHECK(sigismember(&mask, SIGTRAP) == 1);
	instructions();
	expect(on_trap, 1);
	return arg;
}

/* A signal that was really sent arrives when it is wanted, and once. */
static void sent(void)
{
	siginfo_t si;
	sigset_t mask;
	pthread_t th;

	try(on_trap, 1);
	CHECK(pthread_create(&th, NULL, thread, NULL) == 0);
	CHECK(pthread_join(th, NULL) == 0);
	CHECK(kill(getpid(), SIGTRAP) == 0);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTRAP);
	CHECK(sigwaitinfo(&mask, &si) == SIGTRAP && si.si_code == SI_USER);
	CHECK(traps == 0);
	instructions();
	CHECK(traps == 0);
	CHECK(kill(getpid(), SIGTRAP) == 0);
	try(on_trap, 0);
	CHECK(traps == 1);
}

/* In other places than before. */
__attribute__((noinline)) static void more_instructions(void)
{
	unsigned a, b, c, d;

	__cpuid_count(7, 0, a, b, c, d);
	__cpuid_count(1, 0, a, b, c, d);
	CHECK(__rdtsc() > 0);
}

/* One that waits for the thread does so still. */
static void waits(void)
{
	sigset_t mask;

	try(on_trap, 1);
	CHECK(raise(SIGTRAP) == 0);
	more_instructions();
	instructions();
	CHECK(sigpending(&mask) == 0 && sigismember(&mask, SIGTRAP));
	expect(on_trap, 1);
	CHECK(traps == 1);
	try(on_trap, 0);
	CHECK(traps == 2);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		expect(strcmp(argv[1], "ignored") == 0 ? SIG_IGN : SIG_DFL,
		       strcmp(argv[1], "blocked") == 0);
		puts("ok");
		return 0;
	}
	all();
	sent();
	waits();
	if (fork() == 0) {
		try(SIG_IGN, 0);
		execl(argv[0], argv[0], "ignored", NULL);
	}
	try(SIG_DFL, 1);
	execl("/proc/self/exe", argv[0], "blocked", NULL);
	return 1;
}
