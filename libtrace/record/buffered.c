/*
 * System calls made by the injected code: telling it what it may do, and
 * turning its log into events.
 *
 * The log is emptied at every stop of the task whose turn it is, before
 * anything else is recorded: turns end at stops, so that the events are in the
 * order in which things happened, and all in the log are one task's.  Now and
 * then it is read while the task runs, so that a kill of the recorder loses
 * little.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <xxhash.h>

#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

/* Ranges of one call: each argument of a rule once before and once after. */
#define RANGES_MAX (2 * TR_RULE_MEMS)

/* A write that fails was to a task that SIGKILL took. */
#define SET(t, member, value)                                                \
	((void)!tr_memory_write((t)->tid, TR_CONTROL_AT(member),             \
				&(uint32_t){(value)}, sizeof(uint32_t)))

static bool is_alone(const struct task *t)
{
	return t->as->domain->ntasks == 1;
}

/* A filter of the program's own must see its calls, so must a tracer of its
 * own, reads and writes may be of the memory of other tasks, and after any call
 * a mapped file may have grown. */
static bool must_see(const struct recorder *r, const struct task *t)
{
	return t->filtered || t->vt || r->memory_files || t->as->grows;
}

void rec_calls_admit(struct recorder *r, struct task *t)
{
	t->as->intercept = r->intercept && !must_see(r, t);
}

void rec_calls_begin(struct recorder *r, struct task *t)
{
	struct tr_calls_control *c = r->control;
	bool written;

	c->mode = t->as->intercept ? TR_CALLS_RECORD : TR_CALLS_OFF;
	c->alone = is_alone(t);
	t->as->alone = c->alone;
	written = tr_memory_write(t->tid, TR_INJECT_CONTROL, c, sizeof *c) == 0;
	t->as->intercept &= written;
	t->as->drained = tr_now_ns();
}

void rec_calls_update(const struct recorder *r, struct task *t)
{
	struct aspace *as = t->as;

	if (!as->intercept)
		return;
	if (must_see(r, t)) {
		as->intercept = false;
		SET(t, mode, TR_CALLS_OFF);
		return;
	}
	if (as->alone != is_alone(t)) {
		as->alone = is_alone(t);
		SET(t, alone, as->alone);
	}
}

/* Are all its stops at calls and faults, so that no other task, and no handler
 * that will return, stands between two instructions? */
static bool is_steady(const struct task *t)
{
	return is_alone(t) && !t->as->points && !t->as->stopped;
}

void rec_calls_patch(struct recorder *r, struct task *t,
		     const struct tr_regs *regs)
{
	struct tr_way way;

	if (t->as->intercept && !t->fl.denied &&
	    tr_rule_find(r->control, regs->orig_rax) &&
	    tr_calls_way(&t->as->calls, &r->rooms, &r->known, regs->rip - 2,
			 0, is_steady(t), &way) &&
	    tr_calls_patch(t->tid, &t->as->calls, &t->as->patches,
			   regs->rip - 2, TR_PATCH_CALL, way))
		t->fl.way = way;
}

bool rec_calls_do(const struct recorder *r, enum tr_insn insn)
{
	switch (insn) {
	case TR_INSN_CPUID:
		return r->cpu_level == TR_CPU_ALL;
	case TR_INSN_RDTSC:
	case TR_INSN_RDTSCP:
		return !r->sites.tsc_traps;
	default:
		return insn == 0 || insn == TR_INSN_XSAVEC;
	}
}

/* XSAVEC, which makes no event, it always does, but for a tracer of the program's
 * own, which may step through it. */
static bool may_do(const struct recorder *r, const struct task *t,
		   enum tr_insn insn)
{
	if (insn == TR_INSN_XSAVEC)
		return !t->vt;
	return t->as->intercept && rec_calls_do(r, insn);
}

bool rec_calls_patch_insn(struct recorder *r, struct task *t, uint64_t at,
			  const struct tr_site *site, struct tr_way *way)
{
	struct tr_patchable what = {site->insn, site->length};

	return may_do(r, t, site->insn) &&
	       tr_calls_way(&t->as->calls, &r->rooms, &r->known, at,
			    site->insn, is_steady(t), way) &&
	       tr_calls_patch(t->tid, &t->as->calls, &t->as->patches, at, what,
			      *way);
}

void rec_calls_tell_way(struct tr_event *ev, const struct tr_way *way)
{
	tr_event_set(ev, TR_F_VALUE, way->hole);
	if (way->via)
		tr_event_set(ev, TR_F_VIA, way->via);
}

void rec_calls_trace_next(struct task *t)
{
	if (t->as->intercept)
		SET(t, trace_next, 1);
}

void rec_calls_trace_this(struct task *t)
{
	if (t->as->intercept)
		SET(t, leave, 1);
}

/* With descriptors that differ between the tasks of an address space, or are
 * changed from another one, nothing is known of them. */
static bool can_know(struct aspace *as)
{
	if (as->mixed_files && as->ntasks == 1)
		as->mixed_files = false;
	return as->intercept && !as->mixed_files && !as->shared_files;
}

static void set_fd(struct task *t, uint64_t fd, uint8_t kind)
{
	if ((uint32_t)fd < TR_FDS_MAX &&
	    tr_memory_write(t->tid, TR_CONTROL_AT(fd) + (uint32_t)fd, &kind,
			    1) < 0)
		return; /* SIGKILL took it */
}

void rec_calls_know_fd(struct recorder *r, struct task *t, uint64_t fd,
		       int output)
{
	if (can_know(t->as) && !rec_maps_shared(r, t, (int)fd))
		set_fd(t, fd, (uint8_t)(TR_FD_OTHER + output));
}

void rec_calls_forget_fd(struct task *t, uint64_t fd)
{
	if (t->as->intercept)
		set_fd(t, fd, TR_FD_UNKNOWN);
}

void rec_calls_forget_fds(struct task *t)
{
	static const uint8_t unknown[TR_FDS_MAX];

	if (t->as->intercept &&
	    tr_memory_write(t->tid, TR_CONTROL_AT(fd), unknown,
			    sizeof unknown) < 0)
		return; /* SIGKILL took it */
}

/* The registers as they would have been had the call trapped. */
static struct tr_regs entry_regs(const struct tr_log_call *c,
				 const struct tr_regs *other)
{
	const struct tr_call_frame *f = &c->frame;
	struct tr_regs g = *other;

	g.r15 = f->r15;
	g.r14 = f->r14;
	g.r13 = f->r13;
	g.r12 = f->r12;
	g.rbp = f->rbp;
	g.rbx = f->rbx;
	g.r9 = f->r9;
	g.r8 = f->r8;
	g.r10 = f->r10;
	g.rdx = f->rdx;
	g.rsi = f->rsi;
	g.rdi = f->rdi;
	g.orig_rax = f->rax;
	g.rax = (uint64_t)-ENOSYS;
	g.rcx = g.rip = f->after;
	g.r11 = g.eflags = f->flags;
	g.rsp = c->rsp;
	return g;
}

/* The call's memory as an event has it; false when the log is damaged, which
 * only the program itself can have done. */
static bool take_ranges(const struct tr_log_call *c, struct tr_event *ev)
{
	const uint8_t *p = (const uint8_t *)(c + 1);
	size_t left = c->size - sizeof *c;

	for (unsigned i = 0; i < c->nranges; i++) {
		const struct tr_log_range *rg = (const void *)p;
		const uint8_t *bytes = p + sizeof *rg;

		if (left < sizeof *rg || left - sizeof *rg < rg->len)
			return false;
		if (rg->what & TR_RULE_OUT) {
			ev->mem[ev->nmem++] = (struct tr_mem){
				rg->addr, {bytes, rg->len}};
		} else {
			bool is_string = rg->what & TR_RULE_STRING;
			size_t max = is_string ? TR_ARG_STRING_MAX
					       : TR_ARG_PREFIX_MAX;

			ev->arg[ev->narg++] = (struct tr_arg){
				.index = rg->arg, .is_string = is_string,
				.addr = rg->addr, .len = rg->len,
				.hash = XXH3_64bits(bytes, rg->len),
				.bytes = {bytes, rg->len < max ? rg->len
							       : max}};
		}
		p += sizeof *rg + TR_ALIGN8(rg->len);
		if (left < sizeof *rg + TR_ALIGN8(rg->len))
			return false;
		left -= sizeof *rg + TR_ALIGN8(rg->len);
	}
	return true;
}

static struct tr_call call_of(const struct tr_event *ev)
{
	const struct tr_regs *g = &ev->regs;

	return (struct tr_call){
		.nr = tr_event_get(ev, TR_F_NR),
		.args = {g->rdi, g->rsi, g->rdx, g->r10, g->r8, g->r9},
		.result = (int64_t)tr_event_get(ev, TR_F_RESULT),
	};
}

/* What the recorder itself must know of it, as of a call that it traced. */
static void after_call(struct recorder *r, struct task *t,
		       const struct tr_event *ev, const struct tr_call *call)
{
	rec_call_made(r, t, call);
	switch (call->nr) {
	case SYS_open:
	case SYS_openat:
		for (size_t i = 0; i < ev->narg && call->result >= 0; i++)
			rec_portable_opened(r, t, &ev->arg[i].bytes);
		break;
	case SYS_rt_sigprocmask:
		/* The new mask is set before the old one is stored. */
		if (ev->narg && (call->result == 0 || call->result == -EFAULT))
			rec_forced_changes(t, (int)call->args[0],
					   &ev->arg[0].bytes);
		break;
	}
}

/* Bytes that the calls in the log behind this one read in its place. */
static uint64_t read_later(const struct recorder *r,
			   const struct tr_log_call *c, uint64_t end)
{
	uint64_t at = (uint64_t)((const uint8_t *)c - r->log), n = 0;
	uint64_t fd = c->frame.rdi;

	for (at += c->size; end - at >= sizeof *c; at += c->size) {
		c = (const void *)(r->log + at);
		if (c->size < sizeof *c || c->size > end - at)
			break;
		if (!c->insn && c->frame.rax == SYS_read &&
		    c->frame.rdi == fd && c->result > 0)
			n += (uint64_t)c->result;
	}
	return n;
}

static bool emit_call(struct recorder *r, struct task *t,
		      const struct tr_log_call *c, const struct tr_regs *other,
		      uint64_t when, uint64_t end)
{
	bool much, mapped, describable = true;
	struct tr_error err;
	struct tr_call call;
	struct stat st;
	struct tr_event ev = rec_event(TR_EV_SYSCALL, t);
	struct tr_mem mem[RANGES_MAX];
	struct tr_arg arg[RANGES_MAX];
	struct tr_map map;

	if (c->nranges > RANGES_MAX)
		return false;
	ev.mem = mem;
	ev.arg = arg;
	if (!take_ranges(c, &ev))
		return false;
	ev.regs = entry_regs(c, other);
	tr_event_mark(&ev, TR_F_REGS);
	tr_event_set(&ev, TR_F_NR, c->frame.rax);
	tr_event_set(&ev, TR_F_RESULT, (uint64_t)c->result);
	tr_event_set(&ev, TR_F_ORIGIN, TR_ORIGIN_BUFFERED);
	if (c->output > TR_FD_OTHER)
		tr_event_set(&ev, TR_F_OUTPUT,
			     (uint64_t)(c->output - TR_FD_OTHER));
	if (ev.narg)
		tr_event_mark(&ev, TR_F_ARG);
	t->as->last = tr_regs_after_call(&ev.regs, c->result);
	t->as->last.orig_rax = c->frame.rax;
	call = call_of(&ev);
	mapped = call.nr == SYS_mmap && call.result >= 0;
	if (mapped)
		describable = rec_describe_mapping(r, t, &call, &map, &st, &ev,
						   &err) == 0;
	much = rec_reads_much(&call);
	if (much)
		rec_reading(r, t, &call, read_later(r, c, end));
	rec_emit_at(r, &ev, when);
	if (much)
		rec_reading_over(r);
	if (!describable)
		rec_stop_replay(r, t, TR_NOTE_UNMODELLED, "%s", err.text);
	else if (mapped)
		rec_after_mapping(r, t, &call, &map, &st);
	after_call(r, t, &ev, &call);
	return true;
}

static bool emit_insn(struct recorder *r, const struct task *t,
		      const struct tr_log_call *c, const struct tr_regs *other,
		      uint64_t when)
{
	const struct tr_log_insn *v = (const void *)(c + 1);
	struct tr_event ev = rec_event(TR_EV_INSN, t);
	struct tr_regs g = entry_regs(c, other);
	uint64_t length = c->insn == TR_INSN_RDTSCP ? 3 : 2;

	if (c->size != sizeof *c + sizeof *v || !tr_stub_can_do(c->insn))
		return false;
	g.rax = c->frame.rax;
	g.rcx = c->frame.after;
	g.r11 = c->frame.traced;
	g.orig_rax = (uint64_t)-1;
	g.rip = (uint64_t)c->result - length;
	ev.regs = g;
	tr_event_mark(&ev, TR_F_REGS);
	g.rip += length;
	g.rax = v->rax;
	g.rbx = v->rbx;
	g.rcx = v->rcx;
	g.rdx = v->rdx;
	ev.regs_after = g;
	tr_event_mark(&ev, TR_F_REGS_AFTER);
	tr_event_set(&ev, TR_F_INSN, c->insn);
	tr_event_set(&ev, TR_F_LENGTH, length);
	tr_event_set(&ev, TR_F_ORIGIN, TR_ORIGIN_BUFFERED);
	rec_emit_at(r, &ev, when);
	return true;
}

static bool emit_any(struct recorder *r, struct task *t,
		     const struct tr_log_call *c, const struct tr_regs *other,
		     uint64_t when, uint64_t end)
{
	return c->insn ? emit_insn(r, t, c, other, when)
		       : emit_call(r, t, c, other, when, end);
}

/* The injected code has no clock: its calls are spread evenly over the time
 * since the last stop. */
static void emit_log(struct recorder *r, struct task *t, uint64_t size,
		     uint64_t calls, const struct tr_regs *other)
{
	uint64_t now = tr_now_ns(), begin = t->as->drained, n = 0;
	uint64_t at = 0;

	while (at < size) {
		const struct tr_log_call *c = (const void *)(r->log + at);

		if (size - at < sizeof *c || c->size < sizeof *c ||
		    c->size % 8 || c->size > size - at ||
		    !emit_any(r, t, c, other,
			      begin + (now - begin) * ++n / (calls + 1),
			      size)) {
			rec_stop_replay(r, t, TR_NOTE_UNMODELLED,
					"it changed the recorder's memory");
			return;
		}
		at += c->size;
	}
}

/* Record what is new in the log, of which `running` tells whether it is being
 * written to: what it counts is whole. */
static void drain(struct recorder *r, struct task *t, bool running)
{
	static const uint64_t none[2];
	/* As in struct tr_calls_control. */
	struct {
		uint32_t leave, phase;
		uint64_t rsp, result, head, done;
	} c;
	struct aspace *as = t->as;

	if (tr_memory_read(t->tid, TR_CONTROL_AT(leave), &c, sizeof c) < 0)
		return; /* SIGKILL took it */
	if (c.head > as->log_from && c.head <= TR_INJECT_LOG_SIZE &&
	    tr_memory_read(t->tid, TR_INJECT_LOG + as->log_from, r->log,
			   c.head - as->log_from) == 0)
		emit_log(r, t, c.head - as->log_from, c.done - as->log_done,
			 &t->seen);
	as->log_from = c.head;
	as->log_done = c.done;
	/* A call under way will be appended where the log ends now. */
	if (!running && c.head && c.phase == TR_PHASE_OUT &&
	    tr_memory_write(t->tid, TR_CONTROL_AT(head), none,
			    sizeof none) == 0)
		as->log_from = as->log_done = 0;
	as->drained = tr_now_ns();
}

static bool has_log(const struct task *t)
{
	return t->as && t->as->intercept && !t->new_image && t->started &&
	       t->as->domain->current == t;
}

void rec_calls_drain(struct recorder *r, struct task *t)
{
	/* Since the entry of a call nothing ran but the kernel. */
	if (has_log(t) && (!t->in_call || t->fl.interrupted))
		drain(r, t, false);
}

void rec_calls_tick(struct recorder *r)
{
	uint64_t now = tr_now_ns();

	for (struct task *t = r->tasks; t; t = t->next) {
		struct domain *d = t->as->domain;

		if (!has_log(t) || d->in_kernel)
			continue;
		drain(r, t, true);
		/* Others wait, or a state is due: its turn ends, and that is
		 * taken, at a call that is traced. */
		if ((d->first && now - d->slice > r->options->slice_ns) ||
		    rec_state_overdue(r, t, now))
			rec_calls_trace_next(t);
	}
}

bool rec_calls_stop_here(const struct tr_regs *regs)
{
	return regs->rip == tr_calls_address(tr_calls_after_shown) ||
	       regs->rip == tr_calls_address(tr_calls_after_leave);
}

bool rec_calls_leaves(struct task *t, struct tr_regs *regs)
{
	/* It has shown what is in the log, and keeps its turn: others would find
	 * the code in use.  Number -1 is no call. */
	if (regs->rip == tr_calls_address(tr_calls_after_shown)) {
		rec_resume(t, TR_RESUME_CONT, 0);
		return true;
	}
	if (regs->rip != tr_calls_address(tr_calls_after_leave))
		return false;
	regs->orig_rax = (uint64_t)-1; /* no call is made */
	t->leaving = true;
	SET(t, leave, 0);
	if (tr_tracee_set_regs(t->tid, regs) == 0)
		rec_resume(t, TR_RESUME_SYSCALL, 0);
	return true;
}

void rec_calls_left(struct recorder *r, struct task *t)
{
	t->leaving = false;
	if (tr_tracee_set_regs(t->tid, &t->as->last) < 0)
		return;
	rec_growth_check(r, t);
	rec_release_held(t);
	rec_run(r, t, TR_RESUME_CONT, 0);
}

static bool is_restart(uint64_t result)
{
	int64_t e = -(int64_t)result;

	return e >= 512 && e <= 516; /* include/linux/errno.h */
}

/*
 * A signal or a preemption waits: the call is made again by the program's own
 * instruction, if it has not been made or was interrupted, or else the task
 * stops when it is over.
 */
void rec_calls_expel(struct task *t, struct tr_regs *regs)
{
	uint32_t phase = TR_PHASE_OUT;
	bool undone;

	if (tr_memory_read(t->tid, TR_CONTROL_AT(phase), &phase,
			   sizeof phase) < 0)
		return; /* SIGKILL took it */
	undone = phase == TR_PHASE_BEFORE &&
		 (regs->rip != tr_calls_address(tr_calls_after_syscall) ||
		  is_restart(regs->rax));
	if (undone) {
		regs->rip = tr_calls_address(tr_calls_go_traced);
		regs->orig_rax = (uint64_t)-1;
		if (tr_tracee_set_regs(t->tid, regs) < 0)
			return;
	} else if (phase == TR_PHASE_OUT || phase == TR_PHASE_INSN) {
		SET(t, trace_next, 1);
	} else {
		SET(t, leave, 1);
	}
	rec_resume(t, TR_RESUME_CONT, 0);
}

bool rec_calls_stop_later(struct task *t)
{
	struct tr_regs regs;

	if (tr_tracee_get_regs(t->tid, &regs) < 0 || !tr_calls_hold(regs.rip))
		return false;
	rec_calls_expel(t, &regs);
	t->stop_later = true;
	return true;
}

bool rec_calls_fault(struct recorder *r, struct task *t, int sig, int si_code,
		     struct tr_regs *regs)
{
	uint32_t phase = TR_PHASE_OUT;

	if (!tr_calls_hold(regs->rip) || !tr_signal_is_fault(sig, si_code))
		return false;
	/* The program's own fault. */
	if (tr_calls_come_home(&t->as->calls, regs))
		return tr_tracee_set_regs(t->tid, regs) < 0;
	if (tr_memory_read(t->tid, TR_CONTROL_AT(phase), &phase,
			   sizeof phase) < 0)
		return true; /* SIGKILL took it */
	if (phase == TR_PHASE_AFTER)
		rec_stop_replay(r, t, TR_NOTE_UNMODELLED,
				"what a call wrote could not be read");
	regs->rip = tr_calls_address(phase == TR_PHASE_AFTER
				     ? tr_calls_abandon : tr_calls_go_traced);
	regs->orig_rax = (uint64_t)-1;
	if (tr_tracee_set_regs(t->tid, regs) == 0)
		rec_resume(t, TR_RESUME_CONT, 0);
	return true;
}
