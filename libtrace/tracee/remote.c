/* System calls executed inside a stopped task. */
#include "libtrace/tracee/remote.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

unsigned tr_batch_add(struct tr_batch *b, uint64_t nr, uint64_t a0, uint64_t a1,
		      uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	b->call[b->n] = (struct tr_inject_call){
		nr, {a0, a1, a2, a3, a4, a5}, -ENOSYS};
	return b->n++;
}

uint64_t tr_batch_data(struct tr_batch *b, const void *data, size_t n)
{
	uint64_t at = TR_REMOTE_DATA + b->data_len;

	memcpy(b->data + b->data_len, data, n);
	b->data_len += (unsigned)TR_ALIGN8(n);
	return at;
}

uint64_t tr_batch_string(struct tr_batch *b, const char *s)
{
	return tr_batch_data(b, s, strlen(s) + 1);
}

/* What a remote call must put back. */
struct saved {
	struct tr_regs regs;
	uint64_t mask;
};

/*
 * Signals are held back meanwhile, so that only the call itself stops.
 * SIGTRAP is not: forcing a blocked signal on a task makes the kernel reset
 * its handler (force_sig_info_to_task in kernel/signal.c).
 */
static int begin(pid_t tid, struct saved *s)
{
	if (tr_tracee_get_regs(tid, &s->regs) < 0 ||
	    tr_tracee_get_sigmask(tid, &s->mask) < 0)
		return -1;
	return tr_tracee_set_sigmask(tid, ~((uint64_t)1 << (SIGTRAP - 1)));
}

static int finish(pid_t tid, const struct saved *s)
{
	if (tr_tracee_set_regs(tid, &s->regs) < 0)
		return -1;
	return tr_tracee_set_sigmask(tid, s->mask);
}

static bool at_int3(int status)
{
	return WIFSTOPPED(status) && status >> 8 == SIGTRAP;
}

/*
 * Is what the task reports next its end?  That is not ours to take: the caller
 * of waitpid(2) must see it.
 */
static bool is_ending(pid_t tid)
{
	siginfo_t si = {0};

	while (waitid(P_PID, (id_t)tid, &si,
		      WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0)
		if (errno != EINTR)
			return true;
	return si.si_code == CLD_EXITED || si.si_code == CLD_KILLED ||
	       si.si_code == CLD_DUMPED ||
	       si.si_status >> 8 == PTRACE_EVENT_EXIT;
}

/*
 * Resume and wait for the next stop.  Stops of other kinds than the caller
 * looks for (a group-stop begun meanwhile) are passed by: the task reports
 * them again when it runs on.  A fault of the injected code is not.
 */
static int run_to_stop(pid_t tid, enum tr_resume how, int *status)
{
	if (tr_tracee_resume(tid, how, 0) < 0)
		return -1;
	if (is_ending(tid)) {
		errno = ESRCH;
		return -1;
	}
	if (tr_tracee_wait(tid, status, 0) < 0)
		return -1;
	if (*status >> 8 == SIGSEGV || *status >> 8 == SIGBUS ||
	    *status >> 8 == SIGILL) {
		errno = EFAULT;
		return -1;
	}
	return 0;
}

static int run_to_int3(pid_t tid)
{
	int status;

	do {
		if (run_to_stop(tid, TR_RESUME_CONT, &status) < 0)
			return -1;
	} while (!at_int3(status));
	return 0;
}

static struct tr_regs entry_regs(const struct saved *s, const uint8_t *label,
				 uint64_t count)
{
	struct tr_regs r = s->regs;

	r.rip = tr_inject_address(label);
	r.rbx = TR_INJECT_SCRATCH;
	r.r12 = count;
	r.orig_rax = (uint64_t)-1; /* no syscall restart on the way out */
	return r;
}

int tr_batch_run(pid_t tid, struct tr_batch *b, struct tr_error *err)
{
	size_t bytes = b->n * sizeof b->call[0];
	struct saved s;
	struct tr_regs r;

	if (b->n == 0)
		return 0;
	if (tr_memory_write(tid, TR_INJECT_SCRATCH, b->call, bytes) < 0 ||
	    (b->data_len && tr_memory_write(tid, TR_REMOTE_DATA, b->data,
					    b->data_len) < 0) ||
	    begin(tid, &s) < 0)
		return tr_fail_errno(err, "task %d: remote calls", (int)tid);
	r = entry_regs(&s, tr_inject_batch, b->n);
	if (tr_tracee_set_regs(tid, &r) < 0 || run_to_int3(tid) < 0 ||
	    tr_memory_read(tid, TR_INJECT_SCRATCH, b->call, bytes) < 0 ||
	    finish(tid, &s) < 0)
		return tr_fail_errno(err, "task %d: remote calls", (int)tid);
	return 0;
}

static void set_call(struct tr_regs *r, uint64_t nr, const uint64_t a[6])
{
	r->rax = nr;
	tr_regs_set_args(r, a);
}

int tr_remote_call(pid_t tid, int64_t *result, uint64_t nr, uint64_t a0,
		   uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   uint64_t a5, struct tr_error *err)
{
	const uint64_t args[6] = {a0, a1, a2, a3, a4, a5};
	struct saved s;
	struct tr_regs r;

	if (begin(tid, &s) < 0)
		goto failed;
	r = entry_regs(&s, tr_inject_single, 1);
	set_call(&r, nr, args);
	if (tr_tracee_set_regs(tid, &r) < 0 || run_to_int3(tid) < 0 ||
	    tr_tracee_get_regs(tid, &r) < 0 || finish(tid, &s) < 0)
		goto failed;
	*result = (int64_t)r.rax;
	return 0;
failed:
	return tr_fail_errno(err, "task %d: remote call", (int)tid);
}

int tr_remote_call_at_entry(pid_t tid, int64_t *result, uint64_t nr,
			    uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
			    uint64_t a4, uint64_t a5, struct tr_error *err)
{
	const uint64_t args[6] = {a0, a1, a2, a3, a4, a5};
	struct saved s;
	struct tr_regs r;
	int status;

	if (begin(tid, &s) < 0)
		goto failed;
	r = entry_regs(&s, tr_inject_single, 1); /* number -1: skipped */
	set_call(&r, nr, args);
	if (tr_tracee_set_regs(tid, &r) < 0 || run_to_int3(tid) < 0 ||
	    tr_tracee_get_regs(tid, &r) < 0)
		goto failed;
	*result = (int64_t)r.rax;
	r = s.regs;
	r.rip -= 2; /* the syscall instruction, or int 0x80 */
	r.rax = s.regs.orig_rax;
	r.orig_rax = (uint64_t)-1;
	if (tr_tracee_set_regs(tid, &r) < 0)
		goto failed;
	do {
		if (run_to_stop(tid, TR_RESUME_CONT, &status) < 0)
			goto failed;
	} while (tr_stop_event(status) != PTRACE_EVENT_SECCOMP);
	if (finish(tid, &s) == 0)
		return 0;
failed:
	return tr_fail_errno(err, "task %d: remote call", (int)tid);
}

pid_t tr_remote_clone(pid_t tid, uint64_t flags, struct tr_error *err)
{
	const uint64_t args[6] = {flags | CLONE_PARENT | SIGCHLD};
	unsigned long child = 0;
	struct saved s;
	struct tr_regs r;
	int status;

	if (begin(tid, &s) < 0)
		goto failed;
	r = entry_regs(&s, tr_inject_single, 1);
	set_call(&r, SYS_clone, args);
	if (tr_tracee_set_regs(tid, &r) < 0)
		goto failed;
	do { /* the clone event comes first, then int3 */
		if (run_to_stop(tid, TR_RESUME_CONT, &status) < 0)
			goto failed;
		if (tr_stop_event(status) &&
		    tr_stop_event(status) != PTRACE_EVENT_STOP &&
		    tr_tracee_event_msg(tid, &child) < 0)
			goto failed;
	} while (!at_int3(status));
	if (tr_tracee_get_regs(tid, &r) < 0 || finish(tid, &s) < 0)
		goto failed;
	if (!child) {
		errno = (int)-(int64_t)r.rax;
		goto failed;
	}
	/* Its first stop, before it runs any instruction. */
	if (tr_tracee_wait((pid_t)child, &status, 0) < 0 ||
	    tr_tracee_set_sigmask((pid_t)child, s.mask) < 0)
		goto failed;
	return (pid_t)child;
failed:
	return tr_fail_errno(err, "task %d: clone", (int)tid);
}

/* Run to the exit of a call.  One that the seccomp filter traces has no stop at
 * its entry but the filter's. */
static int run_through(pid_t tid, bool filtered)
{
	bool entered = false;
	int status;

	while (filtered && !entered) {
		if (run_to_stop(tid, TR_RESUME_CONT, &status) < 0)
			return -1;
		entered = tr_stop_event(status) == PTRACE_EVENT_SECCOMP;
	}
	for (;;) {
		if (run_to_stop(tid, TR_RESUME_SYSCALL, &status) < 0)
			return -1;
		if (!tr_stopped_by_syscall(status))
			continue;
		if (entered)
			return 0;
		entered = true;
	}
}

/*
 * A remote call that stops at the call's exit and executes nothing after it:
 * before the injected page is there, at a syscall instruction of the program's
 * own image, which the seccomp filter traces; or where int3 would do harm.
 */
static int call_at(pid_t tid, uint64_t insn, bool filtered, uint64_t nr,
		   const uint64_t args[6], int64_t *result)
{
	struct saved s;
	struct tr_regs r;

	if (begin(tid, &s) < 0)
		return -1;
	r = s.regs;
	r.rip = insn;
	r.orig_rax = (uint64_t)-1;
	set_call(&r, nr, args);
	if (tr_tracee_set_regs(tid, &r) < 0 || run_through(tid, filtered) < 0 ||
	    tr_tracee_get_regs(tid, &r) < 0 || finish(tid, &s) < 0)
		return -1;
	*result = (int64_t)r.rax;
	return 0;
}

int tr_remote_call_quietly(pid_t tid, int64_t *result, uint64_t nr, uint64_t a0,
			   uint64_t a1, uint64_t a2, uint64_t a3,
			   struct tr_error *err)
{
	const uint64_t args[6] = {a0, a1, a2, a3};

	if (call_at(tid, tr_inject_address(tr_inject_single), false, nr, args,
		    result) == 0)
		return 0;
	return tr_fail_errno(err, "task %d: remote call", (int)tid);
}

/* As code, which needs no right to write: it is written from outside. */
static int map_pages(pid_t tid, uint64_t insn, struct tr_error *err)
{
	const uint64_t args[6] = {
		TR_INJECT_BASE, TR_INJECT_END - TR_INJECT_BASE,
		PROT_READ | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE |
		MAP_NORESERVE,
		(uint64_t)-1, 0};
	int64_t result;

	if (call_at(tid, insn, true, SYS_mmap, args, &result) < 0)
		return tr_fail_errno(err, "task %d: mapping engine pages",
				     (int)tid);
	if (result != (int64_t)TR_INJECT_BASE) {
		errno = result < 0 ? (int)-result : EEXIST;
		return tr_fail_errno(err, "task %d: the engine's pages at %#lx",
				     (int)tid, TR_INJECT_BASE);
	}
	if (tr_memory_write(tid, TR_INJECT_CODE, tr_inject_start,
			    (size_t)(tr_inject_end - tr_inject_start)) < 0 ||
	    tr_memory_write(tid, TR_INJECT_CALLS, tr_calls_start,
			    (size_t)(tr_calls_end - tr_calls_start)) < 0)
		return tr_fail_errno(err, "task %d: writing engine code",
				     (int)tid);
	return 0;
}

int tr_inject_pages(pid_t tid, uint64_t insn, struct tr_batch *b,
		    struct tr_error *err)
{
	int64_t result;

	if (map_pages(tid, insn, err) < 0)
		return -1;
	/* The first call makes the memory writable that its result goes to. */
	memmove(b->call + 1, b->call, b->n++ * sizeof b->call[0]);
	b->call[0] = (struct tr_inject_call){
		.nr = SYS_mprotect,
		.args = {TR_INJECT_SCRATCH, TR_INJECT_END - TR_INJECT_SCRATCH,
			 PROT_READ | PROT_WRITE}};
	if (tr_batch_run(tid, b, err) < 0)
		return -1;
	result = b->call[0].result;
	memmove(b->call, b->call + 1, --b->n * sizeof b->call[0]);
	if (result < 0)
		return tr_fail(err, TR_ESYS, "task %d: the engine's memory",
			       (int)tid);
	return 0;
}
