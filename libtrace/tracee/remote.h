/*
 * System calls executed inside a stopped task by the injected code page.
 */
#ifndef TR_TRACEE_REMOTE_H
#define TR_TRACEE_REMOTE_H

#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"
#include "libtrace/intercept/abi.h"

/* At most this many calls fit a batch beside TR_REMOTE_DATA bytes of data. */
#define TR_REMOTE_MAX 48
#define TR_REMOTE_DATA (TR_INJECT_SCRATCH + TR_REMOTE_MAX * 64)
#define TR_REMOTE_DATA_SIZE (TR_INJECT_SCRATCH_SIZE - TR_REMOTE_MAX * 64)

struct tr_batch {
	struct tr_inject_call call[TR_REMOTE_MAX];
	unsigned n;
	char data[TR_REMOTE_DATA_SIZE]; /* at TR_REMOTE_DATA */
	unsigned data_len;
};

/* Append a call; returns its index. The batch must have room. */
unsigned tr_batch_add(struct tr_batch *b, uint64_t nr, uint64_t a0, uint64_t a1,
		      uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/* Append bytes, 8-byte aligned, or a string, and return the address in the
 * task. */
uint64_t tr_batch_data(struct tr_batch *b, const void *data, size_t n);
uint64_t tr_batch_string(struct tr_batch *b, const char *s);

/*
 * Run the batch in one stop.  Registers and signal mask are as before when it
 * returns.  Results are in call[i].result; their meaning is the caller's.
 */
int tr_batch_run(pid_t tid, struct tr_batch *b, struct tr_error *err)
	TR_MUST_CHECK;

/* One call; its result in *result. */
int tr_remote_call(pid_t tid, int64_t *result, uint64_t nr, uint64_t a0,
		   uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   uint64_t a5, struct tr_error *err) TR_MUST_CHECK;

/*
 * The same in a task at the seccomp stop of a system call's entry, where it
 * stands again when this returns: that call is skipped, and entered anew.
 */
int tr_remote_call_at_entry(pid_t tid, int64_t *result, uint64_t nr,
			    uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
			    uint64_t a4, uint64_t a5, struct tr_error *err)
	TR_MUST_CHECK;

/* As tr_remote_call, but it ends in no trap: for a task to which SIGTRAP does
 * something, which must not be filtered by the program itself. */
int tr_remote_call_quietly(pid_t tid, int64_t *result, uint64_t nr, uint64_t a0,
			   uint64_t a1, uint64_t a2, uint64_t a3,
			   struct tr_error *err) TR_MUST_CHECK;

/* Make a task by clone(2) in `tid` (flags: CLONE_VM or 0): it shares or copies
 * the memory, is traced and stopped, and is our child. Returns its id. */
pid_t tr_remote_clone(pid_t tid, uint64_t flags, struct tr_error *err)
	TR_MUST_CHECK;

/*
 * Map the injected pages in a task stopped at its exit from execve, by the
 * syscall instruction at address `insn` (in the vdso), and run the batch.
 */
int tr_inject_pages(pid_t tid, uint64_t insn, struct tr_batch *b,
		    struct tr_error *err) TR_MUST_CHECK;

#endif
