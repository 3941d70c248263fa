/* Workloads verify themselves: the first thing that is not as it should be
 * is printed and ends the program. */
#ifndef WORKLOADS_CHECK_H
#define WORKLOADS_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(cond)                                                     \
	do {                                                            \
		if (!(cond)) {                                          \
			printf("%s:%d: %s (errno: %s)\n", __FILE__,     \
			       __LINE__, #cond, strerror(errno));       \
			fflush(stdout);                                 \
			_exit(1);                                       \
		}                                                       \
	} while (0)

#endif
