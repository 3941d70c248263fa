/*
 * Which pages of a process were written: a userfaultfd(2) of its address space
 * in asynchronous write-protect mode (Linux 6.7).  The kernel itself lets the
 * first write to a protected page through and remembers it; nobody is told and
 * nobody waits.  tr_pagemap_own() reads and protects anew.
 */
#ifndef TR_TRACEE_WRITES_H
#define TR_TRACEE_WRITES_H

#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"

/*
 * The descriptor, for a task stopped where it can make remote calls.  It is
 * made in the task, taken out, and closed there before the task runs on: the
 * program never has it.  Fails with TR_EUNSUPPORTED where the kernel or a
 * limit refuses; the task is as before then.
 */
int tr_writes_open(pid_t tid, struct tr_error *err) TR_MUST_CHECK;

/* Track private memory from here on; ranges that are tracked already stay as
 * they are.  -1 with errno set. */
int tr_writes_register(int fd, uint64_t start, uint64_t end) TR_MUST_CHECK;

#endif
