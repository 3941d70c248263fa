/*
 * The syscall model: what each x86-64 system call reads and writes, and how
 * replay treats it.  Generated from formats/syscalls.tbl, formats/ioctls.tbl
 * and formats/flags.tbl (their grammar is described at the top of each); what
 * a table cannot say is in irregular.c.  Knows nothing of ptrace: memory is
 * read through a callback.
 */
#ifndef TR_MODEL_SYSCALLS_H
#define TR_MODEL_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"

/* How replay treats the call. */
enum tr_sys_class {
	TR_SYS_PLAIN,      /* result and memory effects are re-applied */
	TR_SYS_MAP,        /* changes the address space: done again */
	TR_SYS_TASK,       /* makes, changes or ends tasks */
	TR_SYS_SIGNAL,     /* rt_sigreturn and friends: engine code */
	TR_SYS_DENY,       /* the recorder answers deny_errno */
	TR_SYS_UNMODELLED, /* runs; replay stops before it */
};

enum tr_arg_type {
	TR_ARG_NONE,
	TR_ARG_INT,   /* signed int (32 bits count) */
	TR_ARG_UINT,  /* unsigned int */
	TR_ARG_LONG,  /* signed long */
	TR_ARG_SIZE,  /* unsigned long, a count or size */
	TR_ARG_FD,
	TR_ARG_DIRFD, /* fd or AT_FDCWD */
	TR_ARG_PID,
	TR_ARG_SIGNAL,
	TR_ARG_MODE,  /* octal */
	TR_ARG_FLAGS, /* see flags */
	TR_ARG_PTR,   /* an address the model does not follow */
	TR_ARG_PATH,  /* NUL-terminated string the kernel reads */
	TR_ARG_STRV,  /* NULL-terminated array of strings the kernel reads */
	TR_ARG_BUF,   /* memory: see dir and size */
	TR_ARG_IOVEC, /* array of struct iovec, see dir and size */
	TR_ARG_MSG,   /* struct msghdr, see dir */
};

enum tr_dir { TR_DIR_IN = 1, TR_DIR_OUT = 2, TR_DIR_INOUT = 3 };

/* Bytes of a buffer: scale * (the named quantity), or scale alone. */
struct tr_size_rule {
	enum {
		TR_SIZE_CONST,
		TR_SIZE_ARG,
		TR_SIZE_RESULT,
		TR_SIZE_DEREF32,
		TR_SIZE_CODE, /* irregular.c knows */
	} kind;
	uint8_t arg;    /* for ARG; for DEREF32 the pointer argument */
	uint8_t limit;  /* RESULT: 1 + the argument that bounds it, or 0 */
	uint32_t scale;
};

struct tr_flag {
	const char *name;
	uint64_t value, mask; /* matches when (v & mask) == value */
};

struct tr_flag_set {
	const char *name;
	bool is_enum; /* exactly one name, not a combination */
	const struct tr_flag *flags;
	size_t n;
};

struct tr_sys_arg {
	const char *name;
	enum tr_arg_type type;
	enum tr_dir dir;          /* BUF, IOVEC, MSG */
	bool even_on_error;       /* written whatever the result */
	struct tr_size_rule size; /* BUF; IOVEC: element count, OUT is bounded
				     by the result as well */
	const char *struct_name;  /* when the table names one, else NULL */
	const struct tr_flag_set *flags;
};

struct tr_sys {
	int nr;
	const char *name;
	enum tr_sys_class class;
	int deny_errno;
	bool quick; /* injected code may make the call */
	uint8_t nargs;
	struct tr_sys_arg arg[6];
};

/* NULL when the number is unknown. */
const struct tr_sys *tr_sys_lookup(uint64_t nr);
const struct tr_sys *tr_sys_by_name(const char *name);
size_t tr_sys_count(void); /* numbers are below it */

/* Reads n bytes of the caller's memory; false when unmapped. */
typedef bool tr_mem_fn(void *ctx, uint64_t addr, void *buf, size_t n);

/* A call in flight. The user fills nr, args, read, ctx; result after exit. */
struct tr_call {
	uint64_t nr;
	uint64_t args[6];
	int64_t result;
	tr_mem_fn *read;
	void *ctx;
	uint64_t entry_len[6]; /* value-result lengths, noted by tr_call_enter */
};

struct tr_range {
	uint8_t arg;
	bool is_string;
	uint64_t addr, len;
};

struct tr_ranges {
	struct tr_range *r; /* owned; release with tr_ranges_release */
	size_t n, cap;
};
void tr_ranges_release(struct tr_ranges *rs);

/*
 * At entry: note value-result lengths and append to `in` the memory the call
 * reads (strings with is_string and len without the NUL).  Unreadable memory
 * is left out: the kernel answers EFAULT by itself.
 */
void tr_call_enter(struct tr_call *c, struct tr_ranges *in);
/*
 * At exit, c->result set: append to `out` the memory the kernel may have
 * written (never more than is readable; overlaps are allowed).
 * Returns false when the model does not know (ioctl without a row, class
 * UNMODELLED), unless the call failed in a way that has no effect.
 */
bool tr_call_exit(struct tr_call *c, struct tr_ranges *out);

/*
 * After tr_call_enter: append the memory the call may write at most, whatever
 * it will return, readable or not, and in as many pieces as it has pointers to
 * it.  False when the model does not know.
 */
bool tr_call_may_write(const struct tr_call *c, struct tr_ranges *out);

/* Does the call move data to a descriptor of its own accord (sendfile,
 * splice, copy_file_range, tee, vmsplice)?  Gives the argument index of the
 * output descriptor, or -1. */
int tr_sys_kernel_copy_fd(uint64_t nr);
/* For write-like calls, the argument index of the output descriptor
 * (write, pwrite64, writev, pwritev, pwritev2, sendto, sendmsg), or -1. */
int tr_sys_write_fd(uint64_t nr);
/*
 * Append the memory whose bytes such a call moves to the descriptor, in their
 * order: at most as much as it asked for, not what its result says.
 */
void tr_call_written(struct tr_call *c, struct tr_ranges *data);

/* Can the call wait for something that another task does? */
bool tr_sys_may_block(uint64_t nr);

const char *tr_errno_name(int e);   /* "ENOENT", or NULL */
const char *tr_signal_name(int sig); /* "SIGSEGV", or NULL */

#endif
