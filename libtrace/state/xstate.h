/* The extended (x87 and vector) registers of a task. */
#ifndef TR_STATE_XSTATE_H
#define TR_STATE_XSTATE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Digest of an XSAVE image in standard format, as formats/trace-format.md
 * defines it under "state".  What the program cannot see or the processor
 * does not determine is left out: whether a part in its initial state is
 * marked as such (XINUSE), and the last x87 instruction's addresses, which AMD
 * processors keep only with an exception pending.
 */
uint64_t tr_xstate_digest(const void *image, size_t n);

#endif
