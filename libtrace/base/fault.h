/*
 * Named fault points: places where tests make the tools fail on purpose.
 *
 * The environment variable TRACE_FAULT holds a comma-separated list of
 * NAME=ACTION[@N]: at the Nth passage (default 1) through the point NAME,
 * ACTION is done: an errno name in lower case (enospc, eio, eintr) makes the
 * point fail with that errno from then on; `kill` raises SIGKILL.
 */
#ifndef TR_BASE_FAULT_H
#define TR_BASE_FAULT_H

#include <stdbool.h>

/* True (with errno set) when the named point must fail now. Thread-safe. */
bool tr_fault(const char *name);

#endif
