/* System calls: what is recorded at their entry and at their exit. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/ptrace.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/filter.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

/* Restart codes of the kernel (include/linux/errno.h), which a tracer sees at
 * the exit of an interrupted call. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

/* Strings and buffer starts recorded with one call are at most this much. */
#define ARGS_MAX (512u << 10)

bool rec_is_restart(int64_t result)
{
	return result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
	       result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK;
}

static bool read_memory(void *ctx, uint64_t addr, void *buf, size_t n)
{
	return tr_memory_read(((struct task *)ctx)->tid, addr, buf, n) == 0;
}

void rec_call_release(struct task *t)
{
	for (size_t i = 0; i < t->fl.narg; i++)
		free((void *)(uintptr_t)t->fl.arg[i].bytes.data);
	free(t->fl.arg);
	tr_pages_free(t->fl.pages);
	rec_scratch_release(t->fl.moved);
	t->fl = (struct inflight){0};
	t->in_call = false;
}

/* At a call's entry nothing changes until all of it is read. */
static bool read_window(void *ctx, uint64_t addr, void *buf, size_t n)
{
	return tr_window_read(ctx, addr, buf, n) == n;
}

/* XXH3 of a task's memory of which the first n bytes have been read; *len
 * becomes what could be read. */
static uint64_t hash_memory(pid_t tid, uint64_t addr, uint64_t *len,
			    const uint8_t *first, size_t n)
{
	uint8_t piece[16384];
	XXH3_state_t *state = XXH3_createState();
	uint64_t done = n, hash;

	XXH3_64bits_reset(state);
	XXH3_64bits_update(state, first, n);
	while (done < *len) {
		size_t want = *len - done < sizeof piece
			? (size_t)(*len - done) : sizeof piece;
		size_t got = tr_memory_read_some(tid, addr + done, piece, want);

		XXH3_64bits_update(state, piece, got);
		done += got;
		if (got < want)
			break;
	}
	hash = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	*len = done;
	return hash;
}

/* What the call reads there: paths and strings whole, buffers by hash and their
 * first bytes. */
static struct tr_arg capture_arg(struct tr_window *w, const struct tr_range *rg)
{
	struct tr_arg a = {.index = rg->arg, .is_string = rg->is_string,
			   .addr = rg->addr, .len = rg->len};
	size_t keep = rg->is_string ? TR_ARG_STRING_MAX : TR_ARG_PREFIX_MAX;
	uint8_t first[16384];
	size_t want = rg->len < sizeof first ? (size_t)rg->len : sizeof first;
	size_t got = tr_window_read(w, rg->addr, first, want);

	if (got < want)
		a.len = got;
	a.hash = got == a.len ? XXH3_64bits(first, got)
			      : hash_memory(w->tid, a.addr, &a.len, first, got);
	a.bytes.len = got < keep ? got : keep;
	a.bytes.data = tr_memdup(first, a.bytes.len);
	return a;
}

static void capture_args(struct task *t, struct tr_window *w,
			 const struct tr_ranges *in)
{
	struct inflight *fl = &t->fl;
	size_t total = 0;

	for (size_t i = 0; i < in->n && total < ARGS_MAX; i++) {
		struct tr_arg a = capture_arg(w, &in->r[i]);

		total += a.bytes.len;
		TR_GROW(fl->arg, fl->narg, fl->arg_cap);
		fl->arg[fl->narg++] = a;
	}
}

/*
 * Is the task's descriptor the program's original standard output or error?
 * kcmp(2) compares open file descriptions, so dup, fork and exec do not
 * matter.  When both are one file, descriptor 2 counts as the error output.
 */
static int output_of(const struct task *t, uint64_t fd)
{
	static const int order[2][2] = {{1, 2}, {2, 1}};
	const int *which = order[(int)fd == 2];

	for (int i = 0; i < 2; i++)
		if (syscall(SYS_kcmp, getpid(), t->pid, KCMP_FILE, which[i],
			    (unsigned long)(int)fd) == 0)
			return which[i];
	return 0;
}

/* Where does the data go, or whose size changes? */
static void look_at_written(struct recorder *r, struct task *t)
{
	const struct tr_call *c = &t->fl.call;
	int fd = tr_sys_write_fd(c->nr);
	bool resizes = c->nr == SYS_ftruncate || c->nr == SYS_fallocate;
	bool watched = false;

	if (fd >= 0 || resizes)
		watched = rec_growth_written(r, t, (int)c->args[0]);
	if (fd < 0)
		return;
	t->fl.output = output_of(t, c->args[fd]);
	if (watched || (t->fl.output && rec_outputs_in_turn(r)))
		return;
	rec_calls_know_fd(r, t, c->args[fd], t->fl.output);
	t->as->writes_inside |= t->fl.output != 0;
}

/* The errno the recorder answers with in the kernel's place, or 0. */
static int denial(const struct task *t)
{
	const struct tr_call *c = &t->fl.call;
	int fd;

	if (!t->fl.sys)
		return 0;
	if (t->fl.sys->class == TR_SYS_DENY)
		return t->fl.sys->deny_errno;
	/* Data the kernel moves to the program's output by itself never passes
	 * its memory and could not be shown again: as on a file type that has
	 * no such call, so that programs copy it themselves. */
	fd = tr_sys_kernel_copy_fd(c->nr);
	if (fd >= 0 && output_of(t, c->args[fd]))
		return EINVAL;
	return rec_refusal(c);
}

static struct tr_event call_event(const struct task *t, enum tr_event_type type)
{
	struct tr_event ev = rec_event(type, t);

	tr_event_set(&ev, TR_F_NR, t->fl.call.nr);
	ev.regs = t->fl.entry;
	tr_event_mark(&ev, TR_F_REGS);
	if (!t->fl.recorded && t->fl.narg) {
		ev.arg = t->fl.arg;
		ev.narg = t->fl.narg;
		tr_event_mark(&ev, TR_F_ARG);
	}
	return ev;
}

void rec_call_record_entry(struct recorder *r, struct task *t)
{
	struct tr_event ev;

	if (t->fl.recorded)
		return;
	ev = call_event(t, TR_EV_ENTER);
	rec_emit(r, &ev);
	t->fl.recorded = true;
}

/*
 * The word a priority-inheritance futex call marks while it waits, for the
 * owner to see (futex(2), FUTEX_LOCK_PI).
 */
static bool waiting_mark(const struct tr_call *c, struct tr_range *rg)
{
	if (c->nr != SYS_futex)
		return false;
	switch (c->args[1] & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		*rg = (struct tr_range){.addr = c->args[0], .len = 4};
		return true;
	case FUTEX_WAIT_REQUEUE_PI:
		*rg = (struct tr_range){.addr = c->args[4], .len = 4};
		return true;
	default:
		return false;
	}
}

void rec_call_record_blocked(struct recorder *r, struct task *t)
{
	struct tr_range rg;
	struct tr_ranges mark = {&rg, 1, 1};
	struct tr_event ev;

	if (t->fl.recorded)
		return;
	ev = call_event(t, TR_EV_ENTER);
	if (waiting_mark(&t->fl.call, &rg))
		rec_read_ranges(r, t, &mark, &ev);
	rec_emit(r, &ev);
	t->fl.recorded = true;
}

static bool is_exit(uint64_t nr)
{
	return nr == SYS_exit || nr == SYS_exit_group;
}

bool rec_is_exec(const struct task *t)
{
	return t->fl.call.nr == SYS_execve || t->fl.call.nr == SYS_execveat;
}

/*
 * A task made with CLONE_UNTRACED would run unseen, and with the filter's
 * verdict but no tracer every call of its would fail: the flag is taken out
 * for the kernel, and the registers are put back where the program sees them.
 */
static void keep_child_traced(struct task *t)
{
	struct tr_regs regs = t->fl.entry;

	if (t->fl.call.nr != SYS_clone || !(regs.rdi & CLONE_UNTRACED))
		return;
	regs.rdi &= ~(uint64_t)CLONE_UNTRACED;
	t->fl.args_changed = tr_tracee_set_regs(t->tid, &regs) == 0;
}

/* Answer the call here: number -1 makes the kernel skip it (seccomp(2)). */
static void deny(struct task *t)
{
	struct tr_regs regs = t->fl.entry;

	regs.orig_rax = (uint64_t)-1;
	if (tr_tracee_set_regs(t->tid, &regs) < 0)
		return;
	t->fl.skipped = true;
	rec_enter_kernel(t, TR_RESUME_SYSCALL);
}

/* Calls about tracees, which the kernel knows nothing of, and what is only
 * pretended. */
static bool answer(struct recorder *r, struct task *t)
{
	struct inflight *fl = &t->fl;

	if (fl->call.nr == SYS_ptrace && !fl->answered) {
		fl->answered = true;
		fl->answer = rec_ptrace_call(r, t);
	} else if (rec_is_wait(t) && !fl->answered) {
		fl->answered = rec_wait_answer(r, t, &fl->answer);
	} else if (!fl->answered) {
		fl->answered = rec_pretend(t, &fl->answer);
	}
	return fl->answered;
}

void rec_call_filtered(struct recorder *r, struct task *t)
{
	unsigned long data;

	if (tr_tracee_event_msg(t->tid, &data) < 0)
		return;
	/* Of equal verdicts that of the latest filter counts (seccomp(2)). */
	if (data != TR_FILTER_DATA && !t->fl.past_filter) {
		t->fl.past_filter = true;
		t->exiting = false;
		if (rec_traced_seccomp(r, t, data))
			return;
		t->fl.denied = ENOSYS;
	}
	if (t->fl.denied || answer(r, t))
		deny(t);
	else
		rec_resume(t, TR_RESUME_SYSCALL, 0);
}

static void begin(struct recorder *r, struct task *t,
		  const struct tr_regs *regs)
{
	struct inflight *fl = &t->fl;
	struct tr_window w;
	struct tr_ranges in = {0};

	tr_window_open(&w, t->tid);
	fl->entry = t->seen = *regs;
	fl->since = tr_now_ns();
	fl->sys = tr_sys_lookup(regs->orig_rax);
	fl->call = (struct tr_call){
		.nr = regs->orig_rax,
		.args = {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8,
			 regs->r9},
		.read = read_window,
		.ctx = &w,
	};
	tr_call_enter(&fl->call, &in);
	capture_args(t, &w, &in);
	fl->call.read = read_memory;
	fl->call.ctx = t;
	tr_ranges_release(&in);
	look_at_written(r, t);
	fl->denied = denial(t);
	t->in_call = true;
	if (!fl->denied)
		rec_capture_begin(r, t);
}

/*
 * The recorder has asked for a stop, and the task has come to a call before it.
 * The call would be interrupted as no program sees it natively: epoll_wait fails,
 * clock_nanosleep writes the rest.  For a stop of whatever kind takes the request
 * back but not what says that something is pending (ptrace_stop() in
 * kernel/signal.c: JOBCTL_TRAP_STOP and TIF_SIGPENDING).  So the call is skipped,
 * and entered anew once the kernel has looked; until then no stop is asked for.
 */
bool rec_call_put_off(struct task *t)
{
	struct tr_regs regs;

	bool again = t->put_off;

	t->put_off = false;
	if (again || !t->interrupting || t->in_call || t->filtered || t->vt ||
	    tr_tracee_get_regs(t->tid, &regs) < 0 ||
	    rec_calls_stop_here(&regs))
		return false;
	regs.rip -= 2; /* the syscall instruction */
	regs.rax = regs.orig_rax;
	regs.orig_rax = (uint64_t)-1;
	t->interrupting = 0;
	t->force = t->spin.looking = false;
	t->put_off = true;
	if (tr_tracee_set_regs(t->tid, &regs) == 0)
		rec_resume(t, TR_RESUME_CONT, 0);
	return true;
}

void rec_call_enter(struct recorder *r, struct task *t)
{
	struct tr_regs regs;

	if (tr_tracee_get_regs(t->tid, &regs) < 0 ||
	    rec_calls_leaves(t, &regs))
		return;
	if (tr_calls_come_home(&t->as->calls, &regs) &&
	    tr_tracee_set_regs(t->tid, &regs) < 0)
		return;
	if (t->in_call && t->fl.interrupted) {
		/* The kernel restarts the interrupted call, by its own number
		 * or as restart_syscall: one call to the program. */
		t->fl.interrupted = false;
		t->fl.restarted = true;
		if (t->fl.again || !rec_traced_entry(r, t))
			rec_call_proceed(r, t);
		return;
	}
	rec_call_release(t);
	begin(r, t, &regs);
	if (regs.orig_rax == SYS_mremap)
		tr_calls_unpatch(t->tid, &t->as->calls, regs.rdi,
				 regs.rdi + regs.rsi);
	rec_calls_patch(r, t, &regs);
	rec_release_held(t);
	if (!rec_traced_entry(r, t))
		rec_call_proceed(r, t);
}

/* The task's tracer has changed the call: it is another one. */
static void begin_again(struct recorder *r, struct task *t)
{
	uint64_t nr = t->fl.call.nr;
	struct tr_regs regs;
	bool skip, past;

	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return;
	/* A negative number skips the call, with the result in rax. */
	skip = (int)regs.orig_rax < 0;
	if (skip)
		regs.orig_rax = nr;
	past = t->fl.past_filter;
	rec_call_release(t);
	begin(r, t, &regs);
	t->fl.past_filter = past;
	t->fl.recorded = true;
	t->fl.answered = skip;
	t->fl.answer = (int64_t)regs.rax;
}

void rec_call_proceed(struct recorder *r, struct task *t)
{
	if (t->fl.changed)
		begin_again(r, t);
	if (!rec_output_begin(r, t))
		return;
	/* A filter of the program's own has its say first. */
	if ((!t->filtered || t->fl.past_filter) && (t->fl.denied || answer(r, t))) {
		deny(t);
		return;
	}
	if (t->fl.restarted) {
		t->fl.restarted = t->fl.again = false;
		if (!rec_scratch_again(t))
			return;
		rec_enter_kernel(t, TR_RESUME_SYSCALL);
		return;
	}
	/* In shared memory, what others do until the exec is done must come
	 * after what this task did before it. */
	if (is_exit(t->fl.call.nr) ||
	    (rec_is_exec(t) && t->as->ntasks > 1))
		rec_call_record_entry(r, t);
	if (is_exit(t->fl.call.nr)) {
		if (r->options->digest != TR_DIGEST_OFF)
			rec_state(r, t, false);
		t->exiting = true;
		rec_enter_kernel(t, TR_RESUME_CONT);
		return;
	}
	keep_child_traced(t);
	rec_foreign_begin(r, t);
	rec_scratch_begin(r, t);
	rec_enter_kernel(t, TR_RESUME_SYSCALL);
}

/* A filter may have been installed for all threads of the process. */
static void now_filtered(struct recorder *r, const struct task *t)
{
	for (struct task *o = r->tasks; o; o = o->next)
		if (o->pid == t->pid)
			o->filtered = true;
}

/* Is this perhaps the memory of a process, by its path? */
static void check_opened(struct recorder *r, struct task *t)
{
	for (size_t i = 0; i < t->fl.narg; i++) {
		const struct tr_bytes *p = &t->fl.arg[i].bytes;

		if (p->len >= 3 &&
		    memcmp((const char *)p->data + p->len - 3, "mem", 3) == 0)
			rec_note_memory_file(r, t, (int)t->fl.call.result);
		rec_portable_opened(r, t, p);
	}
}

/* Does the process want to hear of stopped children?  All its threads are
 * asked about it. */
static void child_action_set(struct recorder *r, const struct task *t)
{
	uint64_t flags;

	if (!t->fl.call.args[1] ||
	    tr_memory_read(t->tid, t->fl.call.args[1] + 8, &flags,
			   sizeof flags) < 0)
		return;
	for (struct task *o = r->tasks; o; o = o->next)
		if (o->pid == t->pid)
			o->no_cldstop = flags & SA_NOCLDSTOP;
}

void rec_call_made(struct recorder *r, struct task *t, const struct tr_call *c)
{
	const struct tr_sys *sys = tr_sys_lookup(c->nr);

	if (c->nr == SYS_set_tid_address)
		t->clear_tid = c->args[0];
	else if (c->nr == SYS_set_robust_list && c->result == 0)
		t->robust_list = c->args[0];
	else if (sys && sys->class == TR_SYS_MAP)
		rec_mapping_changed(t, c);
	else if (c->nr == SYS_lseek || c->nr == SYS_close)
		rec_reading_moved(r, t->as, c->args[0]);
	else if (c->nr == SYS_dup2 || c->nr == SYS_dup3)
		rec_reading_moved(r, t->as, c->args[1]);
}

/* What the recorder itself must know of calls that succeeded. */
static void after_call(struct recorder *r, struct task *t)
{
	const struct tr_call *c = &t->fl.call;

	rec_call_made(r, t, c);
	switch (c->nr) {
	case SYS_open:
		if (c->result >= 0)
			check_opened(r, t);
		break;
	case SYS_openat:
	case SYS_openat2:
		if (c->result >= 0)
			check_opened(r, t);
		break;
	case SYS_rt_sigaction:
		if (c->result == 0 && c->args[0] == SIGCHLD)
			child_action_set(r, t);
		if (c->result == 0)
			rec_forced_action(r, t);
		break;
	case SYS_rt_sigreturn:
	case SYS_rt_sigprocmask:
		rec_forced_mask(t);
		break;
	case SYS_sched_yield:
		t->yields = true;
		break;
	case SYS_setpriority:
	case SYS_sched_setscheduler:
	case SYS_sched_setparam:
	case SYS_sched_setattr:
		for (struct task *o = r->tasks; o; o = o->next)
			rec_update_priority(o);
		break;
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		if (c->result == 0)
			rec_portable_protected(r, t);
		break;
	case SYS_close:
		rec_calls_forget_fd(t, c->args[0]);
		break;
	case SYS_dup2:
	case SYS_dup3:
		rec_calls_forget_fd(t, c->args[1]);
		break;
	case SYS_close_range:
		rec_calls_forget_fds(t);
		break;
	case SYS_seccomp:
		if (c->result == 0 && c->args[0] == SECCOMP_SET_MODE_FILTER)
			now_filtered(r, t);
		break;
	case SYS_prctl:
		if (c->result == 0 && (int)c->args[0] == PR_SET_SECCOMP)
			now_filtered(r, t);
		break;
	}
}

/* Registers after the exit that do not follow from those at the entry. */
static void set_regs_after(struct tr_event *ev, const struct inflight *fl,
			   const struct tr_regs *regs)
{
	struct tr_regs derived = tr_regs_after_call(&fl->entry,
						    fl->call.result);

	if (tr_regs_equal(&derived, regs))
		return;
	ev->regs_after = *regs;
	tr_event_mark(ev, TR_F_REGS_AFTER);
}

/* An unknown call that changed the mappings: replay could not. */
static void note_layout(struct recorder *r, struct task *t)
{
	const struct inflight *fl = &t->fl;

	rec_stop_replay(r, t, TR_NOTE_UNMODELLED,
			"%s(0x%llx, 0x%llx, ...), call %llu, is not modelled "
			"and changed the address space",
			fl->sys ? fl->sys->name : "unknown system call",
			(unsigned long long)fl->call.args[0],
			(unsigned long long)fl->call.args[1],
			(unsigned long long)fl->call.nr);
}

static void emit_call(struct recorder *r, struct task *t,
		      const struct tr_regs *regs)
{
	struct inflight *fl = &t->fl;
	struct tr_event ev = call_event(t, TR_EV_SYSCALL);
	struct tr_ranges out = {0};
	uint8_t xstate[TR_MAX_XSTATE];
	size_t xlen = sizeof xstate;
	struct tr_map map;
	struct stat st;
	struct tr_error err;
	bool describable = true;
	bool mapped = (fl->call.nr == SYS_mmap || fl->call.nr == SYS_shmat) &&
		      fl->call.result >= 0;

	if (mapped)
		describable = rec_describe_mapping(r, t, &fl->call, &map, &st,
						   &ev, &err) == 0;
	tr_event_set(&ev, TR_F_RESULT, (uint64_t)fl->call.result);
	tr_event_set(&ev, TR_F_DURATION, fl->until - fl->since);
	if (fl->way.hole)
		rec_calls_tell_way(&ev, &fl->way);
	if (fl->output)
		tr_event_set(&ev, TR_F_OUTPUT, (uint64_t)fl->output);
	if (fl->recorded)
		tr_event_set(&ev, TR_F_ENTERED, 1);
	if (fl->denied)
		tr_event_set(&ev, TR_F_ORIGIN, TR_ORIGIN_DENIED);
	else if (fl->answered)
		tr_event_set(&ev, TR_F_ORIGIN, TR_ORIGIN_EMULATED);
	else if (fl->unknown)
		tr_event_set(&ev, TR_F_ORIGIN, TR_ORIGIN_CAPTURED);
	set_regs_after(&ev, fl, regs);
	rec_write_shared(r, t, &ev);
	rec_foreign_memory(r, t, &out);
	if (!fl->denied)
		rec_call_effects(r, t, &ev, &out);
	if (fl->exposed && fl->recorded && out.n)
		tr_event_set(&ev, TR_F_EXPOSED, 1);
	if (fl->call.nr == SYS_rt_sigreturn &&
	    tr_tracee_get_xstate(t->tid, xstate, &xlen) == 0) {
		ev.xstate = (struct tr_bytes){xstate, xlen};
		tr_event_mark(&ev, TR_F_XSTATE);
	}
	rec_read_ranges(r, t, &out, &ev);
	if (r->memory_files)
		rec_show_pieces(t, &ev);
	if (rec_reads_much(&fl->call))
		rec_reading(r, t, &fl->call, 0);
	rec_emit(r, &ev);
	rec_reading_over(r);
	if (fl->way.hole)
		tr_known_learn(&r->known, &t->as->calls, fl->entry.rip - 2);
	tr_ranges_release(&out);
	if (!describable)
		rec_stop_replay(r, t, TR_NOTE_UNMODELLED, "%s", err.text);
	else if (mapped)
		rec_after_mapping(r, t, &fl->call, &map, &st);
	if (fl->layout_changed)
		note_layout(r, t);
	after_call(r, t);
	rec_output_end(r, t);
}

/*
 * At the exit of a denied call orig_rax is put back: signal handling takes a
 * task whose orig_rax is a call's number as standing at a call's exit.
 * rt_sigreturn sets it to -1 itself (restore_sigcontext), for the kernel's
 * restart logic, which a value that is no restart code does not concern.
 */
static bool mark_boundary(struct task *t, struct tr_regs *regs)
{
	if (!t->fl.skipped)
		t->fl.denied = 0;
	if (t->fl.args_changed || t->fl.moved)
		rec_scratch_args(t, regs);
	else if (t->fl.skipped && t->fl.answered)
		regs->rax = (uint64_t)t->fl.answer;
	else if (t->fl.denied)
		regs->rax = (uint64_t)-(int64_t)t->fl.denied;
	else if (t->fl.call.nr != SYS_rt_sigreturn ||
		 rec_is_restart((int64_t)regs->rax))
		return true;
	regs->orig_rax = t->fl.call.nr;
	return tr_tracee_set_regs(t->tid, regs) == 0;
}

/* Did the task make another and wait until that had memory of its own? */
static bool is_vfork(const struct task *t)
{
	return t->fl.call.result > 0 &&
	       (t->fl.call.nr == SYS_vfork ||
		(t->fl.call.nr == SYS_clone &&
		 t->fl.call.args[0] & CLONE_VFORK));
}

/* As when the kernel finds that it cannot write its results. */
static bool fault(struct task *t, struct tr_regs *regs)
{
	regs->rax = (uint64_t)-EFAULT;
	t->fl.call.result = -EFAULT;
	return tr_tracee_set_regs(t->tid, regs) == 0;
}

/* The task stands at its call's exit and has the turn. */
static void finish_call(struct recorder *r, struct task *t)
{
	struct tr_regs regs;
	bool vforked = is_vfork(t);

	if (tr_tracee_get_regs(t->tid, &regs) < 0 ||
	    (!rec_scratch_finish(t) && !fault(t, &regs)))
		return;
	emit_call(r, t, &regs);
	rec_foreign_end(r, t);
	rec_call_release(t);
	rec_growth_check(r, t);
	rec_state_count(r, t);
	if (!rec_traced_exit(r, t, vforked))
		rec_run(r, t, TR_RESUME_CONT, 0);
}

void rec_call_exit(struct recorder *r, struct task *t)
{
	struct tr_regs regs;

	if (t->new_image) {
		rec_exec_done(r, t);
		return;
	}
	if (tr_tracee_get_regs(t->tid, &regs) < 0 || !mark_boundary(t, &regs))
		return;
	t->seen = regs;
	if (rec_is_wait(t) && rec_wait_exit(r, t, &regs))
		return;
	t->fl.call.result = (int64_t)regs.rax;
	t->fl.until = tr_now_ns();
	if (t->fl.call.nr != SYS_rt_sigreturn && !t->fl.skipped &&
	    rec_is_restart((int64_t)regs.rax)) {
		t->fl.interrupted = true;
		rec_output_end(r, t);
		rec_calls_trace_next(t);
		if (!rec_traced_broken(r, t))
			rec_resume(t, TR_RESUME_CONT, 0);
		return;
	}
	rec_await_turn(r, t, finish_call);
}

void rec_call_finish_interrupted(struct recorder *r, struct task *t)
{
	struct tr_regs regs;

	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return;
	/* What cannot be written has no other sign than EINTR will be. */
	(void)rec_scratch_finish(t);
	rec_call_finish_as(r, t, &regs);
}

void rec_call_finish_as(struct recorder *r, struct task *t,
			const struct tr_regs *regs)
{
	emit_call(r, t, regs);
	rec_call_release(t);
}
