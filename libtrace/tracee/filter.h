/*
 * The seccomp filter of traced tasks: every system call is reported to the
 * tracer, except those of the injected code's two instructions for them.
 */
#ifndef TR_TRACEE_FILTER_H
#define TR_TRACEE_FILTER_H

#include <linux/filter.h>

/* What the filter's stops carry (PTRACE_GETEVENTMSG): a filter of the program's
 * own that asks for a tracer carries something else. */
#define TR_FILTER_DATA 0x7472
#define TR_FILTER_LEN 7u

void tr_filter_fill(struct sock_filter code[TR_FILTER_LEN]);

#endif
