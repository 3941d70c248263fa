/*
 * What the engine places in every traced address space, and where.
 *
 * One region at a fixed address that neither the kernel's default layout nor
 * the usual sanitizer shadows use: code, which executes system calls for the
 * engine (batch.S) and in the program's stead (inject/), and memory for both.
 * It is there while recording and while replaying, so that both have the same
 * free address space.
 *
 * Nothing of it is part of a trace: a call executed by the injected code is
 * recorded as if the program's own instruction had trapped.  How a program is
 * replayed, and by which version of this code, is therefore the replayer's
 * affair alone.
 */
#ifndef TR_INTERCEPT_ABI_H
#define TR_INTERCEPT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/intercept/layout.h"

#define TR_INJECT_BASE 0x70000000ul
/* Readable and executable: */
#define TR_INJECT_CODE TR_INJECT_BASE
#define TR_INJECT_CALLS (TR_INJECT_BASE + 0x1000)
#define TR_INJECT_STUBS (TR_INJECT_BASE + 0x4000)
#define TR_INJECT_STUBS_SIZE 0x3c000ul
/* Readable and writable: */
#define TR_INJECT_SCRATCH (TR_INJECT_BASE + 0x40000)
#define TR_INJECT_SCRATCH_SIZE 0x1000ul
#define TR_INJECT_CONTROL (TR_INJECT_BASE + 0x41000)
#define TR_INJECT_CONTROL_SIZE 0x4000ul
#define TR_INJECT_SLOTS (TR_INJECT_BASE + 0x45000)
#define TR_INJECT_STACK_TOP (TR_INJECT_BASE + 0x57000)
#define TR_INJECT_LOG (TR_INJECT_BASE + 0x80000)
#define TR_INJECT_LOG_SIZE 0x100000ul
#define TR_INJECT_FEED (TR_INJECT_BASE + 0x180000)
#define TR_INJECT_FEED_SIZE 0x100000ul
#define TR_INJECT_END (TR_INJECT_BASE + 0x280000)

/* While recording, results of blocked calls are kept here until they can be
 * given to the program. */
#define TR_SCRATCH_BASE 0x71000000ul
#define TR_SCRATCH_END 0x78000000ul

/* Is the mapping the engine's? */
static inline bool tr_is_engine(uint64_t start, uint64_t end)
{
	return (start >= TR_INJECT_BASE && end <= TR_INJECT_END) ||
	       (start >= TR_SCRATCH_BASE && end <= TR_SCRATCH_END);
}

/* The code that works for the engine, as assembled into the library; position
 * independent. */
extern const uint8_t tr_inject_start[], tr_inject_end[];
/* Its entry points and the address after its syscall instruction. */
extern const uint8_t tr_inject_batch[], tr_inject_single[],
	tr_inject_after_syscall[];

static inline uint64_t tr_inject_address(const uint8_t *label)
{
	return TR_INJECT_CODE + (uint64_t)(label - tr_inject_start);
}

/* One call of a batch, in scratch memory. */
struct tr_inject_call {
	uint64_t nr, args[6];
	int64_t result;
};

/* The code that works for the program, to be placed at TR_INJECT_CALLS. */
extern const uint8_t tr_calls_start[], tr_calls_end[];
extern const uint8_t tr_calls_enter[], tr_calls_go_traced[],
	tr_calls_syscall[], tr_calls_after_syscall[], tr_calls_abandon[],
	tr_calls_after_shown[], tr_calls_after_leave[], tr_calls_settle[],
	tr_calls_insn[];

static inline uint64_t tr_calls_address(const uint8_t *label)
{
	return TR_INJECT_CALLS + (uint64_t)(label - tr_calls_start);
}

/*
 * From a patched instruction, jumps (tracee/stub.h) lead to its stub.  That of
 * a syscall instruction:
 *
 *	mov $number, %eax	if a jump took the place of this, or of others
 *  or else it begins here:
 *	movabs $after, %rcx	the address after the instruction
 *	mov $traced, %r11d	that of the stub's own syscall instruction
 *	jmp tr_calls_enter
 *  traced:
 *	syscall			where the tracer sees the call
 *
 * The syscall instruction destroys rcx and r11 anyway.
 */
#define TR_STUB_SIZE 48ul
#define TR_STUB_LEAD 15ul   /* bytes kept free for that */
#define TR_STUB_TRACED 36ul /* offset of its syscall instruction */
#define TR_STUBS_MAX (TR_INJECT_STUBS_SIZE / TR_STUB_SIZE)

/*
 * The same for XSAVEC to memory relative to rsp, with room of two stubs, behind
 * the same room:
 *
 *	xsavec displacement(%rsp)
 *	mov %rsp, CONTROL.rsp
 *	mov $TR_INJECT_STACK_TOP, %esp
 *	pushfq
 *	push %rsi
 *	mov $tail, %esi
 *	jmp tr_calls_settle
 *  tail:
 *	.quad displacement, address after the instruction
 */
#define TR_LONG_STUB_SIZE (2 * TR_STUB_SIZE)
#define TR_LONG_STUB_TAIL 80ul
/*
 * And for CPUID, RDTSC and RDTSCP, behind the same:
 *
 *	mov %rsp, CONTROL.rsp
 *	mov $TR_INJECT_STACK_TOP, %esp
 *	mov %rsi, CONTROL.rsi
 *	mov $tail, %esi
 *	jmp tr_calls_insn
 *  trap:
 *	int3			where the tracer sees the instruction
 *  tail:
 *	.quad enum tr_insn, address after the instruction
 */
#define TR_INSN_STUB_TRAP 46ul
#define TR_SITE_MAX 9u /* the longest instruction that is patched */
#define TR_XSAVE_PARTS 32u

/* The program's registers at a call, as pushed on the injected code's stack. */
struct tr_call_frame {
	uint64_t r15, r14, r13, r12, rbp, rbx, r9, r8, r10, rdx, rsi, rdi;
	uint64_t rax;    /* the call's number, then its result */
	uint64_t traced; /* address of the stub's syscall instruction */
	uint64_t after;  /* address after the program's */
	uint64_t flags;
};
#define TR_FRAME_WORDS 16u

/* Memory one argument names: its part of a rule. */
enum tr_rule_what {
	TR_RULE_IN = 1,
	TR_RULE_OUT = 2,
	TR_RULE_STRING = 4,
	TR_RULE_ALWAYS = 8,     /* written even when the call fails */
	TR_RULE_NULL_ONLY = 16, /* no rule unless the pointer is NULL */
};
enum tr_rule_size {
	TR_RULE_CONST,
	TR_RULE_ARG,
	TR_RULE_RESULT,
	TR_RULE_COMMAND, /* tr_ioctl_size of the second argument */
};
enum tr_rule_count { TR_COUNT_LONG, TR_COUNT_INT, TR_COUNT_UINT };

struct tr_rule_mem {
	uint8_t arg, what, size;
	uint8_t count;      /* argument with the size, or RESULT's bound */
	uint8_t count_type; /* how much of that argument counts */
	uint16_t scale;
};

#define TR_RULE_MEMS 4u
enum tr_rule_flags {
	TR_RULE_BLOCKS = 1,      /* may wait for what other tasks do */
	TR_RULE_WRITES_FD = 2,   /* data goes to descriptor args[0] */
	TR_RULE_FORGETS_FD0 = 4, /* descriptor args[0] changes meaning */
	TR_RULE_FORGETS_FD1 = 8, /* args[1] does */
};
struct tr_rule {
	uint8_t nmem, flags;
	struct tr_rule_mem mem[TR_RULE_MEMS];
};

#define TR_RULES_MAX 255u
#define TR_RULES_NR 512u
#define TR_FDS_MAX 1024u

enum tr_calls_mode { TR_CALLS_OFF, TR_CALLS_RECORD, TR_CALLS_REPLAY };
enum tr_calls_phase {
	TR_PHASE_OUT,    /* outside, or entering or leaving */
	TR_PHASE_BEFORE, /* the frame is whole, the call not yet made */
	TR_PHASE_AFTER,  /* it has been made */
	TR_PHASE_INSN,   /* an instruction is executed */
};
/* What is known of a descriptor of the program's. */
enum tr_fd_kind {
	TR_FD_UNKNOWN, /* calls that write to it are traced */
	TR_FD_OTHER,
	TR_FD_STDOUT,  /* the recording's output */
	TR_FD_STDERR,
};

struct tr_calls_control {
	uint32_t mode;
	uint32_t trace_next;   /* the next call must be traced */
	uint32_t alone;        /* calls may block */
	uint32_t unused;
	uint32_t leave;        /* stop once when the call is over */
	uint32_t phase;
	uint64_t rsp;          /* the program's */
	uint64_t result;       /* of the call being made */
	uint64_t head;         /* bytes in the log */
	uint64_t done;         /* calls in the log */
	uint64_t feed_at, feed_end; /* bytes in the feed */
	uint64_t home;         /* where the stub of an instruction goes on */
	uint64_t rsi;          /* the program's, while that begins */
	/* Bytes of each part of the extended state; odd: at a multiple of 64. */
	uint32_t part_size[TR_XSAVE_PARTS];
	uint8_t fd[TR_FDS_MAX];
	uint8_t rule_of[TR_RULES_NR]; /* 1 + index by number, or 0 */
	struct tr_rule rule[TR_RULES_MAX];
};

/* What enter.S takes for granted. */
_Static_assert(TR_LAYOUT_CONTROL == TR_INJECT_CONTROL &&
	       TR_LAYOUT_STACK_TOP == TR_INJECT_STACK_TOP &&
	       offsetof(struct tr_calls_control, leave) == 16 &&
	       offsetof(struct tr_calls_control, phase) == 20 &&
	       offsetof(struct tr_calls_control, rsp) == 24 &&
	       offsetof(struct tr_calls_control, result) == 32 &&
	       offsetof(struct tr_calls_control, home) == 72 &&
	       offsetof(struct tr_calls_control, rsi) == 80 &&
	       offsetof(struct tr_call_frame, rax) == 96 &&
	       sizeof(struct tr_call_frame) == 128 &&
	       sizeof(struct tr_calls_control) <= TR_INJECT_CONTROL_SIZE,
	       "enter.S");

/*
 * The log: one record for each call, its memory after it.  Everything is
 * aligned to eight bytes.
 */
struct tr_log_call {
	uint32_t size; /* with what follows */
	uint16_t nranges;
	uint8_t output; /* enum tr_fd_kind */
	uint8_t insn;   /* enum tr_insn, or 0 for a call */
	int64_t result; /* of an instruction: the address after it */
	uint64_t rsp;
	struct tr_call_frame frame;
};
struct tr_log_range {
	uint64_t addr;
	uint32_t len; /* bytes that follow, padded to eight */
	uint8_t arg, what, unused[2];
};
/*
 * The record of an instruction: rcx and r11 are live, and take the place of
 * `after` and `traced` in the frame.  What it gives follows.
 */
struct tr_log_insn {
	uint64_t rax, rbx, rcx, rdx;
};
/* A call whose memory could be more is traced. */
#define TR_LOG_CALL_MAX 0x40000ul

/*
 * The feed: what replayed calls must look like and what they give.  Ranges are
 * what the call writes.  Before them are calls (struct tr_inject_call) that are
 * made in its place and must have these results, for one that changes mappings;
 * behind them the data of these calls.
 */
struct tr_feed_call {
	uint32_t size;
	uint16_t nranges;
	uint8_t insn, ncalls;
	int64_t result;
	uint64_t rsp;
	struct tr_call_frame frame; /* rax is the number; traced is ignored */
};

/* What an ioctl(2) command that only asks writes; 0: it is none of these. */
static inline uint64_t tr_ioctl_size(uint32_t command)
{
	if (command == 0x5401) /* TCGETS: struct termios of the kernel's */
		return 36;
	if (command == 0x5413) /* TIOCGWINSZ */
		return 8;
	/* TIOCGPGRP, FIONREAD */
	return command == 0x540f || command == 0x541b ? 4 : 0;
}

/* Must the tracer see that the call was made before the program goes on?  An
 * mmap, but for memory alone, anywhere, not executable. */
static inline bool tr_call_is_shown(const struct tr_call_frame *f)
{
	return f->rax == 9 && ((f->r10 & ~UINT64_C(0x2c000)) != 0x22 ||
			       f->rdx & ~UINT64_C(3));
}

/* Of calls with many commands, those that touch no memory, leave nothing when
 * interrupted, and change nothing that the engine must know. */
static inline bool tr_call_is_simple(const struct tr_call_frame *f)
{
	switch (f->rax) {
	case 72: /* fcntl: F_DUPFD to F_SETFL, F_DUPFD_CLOEXEC */
		return (uint32_t)f->rsi <= 4 || (uint32_t)f->rsi == 1030;
	case 202: /* futex: FUTEX_WAKE, private or not */
		return ((uint32_t)f->rsi & ~128u) == 1;
	case 13: /* rt_sigaction: but for SIGTRAP, SIGSEGV and SIGCHLD */
		return (int32_t)f->rdi != 5 && (int32_t)f->rdi != 11 &&
		       (int32_t)f->rdi != 17;
	case 302: /* prlimit64 that asks */
		return !f->rdx;
	case 9: /* mmap, private, and not in place of the engine's memory */
		return (f->r10 & ~UINT64_C(0x2d830)) == 2 &&
		       (!(f->r10 & 0x10) || f->rdi >= TR_SCRATCH_END ||
			f->rdi + f->rsi <= TR_INJECT_BASE);
	case 16: /* ioctl that asks */
		return tr_ioctl_size((uint32_t)f->rsi) > 0;
	case 10: /* mprotect without PROT_EXEC */
		return !(f->rdx & ~UINT64_C(3));
	case 28: /* madvise: MADV_NORMAL to MADV_FREE */
		return (uint32_t)f->rdx <= 8;
	case 7: /* poll without a time limit of which a rest could be left */
		return (int32_t)f->rdx <= 0;
	default:
		return true;
	}
}

#define TR_ALIGN8(n) (((n) + 7) & ~(uint64_t)7)

#endif
