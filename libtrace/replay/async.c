/*
 * Points inside computations: run to the first moment with the recorded state.
 *
 * A probe stops the task at the instruction, first every time, then, when it
 * has been seen what differs, only when the registers and some words of memory
 * are those recorded.  Everything else that was recorded is compared here, the
 * digest of the memory last.  What does not agree runs on.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/model/syscalls.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/state/regs.h"
#include "libtrace/state/xstate.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/probe.h"
#include "libtrace/tracee/repeat.h"
#include "libtrace/tracee/tracee.h"

/* A stop takes this much longer than a pass of the fastest loop.  A search by
 * stops that lasts longer than such a loop would need for all the passes it
 * could make when recorded will not end. */
#define STOP_FACTOR 60000

/* Looks at what differs, before the task is no longer stopped every time. */
#define LOOKS 2

#define RCX_RSI_RDI ((1u << 1) | (1u << 6) | (1u << 7))

struct search {
	struct tr_replay *r;
	struct rtask *t;
	struct tr_probe *probe;
	bool repeats;            /* the instruction can be half done */
	struct tr_repeat repeat;
	unsigned looks;
	uint32_t regs_differ;    /* in every look, by encoding */
	uint64_t word_differs;   /* and a word that did, by its address, */
	uint32_t word_wanted;    /* where this should have been */
	/* Evidence: how often it was stopped there, and what did not agree. */
	uint64_t passes, regs_no, words_no, vector_no, memory_no;
	struct tr_error *err;
};

/* ---- comparing ---- */

static bool registers_agree(const struct search *s)
{
	struct tr_regs now = s->t->regs;

	now.eflags &= ~TR_EFLAGS_RF;
	return tr_regs_equal(&now, &s->r->ev.regs);
}

/* Where the first difference of a piece of memory is, or -1. */
static int64_t difference(const struct search *s, const struct tr_mem *m)
{
	TR_AUTOFREE uint8_t *now = tr_alloc(m->bytes.len);
	const uint8_t *then = m->bytes.data;
	size_t got = tr_memory_read_some(s->t->tid, m->addr, now, m->bytes.len);

	for (size_t i = 0; i < m->bytes.len; i++)
		if (i >= got || now[i] != then[i])
			return (int64_t)i;
	return -1;
}

static bool words_agree(const struct search *s)
{
	const struct tr_event *ev = &s->r->ev;

	for (size_t i = 0; i < ev->nmem; i++)
		if (difference(s, &ev->mem[i]) >= 0)
			return false;
	return true;
}

static bool vector_agrees(const struct search *s)
{
	uint8_t xstate[TR_MAX_XSTATE];
	size_t len = sizeof xstate;

	return tr_tracee_get_xstate(s->t->tid, xstate, &len) == 0 &&
	       tr_xstate_digest(xstate, len) ==
	       tr_event_get(&s->r->ev, TR_F_VECTOR);
}

static int memory_agrees(const struct search *s)
{
	uint64_t root;

	if (!tr_event_has(&s->r->ev, TR_F_ROOT))
		return 1;
	if (tr_probe_hide(s->probe) < 0)
		return tr_fail_errno(s->err, "task %u: its code", s->t->id);
	if (rep_point_digest(s->r, s->t, s->probe, &root, s->err) < 0)
		return -1;
	if (tr_probe_show(s->probe) < 0)
		return tr_fail_errno(s->err, "task %u: its code", s->t->id);
	return root == tr_event_get(&s->r->ev, TR_F_ROOT);
}

/* 1, 0 or -1 with an error. */
static int state_agrees(struct search *s)
{
	int agrees;

	if (!registers_agree(s)) {
		s->regs_no++;
		return 0;
	}
	if (!words_agree(s)) {
		s->words_no++;
		return 0;
	}
	if (!vector_agrees(s)) {
		s->vector_no++;
		return 0;
	}
	agrees = memory_agrees(s);
	s->memory_no += agrees == 0;
	return agrees;
}

/* ---- learning what tells states apart ---- */

/* The first four bytes that differ and are not in a register. */
static void look_at_words(struct search *s)
{
	const struct tr_event *ev = &s->r->ev;

	for (size_t i = 0; i < ev->nmem; i++) {
		const struct tr_mem *m = &ev->mem[i];
		int64_t at = difference(s, m);

		if (at < 0 || (size_t)(at & ~3) + 4 > m->bytes.len)
			continue;
		s->word_differs = m->addr + (uint64_t)(at & ~3);
		memcpy(&s->word_wanted,
		       (const uint8_t *)m->bytes.data + (at & ~3), 4);
		return;
	}
}

static void look(struct search *s)
{
	const struct tr_regs *now = &s->t->regs, *want = &s->r->ev.regs;
	const uint64_t pair[16][2] = {
		{now->rax, want->rax}, {now->rcx, want->rcx},
		{now->rdx, want->rdx}, {now->rbx, want->rbx},
		{now->rsp, want->rsp}, {now->rbp, want->rbp},
		{now->rsi, want->rsi}, {now->rdi, want->rdi},
		{now->r8, want->r8}, {now->r9, want->r9},
		{now->r10, want->r10}, {now->r11, want->r11},
		{now->r12, want->r12}, {now->r13, want->r13},
		{now->r14, want->r14}, {now->r15, want->r15}};
	uint32_t differ = 0;

	/* The probe compares the low halves first. */
	for (int i = 0; i < 16; i++)
		if ((uint32_t)pair[i][0] != (uint32_t)pair[i][1])
			differ |= 1u << i;
	if (s->repeats)
		differ &= ~RCX_RSI_RDI;
	s->regs_differ = s->looks ? s->regs_differ & differ : differ;
	s->looks++;
	if (!s->regs_differ)
		look_at_words(s);
}

/* From now on the task is stopped only in states that look right, if the code
 * allows that. */
static void make_jump(struct search *s)
{
	const struct tr_event *ev = &s->r->ev;
	struct tr_probe_state want = {
		.regs = &ev->regs, .words = ev->mem, .nwords = ev->nmem,
		.first_reg = s->regs_differ ? __builtin_ctz(s->regs_differ)
					    : -1,
		.first_addr = s->word_differs,
		.first_value = s->word_wanted,
	};

	if (s->repeats) {
		want.ignored = RCX_RSI_RDI | (s->repeat.rdi ? 0 : 1);
		want.flags_ignored = s->repeat.compares;
		want.nwords = 0; /* it may be about to write them */
		want.first_addr = 0;
	}
	/* Where it cannot be one, the task is stopped every time. */
	(void)tr_probe_jump(s->probe, &want);
}

/* ---- running ---- */

static enum applied set_regs(struct search *s, uint64_t ip)
{
	struct tr_regs regs = s->t->regs;

	regs.rip = ip;
	regs.orig_rax = (uint64_t)-1;
	if (tr_tracee_set_regs(s->t->tid, &regs) == 0)
		return AGREED;
	tr_fail_errno(s->err, "task %u: setting registers", s->t->id);
	return TROUBLE;
}

static enum applied not_found(struct search *s, const char *instead)
{
	return rep_diverged(s->r, s->t, "%s before the state in which the "
			    "computation was interrupted when recorded "
			    "(stopped there %" PRIu64 " times; %" PRIu64
			    " times other registers, %" PRIu64 " other words "
			    "of memory, %" PRIu64 " other vector registers, %"
			    PRIu64 " other memory)", instead, s->passes,
			    s->regs_no, s->words_no, s->vector_no,
			    s->memory_no);
}

static enum applied something_else(struct search *s)
{
	const char *signal = tr_signal_name(s->t->stop_signal);

	if (s->t->at_entry)
		return not_found(s, "a system call came");
	return not_found(s, signal ? signal : "a signal came");
}

/* Why the task has stopped; AGREED when it is the probe's doing. */
static enum applied stopped(struct search *s, enum tr_probe_stop *why)
{
	struct rtask *t = s->t;

	*why = t->at_entry ? TR_PROBE_OTHER
	     : tr_probe_stopped(s->probe, t->stop_signal, t->stop_code,
				&t->regs);
	if (*why == TR_PROBE_OTHER)
		return something_else(s);
	t->stop_signal = 0;
	return AGREED;
}

typedef int stepper(struct tr_probe *p, int *status);

/* One instruction of the program's. */
static enum applied step(struct search *s, stepper *how)
{
	int status;

	if (how(s->probe, &status) == 0)
		return rep_stopped(s->r, s->t, status, s->err);
	tr_fail_errno(s->err, "task %u: a step", s->t->id);
	return TROUBLE;
}

/*
 * Over the probe, or something it is in the way of, by a single step.  A task
 * that was stopped at a system call traps once before it executes anything,
 * with another code (report_single_step in kernel/entry/common.c).
 */
static enum applied step_over(struct search *s, stepper *by)
{
	struct rtask *t = s->t;
	enum applied how = set_regs(s, t->regs.rip);

	if (how == AGREED)
		how = step(s, by);
	if (how == AGREED && t->stop_signal == SIGTRAP &&
	    t->stop_code == TRAP_BRKPT)
		how = step(s, by);
	if (how != AGREED)
		return how;
	if (t->at_entry || t->stop_signal != SIGTRAP ||
	    t->stop_code != TRAP_TRACE)
		return something_else(s);
	t->stop_signal = 0;
	return AGREED;
}

static enum applied make_store(struct search *s)
{
	enum applied how = step_over(s, tr_probe_store);

	if (how != AGREED)
		return how;
	if (tr_probe_stored(s->probe) < 0) {
		tr_fail_errno(s->err, "task %u: its code", s->t->id);
		return TROUBLE;
	}
	make_jump(s); /* for the code as it is now, if that has changed */
	return AGREED;
}

/* To the next stop by the probe. */
static enum applied run_on(struct search *s, enum tr_probe_stop *why)
{
	struct rtask *t = s->t;
	bool store = *why == TR_PROBE_STORE;
	uint64_t ip = store ? 0 : tr_probe_way_on(s->probe, t->regs.rip);
	enum applied how;

	if (ip == 0) {
		how = store ? make_store(s) : step_over(s, tr_probe_step);
		if (how != AGREED)
			return how;
		*why = TR_PROBE_HERE;
		if (t->regs.rip == s->r->ev.regs.rip)
			return AGREED; /* by a jump to itself, or from just
					  before it */
		ip = tr_probe_way_on(s->probe, t->regs.rip);
	}
	how = set_regs(s, ip);
	if (how == AGREED)
		how = rep_wait(s->r, t, s->err);
	return how == AGREED ? stopped(s, why) : how;
}

/*
 * The task is at the beginning of a string instruction that passes through the
 * recorded state: take it there, by having it do only so many repetitions.
 */
static enum applied repeat_partly(struct search *s, uint64_t count)
{
	struct rtask *t = s->t;
	uint64_t alone = tr_probe_alone(s->probe);
	uint64_t rest = s->r->ev.regs.rcx;
	enum tr_probe_stop why;
	enum applied how;

	if (!alone)
		return AGREED;
	t->regs.rcx = count;
	how = set_regs(s, alone);
	if (how == AGREED)
		how = rep_wait(s->r, t, s->err);
	if (how == AGREED)
		how = stopped(s, &why);
	if (how != AGREED)
		return how;
	/* A comparison may have ended it, and then it is done. */
	t->regs.rip = s->r->ev.regs.rip;
	if (t->regs.rcx)
		t->regs.rip += s->repeat.length;
	t->regs.rcx += rest;
	return set_regs(s, t->regs.rip);
}

/* The task is at the instruction. */
static enum applied compare(struct search *s, bool *found)
{
	struct rtask *t = s->t;
	uint64_t count = s->repeats ? tr_repeat_distance(&s->repeat, &t->regs,
							 &s->r->ev.regs) : 0;
	enum applied how = count ? repeat_partly(s, count) : AGREED;
	int agrees;

	if (how != AGREED)
		return how;
	agrees = state_agrees(s);
	*found = agrees > 0;
	return agrees < 0 ? TROUBLE : AGREED;
}

static enum applied search(struct search *s)
{
	uint64_t recorded = s->r->ev.time - s->t->last_time;
	uint64_t deadline = tr_now_ns() + REP_PATIENCE_NS +
			    STOP_FACTOR * recorded;
	enum tr_probe_stop why = TR_PROBE_PASSED;
	enum applied how = AGREED;
	bool found = false;

	if (s->repeats)
		make_jump(s); /* it is needed to run it partly */
	if (s->t->regs.rip == s->r->ev.regs.rip)
		how = compare(s, &found);
	while (how == AGREED && !found) {
		how = run_on(s, &why);
		if (how != AGREED || why != TR_PROBE_HERE)
			continue;
		s->passes++;
		how = compare(s, &found);
		if (how != AGREED || found)
			break;
		if (tr_now_ns() > deadline)
			return not_found(s, "the time was over");
		if (s->looks < LOOKS)
			look(s);
		if (s->looks == LOOKS) {
			make_jump(s);
			s->looks++;
		}
	}
	return how;
}

static void find_repeat(struct search *s)
{
	uint8_t code[15];
	size_t n = tr_memory_read_some(s->t->tid, s->r->ev.regs.rip, code,
				       sizeof code);

	s->repeats = tr_repeat_decode(code, n, &s->repeat);
}

/* The task stands at the point; without the probe, it goes on from there. */
static enum applied arrive(struct search *s)
{
	if (tr_probe_remove(s->probe, s->err) < 0)
		return TROUBLE;
	s->t->regs = s->r->ev.regs;
	s->r->resume_after = true;
	return set_regs(s, s->t->regs.rip);
}

enum applied rep_apply_async(struct tr_replay *r, struct rtask *t,
			     struct tr_error *err)
{
	struct search s = {.r = r, .t = t, .err = err};
	enum applied how;

	if (t->at_entry || t->stop_signal)
		return something_else(&s);
	if (r->probes.fd < 0 && tr_probe_memory_init(&r->probes, err) < 0)
		return TROUBLE;
	find_repeat(&s);
	s.probe = tr_probe_new(t->tid, r->ev.regs.rip, &r->probes, err);
	if (!s.probe)
		return TROUBLE;
	how = search(&s);
	if (how == AGREED)
		how = arrive(&s);
	tr_probe_free(s.probe);
	return how;
}
