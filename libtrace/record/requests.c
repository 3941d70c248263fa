/*
 * ptrace(2) calls of recorded programs, answered in the kernel's place.
 *
 * The task asked about is in a stop of the recorder's own, so that most
 * requests can be passed on.  What they change in a tracee is recorded with
 * the tracee, as a `poke` event; what they tell, with the caller.
 */
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/ptrace.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

#define OPTIONS_KNOWN 0x3000ffu /* PTRACE_O_MASK */

/* One request: the caller, the task asked about, and the arguments. */
struct request {
	struct recorder *r;
	struct task *t, *o;
	uint64_t addr, data;
};

static bool same_user(const struct task *t, const struct task *o)
{
	char a[32], b[32];
	struct stat sa, sb;

	snprintf(a, sizeof a, "/proc/%d", (int)t->tid);
	snprintf(b, sizeof b, "/proc/%d", (int)o->tid);
	return stat(a, &sa) == 0 && stat(b, &sb) == 0 &&
	       (sa.st_uid == 0 || sa.st_uid == sb.st_uid);
}

/* A request that a kernel would serve is refused: the trace and, at the end,
 * the recorder say so. */
static void refuse(struct recorder *r, const struct task *t, const char *text)
{
	rec_note(r, t->as->stream, t->id, TR_NOTE_TRACER_DENIED, text);
	if (r->refusals++ == 0)
		snprintf(r->refused, sizeof r->refused, "process %d: %s",
			 (int)t->pid, text);
}

/* Why the task cannot be traced, or 0 (ptrace_attach in kernel/ptrace.c). */
static int cannot_trace(struct recorder *r, const struct task *t, pid_t tid)
{
	const struct task *o = rec_task_find(r, tid);
	char text[120];

	if (!o && kill(tid, 0) < 0 && errno == ESRCH)
		return ESRCH;
	if (!o) {
		snprintf(text, sizeof text, "process %d is not part of the "
			 "recording: it cannot be traced", (int)tid);
		refuse(r, t, text);
		return EPERM;
	}
	if (o->pid == t->pid || o->vt || o->exiting || !same_user(t, o))
		return EPERM;
	return 0;
}

static int64_t trace_me(struct recorder *r, struct task *t)
{
	struct task *parent = rec_real_parent(r, t);

	if (t->vt)
		return -EPERM;
	/* A parent outside the recording would be the tracer, and is not. */
	if (parent)
		rec_trace(t, parent, false);
	return 0;
}

static int64_t attach(struct recorder *r, struct task *t, pid_t tid)
{
	int failed = cannot_trace(r, t, tid);
	struct task *o = rec_task_find(r, tid);

	if (failed)
		return -failed;
	rec_trace(o, t, false)->due = DUE_ATTACH;
	rec_traced_stop(r, o);
	return 0;
}

static int64_t seize(struct recorder *r, struct task *t, pid_t tid,
		     uint64_t addr, uint64_t options)
{
	int failed;

	if (addr || options & ~(uint64_t)OPTIONS_KNOWN)
		return -EIO;
	failed = cannot_trace(r, t, tid);
	if (failed)
		return -failed;
	rec_trace(rec_task_find(r, tid), t, true)->options = (uint32_t)options;
	return 0;
}

/* ---- the caller's memory ---- */

static int64_t give(const struct request *q, uint64_t addr, const void *data,
		    size_t n)
{
	return tr_memory_write(q->t->tid, addr, data, n) < 0 ? -EFAULT : 0;
}

static bool take(const struct request *q, uint64_t addr, void *data, size_t n)
{
	return tr_memory_read(q->t->tid, addr, data, n) == 0;
}

/* ---- the tracee's memory ---- */

static int64_t peek(const struct request *q)
{
	uint64_t word;

	if (tr_memory_read(q->o->tid, q->addr, &word, sizeof word) < 0)
		return -EIO;
	tr_patches_show(&q->o->as->patches, q->addr, &word, sizeof word);
	return give(q, q->data, &word, sizeof word);
}

static int64_t poke(const struct request *q)
{
	return rec_poke_memory(q->r, q->o, q->addr, &q->data,
			       sizeof q->data) < 0 ? -EIO : 0;
}

/* ---- registers ---- */

/* Pass on a request that may change general registers, and record if it does.
 * Those a task has inside a call are in the event of the call's exit. */
static int64_t change_regs(const struct request *q, long request,
			   uint64_t addr, void *data)
{
	struct task *o = q->o;
	struct tr_regs before, after;

	if (tr_tracee_get_regs(o->tid, &before) < 0)
		return -ESRCH;
	if (tr_tracee_request(o->tid, request, addr, data) < 0)
		return -errno;
	if (tr_tracee_get_regs(o->tid, &after) < 0)
		return -ESRCH;
	if (memcmp(&before, &after, sizeof before) != 0 &&
	    o->vt->at != HELD_CALL && o->vt->at != HELD_END)
		rec_poke_regs(q->r, o, &before, &after);
	return 0;
}

static int64_t change_xstate(const struct request *q, long request,
			     uint64_t addr, void *data)
{
	if (tr_tracee_request(q->o->tid, request, addr, data) < 0)
		return -errno;
	rec_poke_xstate(q->r, q->o);
	return 0;
}

static int64_t get_fixed(const struct request *q, long request, size_t n)
{
	uint8_t buf[sizeof(struct user_fpregs_struct)];

	if (tr_tracee_request(q->o->tid, request, 0, buf) < 0)
		return -errno;
	return give(q, q->data, buf, n);
}

static int64_t set_regs(const struct request *q)
{
	struct tr_regs regs;

	if (!take(q, q->data, &regs, sizeof regs))
		return -EFAULT;
	return change_regs(q, PTRACE_SETREGS, 0, &regs);
}

static int64_t set_fpregs(const struct request *q)
{
	struct user_fpregs_struct regs;

	if (!take(q, q->data, &regs, sizeof regs))
		return -EFAULT;
	return change_xstate(q, PTRACE_SETFPREGS, 0, &regs);
}

static int64_t regset(const struct request *q, bool get)
{
	TR_AUTOFREE void *buf = NULL;
	struct iovec theirs, own;
	int64_t failed;

	if (!take(q, q->data, &theirs, sizeof theirs))
		return -EFAULT;
	own.iov_len = theirs.iov_len < TR_MAX_XSTATE ? theirs.iov_len
						     : TR_MAX_XSTATE;
	own.iov_base = buf = tr_alloc(own.iov_len + 1);
	if (!get) {
		if (!take(q, (uintptr_t)theirs.iov_base, buf, own.iov_len))
			return -EFAULT;
		if (q->addr == NT_PRSTATUS)
			return change_regs(q, PTRACE_SETREGSET, q->addr, &own);
		return change_xstate(q, PTRACE_SETREGSET, q->addr, &own);
	}
	if (tr_tracee_request(q->o->tid, PTRACE_GETREGSET, q->addr, &own) < 0)
		return -errno;
	failed = give(q, (uintptr_t)theirs.iov_base, buf, own.iov_len);
	return failed ? failed : give(q, q->data + offsetof(struct iovec,
							    iov_len),
				      &own.iov_len, sizeof own.iov_len);
}

/* The part of struct user that are debug registers. */
static int debug_register(uint64_t addr)
{
	uint64_t first = offsetof(struct user, u_debugreg);

	return addr >= first && addr < first + 64 && (addr - first) % 8 == 0
		? (int)(addr - first) / 8 : -1;
}

static int64_t peek_user(const struct request *q)
{
	uint64_t word;

	if (tr_tracee_request(q->o->tid, PTRACE_PEEKUSER, q->addr, &word) < 0)
		return -errno;
	return give(q, q->data, &word, sizeof word);
}

static int64_t poke_user(const struct request *q)
{
	void *data = (void *)(uintptr_t)q->data;
	int dr = debug_register(q->addr);

	if (dr < 0)
		return change_regs(q, PTRACE_POKEUSER, q->addr, data);
	if (tr_tracee_request(q->o->tid, PTRACE_POKEUSER, q->addr, data) < 0)
		return -errno;
	rec_poke_debug(q->r, q->o, dr, q->data);
	return 0;
}

static int64_t arch_prctl(const struct request *q)
{
	enum { SET_GS = 0x1001, SET_FS, GET_FS, GET_GS };
	struct tr_regs regs;

	if (tr_tracee_get_regs(q->o->tid, &regs) < 0)
		return -ESRCH;
	switch (q->data) {
	case GET_FS:
		return give(q, q->addr, &regs.fs_base, 8);
	case GET_GS:
		return give(q, q->addr, &regs.gs_base, 8);
	case SET_FS:
		regs.fs_base = q->addr;
		return change_regs(q, PTRACE_SETREGS, 0, &regs);
	case SET_GS:
		regs.gs_base = q->addr;
		return change_regs(q, PTRACE_SETREGS, 0, &regs);
	default:
		return -EINVAL;
	}
}

/* ---- what the stop is about ---- */

static int64_t set_siginfo(const struct request *q)
{
	if (!q->o->vt->has_info)
		return -EINVAL;
	return take(q, q->data, &q->o->vt->info, sizeof(siginfo_t)) ? 0
								     : -EFAULT;
}

static int64_t signal_mask(const struct request *q, bool get)
{
	uint64_t mask = 0;

	if (q->addr != sizeof mask)
		return -EINVAL;
	if (!get && !take(q, q->data, &mask, sizeof mask))
		return -EFAULT;
	if (tr_tracee_request(q->o->tid, get ? PTRACE_GETSIGMASK
					     : PTRACE_SETSIGMASK,
			      sizeof mask, &mask) < 0)
		return -errno;
	return get ? give(q, q->data, &mask, sizeof mask) : 0;
}

static int64_t peek_siginfo(const struct request *q)
{
	struct __ptrace_peeksiginfo_args args;
	siginfo_t si[8];
	long n;

	if (!take(q, q->addr, &args, sizeof args))
		return -EFAULT;
	if (args.nr > 8)
		args.nr = 8;
	n = tr_tracee_request(q->o->tid, PTRACE_PEEKSIGINFO,
			      (uintptr_t)&args, si);
	if (n < 0)
		return -errno;
	return give(q, q->data, si, (size_t)n * sizeof *si) < 0 ? -EFAULT : n;
}

/* struct ptrace_syscall_info, which fits the room given (ptrace(2)). */
static int64_t syscall_info(const struct request *q)
{
	struct __ptrace_syscall_info info = {
		.op = q->o->vt->op, .arch = AUDIT_ARCH_X86_64,
	};
	size_t n = offsetof(struct __ptrace_syscall_info, entry);
	struct tr_regs g;

	if (tr_tracee_get_regs(q->o->tid, &g) < 0)
		return -ESRCH;
	info.instruction_pointer = g.rip;
	info.stack_pointer = g.rsp;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY ||
	    info.op == PTRACE_SYSCALL_INFO_SECCOMP) {
		const uint64_t args[6] = {g.rdi, g.rsi, g.rdx,
					  g.r10, g.r8, g.r9};

		/* Both begin alike. */
		info.entry.nr = g.orig_rax;
		memcpy(info.entry.args, args, sizeof args);
		n = offsetof(struct __ptrace_syscall_info, entry.args[6]);
		if (info.op == PTRACE_SYSCALL_INFO_SECCOMP) {
			info.seccomp.ret_data = (uint32_t)q->o->vt->msg;
			n += sizeof info.seccomp.ret_data;
		}
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
		info.exit.rval = (int64_t)g.rax;
		info.exit.is_error = (int64_t)g.rax < 0 &&
				     (int64_t)g.rax >= -4095;
		n = offsetof(struct __ptrace_syscall_info, exit.is_error) + 1;
	}
	if (give(q, q->data, &info, q->addr < n ? q->addr : n) < 0)
		return -EFAULT;
	return (int64_t)n;
}

/* ---- going on ---- */

static int64_t go_on(const struct request *q, enum traced_mode mode)
{
	if (q->data > 64)
		return -EIO;
	q->o->vt->mode = mode;
	rec_traced_go_on(q->r, q->o, (int)q->data);
	return 0;
}

static int64_t detach(const struct request *q)
{
	if (q->data > 64)
		return -EIO;
	rec_untrace(q->r, q->o, (int)q->data);
	return 0;
}

static int64_t listen_on(const struct request *q)
{
	struct traced *v = q->o->vt;

	if (!v->seized || v->status >> 16 != 128)
		return -EIO;
	v->listening = true;
	if (v->at == HELD_GROUP)
		rec_resume(q->o, TR_RESUME_LISTEN, 0);
	return 0;
}

static int64_t interrupt(const struct request *q)
{
	if (!q->o->vt->seized)
		return -EIO;
	q->o->vt->due |= DUE_TRAP;
	rec_traced_stop(q->r, q->o);
	return 0;
}

/* Requests that the recorder does not serve get what a kernel without them
 * answers, and the trace says so. */
static int64_t unknown(const struct request *q, uint64_t request)
{
	char text[80];

	snprintf(text, sizeof text, "ptrace request 0x%llx is not supported",
		 (unsigned long long)request);
	refuse(q->r, q->t, text);
	return -EIO;
}

static int64_t stopped_request(const struct request *q, uint64_t request)
{
	struct traced *v = q->o->vt;

	switch (request) {
	case PTRACE_PEEKTEXT:
	case PTRACE_PEEKDATA:
		return peek(q);
	case PTRACE_PEEKUSER:
		return peek_user(q);
	case PTRACE_POKETEXT:
	case PTRACE_POKEDATA:
		return poke(q);
	case PTRACE_POKEUSER:
		return poke_user(q);
	case PTRACE_CONT:
		return go_on(q, TRACED_CONT);
	case PTRACE_SYSCALL:
		return go_on(q, TRACED_SYSCALL);
	case PTRACE_SINGLESTEP:
		return go_on(q, TRACED_STEP);
	case PTRACE_DETACH:
		return detach(q);
	case PTRACE_LISTEN:
		return listen_on(q);
	case PTRACE_GETREGS:
		return get_fixed(q, PTRACE_GETREGS,
				 sizeof(struct user_regs_struct));
	case PTRACE_SETREGS:
		return set_regs(q);
	case PTRACE_GETFPREGS:
		return get_fixed(q, PTRACE_GETFPREGS,
				 sizeof(struct user_fpregs_struct));
	case PTRACE_SETFPREGS:
		return set_fpregs(q);
	case PTRACE_GETREGSET:
		return regset(q, true);
	case PTRACE_SETREGSET:
		return regset(q, false);
	case PTRACE_ARCH_PRCTL:
		return arch_prctl(q);
	case PTRACE_SETOPTIONS:
		if (q->data & ~(uint64_t)OPTIONS_KNOWN)
			return -EINVAL;
		v->options = (uint32_t)q->data;
		return 0;
	case PTRACE_GETEVENTMSG:
		return give(q, q->data, &v->msg, sizeof v->msg);
	case PTRACE_GETSIGINFO:
		return v->has_info ? give(q, q->data, &v->info, sizeof v->info)
				   : -EINVAL;
	case PTRACE_SETSIGINFO:
		return set_siginfo(q);
	case PTRACE_GETSIGMASK:
		return signal_mask(q, true);
	case PTRACE_SETSIGMASK:
		return signal_mask(q, false);
	case PTRACE_PEEKSIGINFO:
		return peek_siginfo(q);
	case PTRACE_GET_SYSCALL_INFO:
		return syscall_info(q);
	default:
		return unknown(q, request);
	}
}

int64_t rec_ptrace_call(struct recorder *r, struct task *t)
{
	const uint64_t *a = t->fl.call.args;
	struct request q = {.r = r, .t = t, .addr = a[2], .data = a[3]};
	pid_t tid = (pid_t)a[1];

	switch (a[0]) {
	case PTRACE_TRACEME:
		return trace_me(r, t);
	case PTRACE_ATTACH:
		return attach(r, t, tid);
	case PTRACE_SEIZE:
		return seize(r, t, tid, a[2], a[3]);
	}
	q.o = rec_task_find(r, tid);
	if (!q.o || !q.o->vt || q.o->vt->tracer != t)
		return -ESRCH;
	switch (a[0]) {
	case PTRACE_KILL:
		syscall(SYS_tgkill, q.o->pid, q.o->tid, SIGKILL);
		return 0;
	case PTRACE_INTERRUPT:
		return interrupt(&q);
	}
	/* Its report must not be pending for the task to be looked at?  No:
	 * any stop will do (ptrace_check_attach in kernel/ptrace.c). */
	if (!q.o->vt->stopped || q.o->vt->listening)
		return -ESRCH;
	return stopped_request(&q, a[0]);
}
