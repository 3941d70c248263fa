/* Applying one event to its task. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/model/syscalls.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/image.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/remote.h"
#include "libtrace/tracee/tracee.h"
#include "libtrace/tracee/vessel.h"

static const char *call_name(uint64_t nr)
{
	const struct tr_sys *sys = tr_sys_lookup(nr);

	return sys ? sys->name : "an unknown system call";
}

static const char *signal_text(int sig)
{
	const char *name = tr_signal_name((int)sig);

	return name ? name : "a signal";
}

/* The task must be at the entry of the recorded call, in the same state. */
static enum applied reach_call(struct tr_replay *r, struct rtask *t,
			       struct tr_error *err)
{
	uint64_t nr = tr_event_get(&r->ev, TR_F_NR);
	enum applied how = rep_wait(r, t, err);

	if (how != AGREED)
		return how;
	if (!t->at_entry)
		return rep_diverged(r, t, "%s where %s was called when "
				    "recorded", signal_text(t->stop_signal),
				    call_name(nr));
	if (t->regs.orig_rax != nr)
		return rep_diverged(r, t, "%s was called where it was %s when "
				    "recorded", call_name(t->regs.orig_rax),
				    call_name(nr));
	if (!tr_regs_equal(&t->regs, &r->ev.regs))
		return rep_regs_differ(r, t, &r->ev.regs);
	return AGREED;
}

/* The memory the call reads must hold what it held. */
static enum applied check_arg(struct tr_replay *r, struct rtask *t,
			      struct tr_window *w, const struct tr_arg *a)
{
	TR_AUTOFREE uint8_t *bytes = tr_alloc(a->len);

	if (tr_window_read(w, a->addr, bytes, a->len) < a->len)
		return rep_diverged(r, t, "argument %u at 0x%" PRIx64
				    " is not readable", a->index, a->addr);
	if (XXH3_64bits(bytes, a->len) != a->hash)
		return rep_diverged(r, t, "the %" PRIu64 " bytes of argument %u "
				    "at 0x%" PRIx64 " differ", a->len,
				    a->index, a->addr);
	return AGREED;
}

static enum applied check_args(struct tr_replay *r, struct rtask *t)
{
	enum applied how = AGREED;
	struct tr_window w;

	tr_window_open(&w, t->tid);
	for (size_t i = 0; i < r->ev.narg && how == AGREED; i++)
		how = check_arg(r, t, &w, &r->ev.arg[i]);
	return how;
}

static int write_mem(struct rtask *t, const struct tr_event *ev,
		     struct tr_error *err)
{
	for (size_t i = 0; i < ev->nmem; i++)
		if (tr_memory_write(t->tid, ev->mem[i].addr,
				    ev->mem[i].bytes.data,
				    ev->mem[i].bytes.len) < 0 ||
		    tr_patches_settle(t->tid, &t->as->patches,
				      ev->mem[i].addr,
				      ev->mem[i].bytes.len) < 0)
			return tr_fail_errno(err, "task %u: writing %zu bytes "
					     "at 0x%" PRIx64, t->id,
					     ev->mem[i].bytes.len,
					     ev->mem[i].addr);
	return 0;
}

/* The event's effects on memory, those of its `more` records included. */
int rep_apply_mem(struct tr_replay *r, struct rtask *t, struct tr_error *err)
{
	uint64_t parts = tr_event_get(&r->ev, TR_F_PARTS);

	if (write_mem(t, &r->ev, err) < 0)
		return -1;
	for (; parts > 0; parts--) {
		const struct tr_event *more;

		if (tr_feed_advance(r->feed, r->ev.stream, &more, err) < 0)
			return -1;
		/* The main record's arrays are gone with the advance. */
		r->ev.nmem = r->ev.narg = r->ev.nmap = 0;
		if (!more || more->type != TR_EV_MORE)
			return tr_fail(err, TR_EINCOMPLETE,
				       "event %" PRIu64 ": its effects are not "
				       "all there", r->ev.number);
		if (write_mem(t, more, err) < 0)
			return -1;
	}
	return 0;
}

int rep_set_state(struct tr_replay *r, struct rtask *t,
		  const struct tr_regs *regs, struct tr_error *err)
{
	const struct tr_bytes *x = &r->ev.xstate;

	t->regs = *regs;
	/* No restart of the emulated call: its number must not be seen. */
	t->regs.orig_rax = (uint64_t)-1;
	if (tr_tracee_set_regs(t->tid, &t->regs) < 0)
		return tr_fail_errno(err, "task %u: setting registers", t->id);
	if (!tr_event_has(&r->ev, TR_F_XSTATE))
		return 0;
	if (x->len != tr_xstate_size())
		return tr_fail(err, TR_EUNSUPPORTED,
			       "the recording machine's extended state has %zu "
			       "bytes, this one's %zu: replay needs a CPU with "
			       "the same XSAVE features", x->len,
			       tr_xstate_size());
	if (tr_tracee_set_xstate(t->tid, x->data, x->len) < 0)
		return tr_fail_errno(err, "task %u: setting extended state",
				     t->id);
	return 0;
}

static bool read_task(void *ctx, uint64_t addr, void *buf, size_t n)
{
	return tr_memory_read(((struct rtask *)ctx)->tid, addr, buf, n) == 0;
}

/* What the program writes to its output, or to a file that is mapped, is in
 * its memory at the entry. */
static int take_written(struct tr_replay *r, struct rtask *t,
		       struct tr_error *err)
{
	const struct tr_regs *g = &r->ev.regs;
	struct tr_call call = {
		.nr = tr_event_get(&r->ev, TR_F_NR),
		.args = {g->rdi, g->rsi, g->rdx, g->r10, g->r8, g->r9},
		.read = read_task,
		.ctx = t,
	};
	int64_t left = (int64_t)tr_event_get(&r->ev, TR_F_RESULT);
	struct tr_ranges in = {0};
	int failed = 0;

	r->is_output = tr_event_has(&r->ev, TR_F_OUTPUT);
	if (!r->is_output && !tr_event_has(&r->ev, TR_F_OFFSET))
		return 0;
	tr_call_written(&call, &in);
	for (size_t i = 0; i < in.n && left > 0; i++) {
		const struct tr_range *rg = &in.r[i];
		size_t n = rg->len < (uint64_t)left ? (size_t)rg->len
						    : (size_t)left;

		if (tr_memory_read(t->tid, rg->addr,
				   tr_buf_reserve(&r->written, n), n) < 0)
			failed = tr_fail_errno(err, "task %u: reading output",
					       t->id);
		r->written.len += n;
		left -= (int64_t)n;
	}
	tr_ranges_release(&in);
	return failed;
}

/*
 * How far a stack grows is decided by the soft limit of the process it is in
 * (acct_stack_growth in mm/), which the program may have changed.
 */
static void follow_stack_limit(const struct tr_replay *r,
			       const struct rtask *t)
{
	const struct tr_regs *g = &r->ev.regs;
	uint64_t nr = tr_event_get(&r->ev, TR_F_NR), at = 0;
	struct rlimit rl;

	if (nr == SYS_setrlimit && g->rdi == RLIMIT_STACK)
		at = g->rsi;
	else if (nr == SYS_prlimit64 && g->rdi == 0 && g->rsi == RLIMIT_STACK)
		at = g->rdx;
	if (at && tr_event_get(&r->ev, TR_F_RESULT) == 0 &&
	    tr_memory_read(t->tid, at, &rl, sizeof rl) == 0)
		tr_vessel_limit_stack(t->tid, rl.rlim_cur);
}

/* The call changed a file that is mapped shared. */
static int change_mapped_file(struct tr_replay *r, struct tr_error *err)
{
	uint32_t file = (uint32_t)tr_event_get(&r->ev, TR_F_FILE);

	if (!tr_event_has(&r->ev, TR_F_FILE))
		return 0;
	if (tr_backing_resize(&r->backing, file,
			      tr_event_get(&r->ev, TR_F_SIZE), err) < 0)
		return -1;
	if (!tr_event_has(&r->ev, TR_F_OFFSET))
		return 0;
	return tr_backing_write(&r->backing, file, r->written.data,
				r->written.len,
				tr_event_get(&r->ev, TR_F_OFFSET), err);
}

/* Change the code as the recorder did at this event. */
static void jump_from(struct tr_replay *r, struct rtask *t, uint64_t at,
		      struct tr_patchable what)
{
	const struct tr_way way = {.via = tr_event_get(&r->ev, TR_F_VIA),
				   .hole = tr_event_get(&r->ev, TR_F_VALUE)};

	tr_calls_patch(t->tid, &t->as->calls, &t->as->patches, at, what, way);
	tr_known_learn(&r->known, &t->as->calls, at);
}

bool rep_was_made(const struct tr_event *ev)
{
	uint64_t origin = tr_event_get(ev, TR_F_ORIGIN);

	return origin == TR_ORIGIN_KERNEL || origin == TR_ORIGIN_BUFFERED;
}

static enum applied apply_syscall(struct tr_replay *r, struct rtask *t,
				  struct tr_error *err)
{
	const struct tr_sys *sys = tr_sys_lookup(tr_event_get(&r->ev, TR_F_NR));
	struct tr_regs after = tr_event_has(&r->ev, TR_F_REGS_AFTER)
		? r->ev.regs_after
		: tr_regs_after_call(&r->ev.regs,
				     (int64_t)tr_event_get(&r->ev, TR_F_RESULT));
	enum applied how = AGREED;

	if (t->fed)
		how = rep_wait(r, t, err);
	if (how == AGREED && t->answered)
		return rep_batch_apply(r, t);
	if (how == AGREED)
		how = reach_call(r, t, err);
	if (how == AGREED)
		how = check_args(r, t);
	if (how != AGREED)
		return how;
	if (take_written(r, t, err) < 0)
		return TROUBLE;
	follow_stack_limit(r, t);
	if (change_mapped_file(r, err) < 0)
		return TROUBLE;
	if (sys && sys->class == TR_SYS_MAP && rep_was_made(&r->ev)) {
		how = rep_apply_mapping(r, t, err);
		if (how != AGREED)
			return how;
	}
	if (tr_event_has(&r->ev, TR_F_VALUE))
		jump_from(r, t, r->ev.regs.rip - 2, TR_PATCH_CALL);
	if (rep_set_state(r, t, &after, err) < 0 || rep_apply_mem(r, t, err) < 0)
		return TROUBLE;
	t->at_entry = false;
	r->resume_after = true;
	return AGREED;
}

static enum applied apply_enter(struct tr_replay *r, struct rtask *t,
				struct tr_error *err)
{
	enum applied how = reach_call(r, t, err);

	if (how == AGREED)
		how = check_args(r, t);
	if (how == AGREED && rep_apply_mem(r, t, err) < 0)
		return TROUBLE;
	return how;
}

static enum applied apply_clone(struct tr_replay *r, struct rtask *t,
				struct tr_error *err)
{
	uint64_t flags = tr_event_get(&r->ev, TR_F_CLONE_FLAGS);
	bool shared = flags & CLONE_VM;
	enum applied how = reach_call(r, t, err);
	struct rspace *as = t->as;
	pid_t tid;

	if (how != AGREED)
		return how;
	tid = tr_remote_clone(t->tid, shared ? CLONE_VM : 0, err);
	if (tid < 0)
		return TROUBLE;
	if (!shared) {
		as = rep_space_new(
			(uint32_t)tr_event_get(&r->ev, TR_F_DOMAIN));
		as->brk = t->as->brk;
		tr_patches_copy(&as->patches, &t->as->patches);
		tr_calls_copy(&as->calls, &t->as->calls);
	}
	rep_task_new(r, (uint32_t)tr_event_get(&r->ev, TR_F_CHILD), tid, as);
	return rep_apply_mem(r, t, err) < 0 ? TROUBLE : AGREED;
}

/* To the core it was recorded on, if this machine has it. */
static void pin(const struct tr_replay *r, struct rtask *t)
{
	int64_t cpu = -1;

	if (r->member)
		cpu = rep_member_cpu(r->member);
	else if (tr_event_has(&r->ev, TR_F_CPU))
		cpu = (int64_t)tr_event_get(&r->ev, TR_F_CPU);
	t->cpu = tr_vessel_pin(t->tid, cpu) == 0 ? cpu : -1;
}

static enum applied apply_start(struct tr_replay *r, struct rtask *t,
				struct tr_error *err)
{
	if (rep_set_state(r, t, &r->ev.regs, err) < 0 || rep_apply_mem(r, t, err) < 0)
		return TROUBLE;
	pin(r, t);
	r->resume_after = true;
	return AGREED;
}

/* A new address space is a new vessel: the old one is left as it is to tasks
 * that share it. */
static enum applied apply_image(struct tr_replay *r, struct rtask *t,
				struct tr_error *err)
{
	struct rspace *as = rep_space_new(r->ev.stream);
	pid_t tid = tr_remote_clone(r->first_vessel, 0, err);
	enum applied how;

	if (t)
		rep_task_end(r, t);
	if (tid < 0) {
		free(as);
		return TROUBLE;
	}
	t = rep_task_new(r, r->ev.task, tid, as);
	as->brk = tr_event_get(&r->ev, TR_F_BRK);
	pin(r, t);
	tr_vessel_limit_stack(tid, tr_event_get(&r->ev, TR_F_STACK_LIMIT));
	if (tr_image_map(tid, r->ev.map, r->ev.nmap, &r->source, err) < 0)
		return TROUBLE;
	how = rep_patch_mappings(r, t, err);
	if (how != AGREED)
		return how;
	as->patches.translated = tr_event_get(&r->ev, TR_F_TRANSLATED);
	if (rep_set_state(r, t, &r->ev.regs, err) < 0 || rep_apply_mem(r, t, err) < 0)
		return TROUBLE;
	r->resume_after = true;
	return AGREED;
}

bool rep_is_fault(const struct tr_event *ev)
{
	siginfo_t si;

	if (ev->siginfo.len < sizeof si ||
	    tr_event_get(ev, TR_F_PLACE) == TR_PLACE_HERE)
		return false;
	memcpy(&si, ev->siginfo.data, sizeof si);
	return tr_signal_is_fault((int)tr_event_get(ev, TR_F_SIGNO),
				  si.si_code);
}

static enum applied reach_fault(struct tr_replay *r, struct rtask *t,
				struct tr_error *err)
{
	int sig = (int)tr_event_get(&r->ev, TR_F_SIGNO);
	enum applied how = rep_wait(r, t, err);

	if (how != AGREED)
		return how;
	if (t->at_entry)
		return rep_diverged(r, t, "%s was called where %s came when "
				    "recorded", call_name(t->regs.orig_rax),
				    signal_text(sig));
	if (t->stop_signal != sig)
		return rep_diverged(r, t, "%s came where %s came when recorded",
				    signal_text(t->stop_signal),
				    signal_text(sig));
	t->stop_signal = 0;
	return AGREED;
}

static enum applied apply_signal(struct tr_replay *r, struct rtask *t,
				 struct tr_error *err)
{
	enum applied how = AGREED;

	if (rep_is_fault(&r->ev))
		how = reach_fault(r, t, err);
	if (how != AGREED)
		return how;
	if (tr_event_has(&r->ev, TR_F_REGS) &&
	    !tr_regs_equal(&t->regs, &r->ev.regs))
		return rep_regs_differ(r, t, &r->ev.regs);
	if (tr_event_get(&r->ev, TR_F_ACTION) != TR_SIG_HANDLER)
		return AGREED;
	if (rep_set_state(r, t, &r->ev.regs_after, err) < 0 ||
	    rep_apply_mem(r, t, err) < 0)
		return TROUBLE;
	t->at_entry = false;
	r->resume_after = true;
	return AGREED;
}

static enum applied apply_insn(struct tr_replay *r, struct rtask *t,
			       struct tr_error *err)
{
	const char *name = tr_insn_name(tr_event_get(&r->ev, TR_F_INSN));
	enum applied how = rep_wait(r, t, err);
	struct tr_patchable what;
	struct tr_site site;

	if (how == AGREED && t->answered)
		return rep_batch_apply(r, t);
	if (how != AGREED)
		return how;
	if (t->at_entry)
		return rep_diverged(r, t, "%s was called where %s was executed "
				    "when recorded",
				    call_name(t->regs.orig_rax), name);
	if (!tr_trapped_insn(t->tid, t->stop_signal, t->stop_code, &t->regs,
			     &t->as->patches, &site))
		return rep_diverged(r, t, "%s came where %s was executed when "
				    "recorded", signal_text(t->stop_signal),
				    name);
	if (!tr_regs_equal(&t->regs, &r->ev.regs))
		return rep_regs_differ(r, t, &r->ev.regs);
	what = (struct tr_patchable){site.insn, site.length};
	if (tr_event_has(&r->ev, TR_F_VALUE))
		jump_from(r, t, r->ev.regs.rip, what);
	else if (site.insn == TR_INSN_XSAVEC)
		tr_patches_remove(t->tid, &t->as->patches, r->ev.regs.rip);
	if (rep_set_state(r, t, &r->ev.regs_after, err) < 0)
		return TROUBLE;
	t->stop_signal = 0;
	r->resume_after = true;
	return AGREED;
}

static enum applied apply_exit(struct tr_replay *r, struct rtask *t,
			       struct tr_error *err)
{
	/* What the kernel wrote into memory that others go on using. */
	if (rep_apply_mem(r, t, err) < 0)
		return TROUBLE;
	rep_task_end(r, t);
	return AGREED;
}

/* Two domains share memory from here on: what tasks of the other one have done
 * by themselves until now comes before what follows. */
static enum applied join_domains(struct tr_replay *r, const struct rtask *t,
				 struct tr_error *err)
{
	uint32_t other = (uint32_t)tr_event_get(&r->ev, TR_F_DOMAIN);
	enum applied how = AGREED;

	for (struct rtask *o = r->tasks; t && o && how == AGREED; o = o->next) {
		if (o->as->domain != other)
			continue;
		if (o->running)
			how = rep_wait(r, o, err);
		o->as->domain = t->as->domain;
	}
	return how;
}

static enum applied apply_note(struct tr_replay *r, const struct rtask *t,
			       struct tr_error *err)
{
	if (tr_event_get(&r->ev, TR_F_CODE) == TR_NOTE_DOMAIN_JOINED)
		return join_domains(r, t, err);
	if (tr_event_get(&r->ev, TR_F_CODE) >= TR_NOTE_STOPS) {
		r->stopped = true;
		snprintf(r->note, sizeof r->note, "event %" PRIu64
			 ", task %u: %s: %.*s", r->ev.number, r->ev.task,
			 tr_note_name(tr_event_get(&r->ev, TR_F_CODE)),
			 (int)(r->ev.text.len < 300 ? r->ev.text.len : 300),
			 (const char *)r->ev.text.data);
	}
	return AGREED;
}

static void take_file(struct tr_replay *r)
{
	tr_backing_add(&r->backing, &r->ev);
	tr_known_load(&r->known, tr_reader_dirfd(r->reader),
		      (uint32_t)tr_event_get(&r->ev, TR_F_FILE), &r->ev.known);
}

enum applied rep_apply(struct tr_replay *r, struct tr_error *err)
{
	struct rtask *t = rep_task_find(r, r->ev.task);

	r->resume_after = false;
	if (r->ev.type == TR_EV_NOTE)
		return apply_note(r, t, err);
	if (r->ev.type == TR_EV_FILE)
		take_file(r);
	if (r->ev.stream == 0)
		return AGREED;
	if (r->ev.type == TR_EV_IMAGE)
		return apply_image(r, t, err);
	if (!t && !tr_reader_complete(r->reader)) {
		/* Its beginning is in a chunk that was not sealed. */
		r->cut = true;
		return AGREED;
	}
	if (!t) {
		tr_fail(err, TR_ECORRUPT, "event %" PRIu64 ": task %u does not "
			"exist", r->ev.number, r->ev.task);
		return TROUBLE;
	}
	switch (r->ev.type) {
	case TR_EV_START:
		return apply_start(r, t, err);
	case TR_EV_SYSCALL:
		return apply_syscall(r, t, err);
	case TR_EV_ENTER:
		return apply_enter(r, t, err);
	case TR_EV_CLONE:
		return apply_clone(r, t, err);
	case TR_EV_SIGNAL:
		return apply_signal(r, t, err);
	case TR_EV_INSN:
		return apply_insn(r, t, err);
	case TR_EV_STATE:
		return rep_apply_state(r, t, err);
	case TR_EV_STOP:
		return rep_apply_stop(r, t, err);
	case TR_EV_POKE:
		return rep_apply_poke(r, t, err);
	case TR_EV_ASYNC:
		return rep_apply_async(r, t, err);
	case TR_EV_EXIT:
		return apply_exit(r, t, err);
	default:
		return AGREED;
	}
}
