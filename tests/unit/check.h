/* What C unit tests need: checks, and TAP from them. */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

static int check_count, check_failed_now, check_failures;

/* A false condition fails the test under way, which goes on. */
#define CHECK(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			check_failed_now = 1;                              \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
		}                                                          \
	} while (0)

/* Run one test function and report it. */
#define RUN(function) check_run(function, #function)

static inline void check_run(void (*test)(void), const char *name)
{
	check_failed_now = 0;
	test();
	check_failures += check_failed_now;
	printf("%sok %d - %s\n", check_failed_now ? "not " : "", ++check_count,
	       name);
	fflush(stdout);
}

/* The plan; what main returns. */
static inline int check_status(void)
{
	printf("1..%d\n", check_count);
	return check_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
