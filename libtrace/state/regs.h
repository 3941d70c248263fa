/* Register sets: names, derivation and comparison. */
#ifndef TR_STATE_REGS_H
#define TR_STATE_REGS_H

#include <stdbool.h>
#include <stdint.h>

#include "libtrace/base/buf.h"
#include "libtrace/format/event.h"

/*
 * The registers after a system call that returned `result`, from those at its
 * entry: the syscall instruction leaves rip in rcx and rflags in r11 (Intel
 * SDM, SYSCALL), the kernel changes rax alone.
 */
struct tr_regs tr_regs_after_call(const struct tr_regs *entry, int64_t result);

/* Set the arguments of a system call, in the order of syscall(2). */
static inline void tr_regs_set_args(struct tr_regs *regs, const uint64_t args[6])
{
	regs->rdi = args[0];
	regs->rsi = args[1];
	regs->rdx = args[2];
	regs->r10 = args[3];
	regs->r8 = args[4];
	regs->r9 = args[5];
}

/*
 * Has the task executed nothing since its last system call's exit?  orig_rax
 * holds a call's number until the task is back in user mode, and -1 after an
 * interrupt or a fault (arch/x86/entry/entry_64.S).
 */
static inline bool tr_at_call_boundary(const struct tr_regs *regs)
{
	return (int64_t)regs->orig_rax >= 0;
}

/* Resume flag: set in what an exception saves, so that the instruction is not
 * trapped again; programs cannot see it (Intel SDM, "EFLAGS register"). */
#define TR_EFLAGS_RF ((uint64_t)1 << 16)

/*
 * Equal as far as the program can see: orig_rax, the kernel's memory of the
 * last system call, is not compared.
 */
bool tr_regs_equal(const struct tr_regs *a, const struct tr_regs *b);

/* Append "rax 0x1 (recorded) 0x2 (replayed)" lines for what differs. */
void tr_regs_describe_difference(const struct tr_regs *recorded,
				 const struct tr_regs *replayed,
				 struct tr_buf *out);

#endif
