/*
 * Tracers inside the recording.
 *
 * The recorder is the only tracer the kernel knows.  When a recorded task
 * traces another, the recorder answers its ptrace(2) calls, holds the tracee
 * at the stops that it would have, and reports them to its wait(2) calls.
 */
#ifndef TR_RECORD_PTRACE_H
#define TR_RECORD_PTRACE_H

#include "libtrace/record/recorder.h"

enum traced_mode { TRACED_CONT, TRACED_SYSCALL, TRACED_STEP };

/* Where a tracee is held, which decides how it goes on. */
enum held_at {
	HELD_ENTRY,  /* at the entry of a system call */
	HELD_CALL,   /* inside one */
	HELD_BROKEN, /* inside one that was interrupted and will be restarted */
	HELD_SIGNAL, /* before a signal is delivered */
	HELD_GROUP,  /* in a group-stop */
	HELD_QUEUE,  /* it was waiting for its turn */
	HELD_STOP,   /* elsewhere, with nothing to finish */
	HELD_END,    /* before it ends */
};

/* Stops that are still to come, in this order. */
enum {
	DUE_VFORK_DONE = 1 << 0,
	DUE_EXEC = 1 << 1,   /* PTRACE_EVENT_EXEC, or SIGTRAP */
	DUE_EXIT = 1 << 2,   /* a call's exit, if calls are traced */
	DUE_EXEC_TRAP = 1 << 3,
	DUE_STEP = 1 << 4,   /* SIGTRAP after a step that was a call */
	DUE_ATTACH = 1 << 5, /* SIGSTOP */
	DUE_TRAP = 1 << 6,   /* PTRACE_EVENT_STOP */
};

/* A task that another recorded task traces. */
struct traced {
	struct task *tracer;
	bool seized;
	uint32_t options; /* PTRACE_O_* */
	enum traced_mode mode;
	unsigned due;
	bool stopped;     /* it is held, and may be asked about */
	bool reported;    /* a wait call has told of the stop */
	bool exact;       /* replay finds the place where it is held */
	bool listening;   /* PTRACE_LISTEN */
	bool end_shown;   /* PTRACE_EVENT_EXIT is over */
	enum held_at at;
	int status;       /* as wait(2) gives it */
	bool has_info;
	siginfo_t info;
	uint8_t op;       /* PTRACE_SYSCALL_INFO_* */
	unsigned long msg; /* PTRACE_GETEVENTMSG */
	pid_t former;     /* its id before execve */
};

/* ptrace.c: stops.  Functions that return bool tell whether the task is held,
 * so that the caller leaves it alone. */
struct traced *rec_trace(struct task *t, struct task *tracer, bool seized);
void rec_untrace(struct recorder *r, struct task *t, int sig);
/* The tracee goes on, with a signal or 0. */
void rec_traced_go_on(struct recorder *r, struct task *t, int sig);
/* Make a tracee stop as soon as it can (stops are due). */
void rec_traced_stop(struct recorder *r, struct task *t);
/* The thread that a new tracee's tracer is: the one that made its process. */
struct task *rec_real_parent(struct recorder *r, const struct task *t);
bool rec_is_restart(int64_t result);

/* requests.c */
int64_t rec_ptrace_call(struct recorder *r, struct task *t);

/* waits.c: wait4(2) and waitid(2) of tracers. */
bool rec_is_wait(const struct task *t);
/* A stop or death of a tracee can be told now: *result and memory are set. */
bool rec_wait_answer(struct recorder *r, struct task *t, int64_t *result);
/* The kernel has answered.  True when the task waits on. */
bool rec_wait_exit(struct recorder *r, struct task *t, struct tr_regs *regs);
/* A stop of t is there to be told. */
void rec_wait_wake(struct recorder *r, const struct task *tracer);
/* The process has ended: nobody will ask it about its tracees. */
void rec_wait_forget(struct recorder *r, pid_t tracer);
void rec_wait_death(struct recorder *r, struct task *t, int status);

#endif
