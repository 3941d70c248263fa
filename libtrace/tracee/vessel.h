/*
 * Vessels: the processes that replay runs recorded tasks in.
 *
 * A vessel is an almost empty address space: the two engine pages and
 * nothing else.  Every one is our direct child, traced, in a session of its
 * own, with the trace as its working directory and /dev/null as its standard
 * descriptors, and dies with us.
 */
#ifndef TR_TRACEE_VESSEL_H
#define TR_TRACEE_VESSEL_H

#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"

/* The first one, from which tr_remote_clone makes all others. */
pid_t tr_vessel_first(int trace_dirfd, struct tr_error *err) TR_MUST_CHECK;

/* End a vessel and reap it. */
void tr_vessel_end(pid_t tid);

/* Pin to a core; -1 if this machine does not have it. */
int tr_vessel_pin(pid_t tid, int64_t cpu);
/* Let the stack grow as far as when recorded (RLIMIT_STACK). */
void tr_vessel_limit_stack(pid_t tid, uint64_t bytes);

#endif
