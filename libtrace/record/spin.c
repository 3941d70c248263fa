/*
 * Tasks that wait for another one by looking again and again, and would do so
 * until their turn is over.
 *
 * A task that has computed for a while as others wait for the turn is stopped
 * and looked at.  When its registers hardly change, one pass of its loop is
 * made by single steps.  If that leads from a state to the very same state, the
 * task will go round until another changes what it looks at: its turn ends
 * there.  So it does when the loop pauses (PAUSE is for nothing else), whatever
 * it counts, and when it does nothing but count.
 *
 * In the first case the registers and what the loop looks at are all that tells
 * the point: had the task been there before with the same, it would be in that
 * loop still.  No digest of the memory is needed.
 *
 * A look costs some 50 us, so a task in which nothing is found is looked at
 * more and more seldom; one that was found to wait, soon, and in the loop that
 * is known already the pass is made at once.
 */
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/operands.h"
#include "libtrace/state/regs.h"
#include "libtrace/state/xstate.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/relocate.h"
#include "libtrace/tracee/tracee.h"

/* When a turn is looked at: first, and when it began inside a loop that
 * waits. */
#define FIRST_NS UINT64_C(1000000)
#define AGAIN_NS UINT64_C(250000)
/* From one look to the next; what was found to wait is looked at so often
 * before that becomes longer. */
#define GAP_MIN_NS UINT64_C(1000000)
#define GAP_MAX_NS UINT64_C(512000000)
#define TRUST 12
/* A loop that may be a computation is looked at half as often each time it is
 * found, as long as the task is seen nowhere else, until it is taken for one. */
#define COUNTED_MAX 7
/* Between the two looks that are compared. */
#define MOMENT_NS UINT64_C(100000)

/* A pass: steps, and operands of its instructions, at most.  A step costs some
 * 30 us. */
#define STEPS_MAX 32
#define SEEN_MAX 32
/* Its code, unless it is not known again. */
#define CODE_MAX 4096
/* The stack it may use, around rsp: calls, and the red zone (System V ABI for
 * x86-64, 3.2.2). */
#define STACK_BELOW 256u
#define STACK_ABOVE 512u
/* Of it, a function's own variables, as far as that can be told. */
#define FRAME_BELOW 128u
#define FRAME_ABOVE 128u
struct pass {
	struct tr_regs start, now;
	uint64_t vector;     /* digest of the vector registers */
	uint8_t stack[STACK_BELOW + STACK_ABOVE];
	size_t nstack;
	struct code code;
	bool pauses;
	bool same;           /* it changed nothing at all */
	struct seen {
		struct tr_operand op;
		uint8_t before[TR_OPERAND_BYTES];
	} seen[SEEN_MAX];
	size_t nseen;
};

/* ---- when ---- */

static uint64_t due_at(const struct domain *d)
{
	const struct task *t = d->current;
	uint64_t first;

	/* Chaos means to hold others up. */
	if (!t || !d->first || d->random || d->in_kernel || t->in_call ||
	    t->vt || t->nheld)
		return UINT64_MAX;
	first = t->ran_since + (t->spin.inside ? AGAIN_NS << t->spin.counted
					       : FIRST_NS);
	return first > t->spin.next ? first : t->spin.next;
}

bool rec_spin_due(const struct domain *d, uint64_t now)
{
	return now >= due_at(d);
}

uint64_t rec_spin_wait(const struct recorder *r, uint64_t most)
{
	uint64_t now = tr_now_ns();

	for (const struct domain *d = r->domains; d; d = d->next) {
		uint64_t at = due_at(d);

		if (at == UINT64_MAX || !d->current->spin.trust)
			continue;
		if (at < now + AGAIN_NS)
			return AGAIN_NS;
		if (at - now < most)
			most = at - now;
	}
	return most;
}

void rec_spin_look_at(struct task *t)
{
	rec_interrupt(t);
	t->spin.looking = true;
}

static void look_later(struct task *t, uint64_t times)
{
	struct spinning *s = &t->spin;

	s->inside = false;
	if (s->trust)
		s->trust--;
	else
		s->gap *= times;
	if (s->gap < GAP_MIN_NS)
		s->gap = GAP_MIN_NS;
	if (s->gap > GAP_MAX_NS)
		s->gap = GAP_MAX_NS;
	s->next = tr_now_ns() + s->gap;
}

static void look_soon(struct task *t, const struct pass *p)
{
	unsigned counted = p->same || p->pauses ? 0 : t->spin.counted + 1;

	if (counted < COUNTED_MAX)
		t->spin = (struct spinning){
			.gap = GAP_MIN_NS, .trust = TRUST, .inside = true,
			.counted = counted, .loop = p->code,
		};
	else
		t->spin = (struct spinning){.gap = GAP_MAX_NS,
					    .other = p->code};
}

/* ---- one pass ---- */

static bool begin_pass(const struct task *t, struct pass *p)
{
	uint8_t xstate[TR_MAX_XSTATE];
	size_t n = sizeof xstate;

	if (tr_tracee_get_regs(t->tid, &p->start) < 0 ||
	    tr_tracee_get_xstate(t->tid, xstate, &n) < 0)
		return false;
	p->start.eflags &= ~TR_EFLAGS_RF;
	p->now = p->start;
	p->code = (struct code){p->start.rip, p->start.rip};
	p->vector = tr_xstate_digest(xstate, n);
	p->nstack = tr_memory_read_some(t->tid, p->start.rsp - STACK_BELOW,
					p->stack, sizeof p->stack);
	return true;
}

static bool has_seen(struct pass *p, const struct tr_operand *op)
{
	for (size_t i = 0; i < p->nseen; i++) {
		struct tr_operand *o = &p->seen[i].op;

		if (o->addr != op->addr || o->len < op->len)
			continue;
		o->written |= op->written;
		return true;
	}
	return false;
}

/* What the memory holds that the instruction at hand accesses, before any of
 * the pass has written it. */
static bool see_operands(const struct task *t, struct pass *p)
{
	uint8_t code[TR_INSN_MAX];
	size_t n = tr_memory_read_some(t->tid, p->now.rip, code, sizeof code);
	struct tr_operands ops;

	if (!tr_operands_find(code, n, &p->now, &ops))
		return false;
	p->pauses |= ops.pauses;
	for (unsigned i = 0; i < ops.n; i++) {
		struct seen *s = &p->seen[p->nseen];

		if (has_seen(p, &ops.op[i]))
			continue;
		if (p->nseen == SEEN_MAX ||
		    tr_memory_read(t->tid, ops.op[i].addr, s->before,
				   ops.op[i].len) < 0)
			return false;
		s->op = ops.op[i];
		p->nseen++;
	}
	return true;
}

static bool in_window(const struct pass *p)
{
	return p->now.rsp > p->start.rsp - STACK_BELOW + 2 * sizeof(uint64_t) &&
	       p->now.rsp < p->start.rsp + STACK_ABOVE;
}

enum outcome { CLOSED, OPEN, GONE };

/* Step until the task is where it began.  GONE: it came to something else,
 * which has been handled. */
static enum outcome make_pass(struct recorder *r, struct task *t,
			      struct pass *p, uint64_t mask)
{
	for (int n = 0; n < STEPS_MAX; n++) {
		if (rec_at_an_event(t, p->now.rip) || !see_operands(t, p) ||
		    !in_window(p))
			return OPEN;
		if (!rec_step(r, t, mask) ||
		    tr_tracee_get_regs(t->tid, &p->now) < 0)
			return GONE;
		if (p->now.rip == p->start.rip && p->now.rsp == p->start.rsp)
			return CLOSED;
		if (p->now.rip < p->code.low)
			p->code.low = p->now.rip;
		if (p->now.rip > p->code.high)
			p->code.high = p->now.rip;
	}
	return OPEN;
}

static bool memory_is_same(const struct task *t, const struct pass *p)
{
	uint8_t now[sizeof p->stack];

	if (tr_memory_read_some(t->tid, p->start.rsp - STACK_BELOW, now,
				sizeof now) != p->nstack ||
	    memcmp(now, p->stack, p->nstack) != 0)
		return false;
	for (size_t i = 0; i < p->nseen; i++) {
		const struct seen *s = &p->seen[i];

		if (tr_memory_read(t->tid, s->op.addr, now, s->op.len) < 0 ||
		    memcmp(now, s->before, s->op.len) != 0)
			return false;
	}
	return true;
}

/* Did the pass change nothing at all? */
static bool is_same(const struct task *t, const struct pass *p)
{
	uint8_t xstate[TR_MAX_XSTATE];
	size_t n = sizeof xstate;
	struct tr_regs now = p->now;

	now.eflags &= ~TR_EFLAGS_RF;
	return tr_regs_equal(&now, &p->start) && memory_is_same(t, p) &&
	       tr_tracee_get_xstate(t->tid, xstate, &n) == 0 &&
	       tr_xstate_digest(xstate, n) == p->vector;
}

/* ---- counting ---- */

/* General registers but rsp. */
#define COUNTERS 15

static void list_registers(const struct tr_regs *g, uint64_t v[COUNTERS])
{
	const uint64_t all[COUNTERS] = {
		g->rax, g->rcx, g->rdx, g->rbx, g->rbp, g->rsi, g->rdi, g->r8,
		g->r9, g->r10, g->r11, g->r12, g->r13, g->r14, g->r15};

	memcpy(v, all, sizeof all);
}

/* Do at most two registers change, in both passes by as much? */
static bool registers_count(const struct pass *p, const struct pass *q)
{
	uint64_t a[COUNTERS], b[COUNTERS], c[COUNTERS];
	unsigned changed = 0;

	list_registers(&p->start, a);
	list_registers(&q->start, b);
	list_registers(&q->now, c);
	for (int i = 0; i < COUNTERS; i++) {
		if (b[i] - a[i] != c[i] - b[i])
			return false;
		changed += a[i] != b[i];
	}
	return changed <= 2;
}

/* Is it read and not written, and no variable of the function's own? */
static bool is_polled(const struct pass *p, const struct tr_operand *op)
{
	return !op->written &&
	       op->addr - (p->start.rsp - FRAME_BELOW) >=
	       FRAME_BELOW + FRAME_ABOVE;
}

/* Are the same words accessed, one of them polled, at most two written? */
static bool memory_counts(const struct pass *p, const struct pass *q)
{
	unsigned polled = 0, written = 0;

	if (p->nseen != q->nseen)
		return false;
	for (size_t i = 0; i < p->nseen; i++) {
		const struct tr_operand *a = &p->seen[i].op;

		if (a->addr != q->seen[i].op.addr ||
		    a->len != q->seen[i].op.len)
			return false;
		polled += is_polled(p, a);
		written += a->written;
	}
	return polled && written <= 2;
}

/*
 * A loop that counts while it looks at something: from one pass to the next
 * nothing else changes, and by as much as to the next.  A computation that
 * counts up to a limit in memory, and does nothing else, looks the same: see
 * COUNTED_MAX.
 */
static bool counts(struct recorder *r, struct task *t, const struct pass *p,
		   uint64_t mask, enum outcome *how)
{
	struct pass q = {.nseen = 0};

	if (!begin_pass(t, &q)) {
		*how = GONE;
		return false;
	}
	*how = make_pass(r, t, &q, mask);
	return *how == CLOSED && registers_count(p, &q) &&
	       memory_counts(p, &q) && p->vector == q.vector;
}

static void list_words(const struct pass *p, struct tr_ranges *words)
{
	for (size_t i = 0; i < p->nseen; i++) {
		TR_GROW(words->r, words->n, words->cap);
		words->r[words->n++] = (struct tr_range){
			.addr = p->seen[i].op.addr, .len = p->seen[i].op.len};
	}
}

/* ---- looking ---- */

/* Could a loop lead from one to the other that changes next to nothing? */
static bool are_alike(const struct tr_regs *a, const struct tr_regs *b)
{
	unsigned differ = (a->rax != b->rax) + (a->rcx != b->rcx) +
			  (a->rdx != b->rdx) + (a->rsi != b->rsi) +
			  (a->rdi != b->rdi) + (a->rbp != b->rbp) +
			  (a->r8 != b->r8) + (a->r9 != b->r9) +
			  (a->r10 != b->r10) + (a->r11 != b->r11);

	if (a->rbx != b->rbx || a->r12 != b->r12 || a->r13 != b->r13 ||
	    a->r14 != b->r14 || a->r15 != b->r15)
		return false;
	if (a->rsp == b->rsp)
		return differ <= 3;
	/* In a function that the loop calls. */
	return a->rsp - b->rsp + STACK_BELOW < 2 * STACK_BELOW;
}

/* The functions that it calls may be anywhere. */
static bool is_in(const struct code *c, uint64_t ip)
{
	if (c->high - c->low > CODE_MAX)
		return false;
	return ip >= c->low && ip <= c->high;
}

enum guess { HARDLY, MAYBE, ELSEWHERE };

static enum guess guess(struct recorder *r, struct task *t)
{
	const struct spinning *s = &t->spin;
	struct tr_regs first, second;

	if (tr_tracee_get_regs(t->tid, &first) < 0)
		return ELSEWHERE;
	if (tr_calls_hold(first.rip) || tr_at_call_boundary(&first))
		return HARDLY;
	if (is_in(&s->loop, first.rip))
		return MAYBE;
	/* With trust: it has not come to the loop yet. */
	t->spin.counted = 0;
	if (s->trust || is_in(&s->other, first.rip))
		return HARDLY;
	if (!rec_run_a_moment(r, t, MOMENT_NS) ||
	    tr_tracee_get_regs(t->tid, &second) < 0)
		return ELSEWHERE;
	return !tr_calls_hold(second.rip) && are_alike(&first, &second)
	       ? MAYBE : HARDLY;
}

/* CLOSED: the task waits. */
static enum outcome try_pass(struct recorder *r, struct task *t, struct pass *p)
{
	enum outcome how;
	uint64_t mask;

	if (!begin_pass(t, p))
		return GONE;
	if (!rec_allow_traps(t, &mask))
		return OPEN;
	how = make_pass(r, t, p, mask);
	p->same = how == CLOSED && is_same(t, p);
	if (how == CLOSED && !p->same && !p->pauses &&
	    !counts(r, t, p, mask, &how) && how == CLOSED)
		how = OPEN;
	if (how != GONE)
		rec_forbid_traps(t, mask);
	return how;
}

static void waits(struct recorder *r, struct task *t, const struct pass *p,
		  uint64_t began)
{
	struct tr_ranges words = {0};
	bool recorded;

	list_words(p, &words);
	look_soon(t, p);
	recorded = rec_record_wait(r, t, &words, p->same, began);
	tr_ranges_release(&words);
	if (!recorded)
		return;
	t->yields = true;
	rec_run(r, t, TR_RESUME_CONT, 0);
}

void rec_spin_look(struct recorder *r, struct task *t)
{
	uint64_t began = tr_now_ns();
	struct pass p = {.nseen = 0};
	enum guess guessed = guess(r, t);
	enum outcome how = guessed == MAYBE ? try_pass(r, t, &p) : OPEN;

	if (guessed == ELSEWHERE || how == GONE)
		return;
	if (how == CLOSED) {
		waits(r, t, &p, began);
		return;
	}
	if (guessed == MAYBE) {
		t->spin = (struct spinning){.gap = t->spin.gap,
					    .other = p.code};
	}
	look_later(t, guessed == MAYBE ? 4 : 2);
	rec_go_on(r, t, 0);
}
