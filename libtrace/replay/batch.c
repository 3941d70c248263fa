/*
 * Runs of calls that the injected code answers: what it needs is put in its
 * feed before the task runs, what it did is in its log when the task stops.
 *
 * Only calls that were made by injected code when recorded are answered so,
 * and not the last one of a run when what comes next happens right at its
 * end: that one stops, and the task with it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/model/syscalls.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"

/* Events of a run, so that its copies stay small. */
#define RUN_MAX 512

/* What an event must have nothing of, to be answered from the feed. */
#define UNFIT ((uint64_t)1 << TR_F_REGS_AFTER | (uint64_t)1 << TR_F_XSTATE |   \
	       (uint64_t)1 << TR_F_PARTS | (uint64_t)1 << TR_F_ENTERED |       \
	       (uint64_t)1 << TR_F_FILE |                                      \
	       (uint64_t)1 << TR_F_OFFSET | (uint64_t)1 << TR_F_MAP |          \
	       (uint64_t)1 << TR_F_VALUE)

static struct tr_call_frame frame_of(const struct tr_regs *g)
{
	return (struct tr_call_frame){
		.r15 = g->r15, .r14 = g->r14, .r13 = g->r13, .r12 = g->r12,
		.rbp = g->rbp, .rbx = g->rbx, .r9 = g->r9, .r8 = g->r8,
		.r10 = g->r10, .rdx = g->rdx, .rsi = g->rsi, .rdi = g->rdi,
		.rax = g->orig_rax, .after = g->rip, .flags = g->eflags,
	};
}

/* rcx and r11 of an instruction are live. */
static struct tr_call_frame insn_frame_of(const struct tr_regs *g)
{
	struct tr_call_frame f = frame_of(g);

	f.rax = g->rax;
	f.after = g->rcx;
	f.traced = g->r11;
	return f;
}

/* Will the injected code log each of the arguments the event has? */
static bool logs_args(const struct tr_rule *rule, const struct tr_event *ev)
{
	size_t n = 0;

	for (unsigned i = 0; i < rule->nmem; i++)
		if (n < ev->narg && rule->mem[i].what & TR_RULE_IN &&
		    rule->mem[i].arg == ev->arg[n].index)
			n++;
	return n == ev->narg;
}

static bool is_fit_insn(const struct tr_event *ev)
{
	const uint64_t after = (uint64_t)1 << TR_F_REGS_AFTER;

	return tr_event_get(ev, TR_F_ORIGIN) == TR_ORIGIN_BUFFERED &&
	       ev->has & after && !(ev->has & UNFIT & ~after) &&
	       tr_stub_can_do((enum tr_insn)tr_event_get(ev, TR_F_INSN));
}

static bool is_mapping(const struct tr_event *ev)
{
	const struct tr_sys *sys = tr_sys_lookup(ev->regs.orig_rax);

	return sys && sys->class == TR_SYS_MAP;
}

static bool is_fit(const struct tr_replay *r, const struct rtask *t,
		   const struct tr_event *ev)
{
	const uint64_t map = (uint64_t)1 << TR_F_MAP;
	const struct tr_rule *rule;
	struct tr_call_frame f = frame_of(&ev->regs);

	if (ev->type == TR_EV_INSN && ev->task == t->id)
		return is_fit_insn(ev);
	if (ev->type != TR_EV_SYSCALL || ev->task != t->id ||
	    tr_event_get(ev, TR_F_ORIGIN) != TR_ORIGIN_BUFFERED ||
	    ev->has & UNFIT & ~(is_mapping(ev) ? map : 0))
		return false;
	rule = tr_rule_find(r->control, ev->regs.orig_rax);
	return rule && tr_call_is_simple(&f) && logs_args(rule, ev);
}

static void put_insn(struct tr_buf *b, const struct tr_event *ev)
{
	const struct tr_regs *g = &ev->regs_after;
	struct tr_log_insn v = {g->rax, g->rbx, g->rcx, g->rdx};
	struct tr_feed_call fc = {
		.size = sizeof fc + sizeof v,
		.insn = (uint8_t)tr_event_get(ev, TR_F_INSN),
		.rsp = ev->regs.rsp,
		.frame = insn_frame_of(&ev->regs),
	};

	tr_buf_put(b, &fc, sizeof fc);
	tr_buf_put(b, &v, sizeof v);
}

static struct tr_feed_call call_of(const struct tr_event *ev)
{
	return (struct tr_feed_call){
		.size = sizeof(struct tr_feed_call),
		.result = (int64_t)tr_event_get(ev, TR_F_RESULT),
		.rsp = ev->regs.rsp,
		.frame = frame_of(&ev->regs),
	};
}

static void put_padded(struct tr_buf *b, const void *data, size_t n)
{
	static const uint8_t zero[8];

	tr_buf_put(b, data, n);
	tr_buf_put(b, zero, TR_ALIGN8(n) - n);
}

static void put_call(struct tr_buf *b, const struct tr_event *ev)
{
	struct tr_feed_call fc = call_of(ev);

	fc.nranges = (uint16_t)ev->nmem;
	for (size_t i = 0; i < ev->nmem; i++)
		fc.size += (uint32_t)(sizeof(struct tr_log_range) +
				      TR_ALIGN8(ev->mem[i].bytes.len));
	tr_buf_put(b, &fc, sizeof fc);
	for (size_t i = 0; i < ev->nmem; i++) {
		size_t len = ev->mem[i].bytes.len;
		struct tr_log_range rg = {.addr = ev->mem[i].addr,
					  .len = (uint32_t)len};

		tr_buf_put(b, &rg, sizeof rg);
		put_padded(b, ev->mem[i].bytes.data, len);
	}
}

/* A call that changes mappings: others are made in its place.  False when it
 * must stop. */
static bool put_mapping(struct tr_buf *b, const struct tr_event *ev,
			uint64_t *brk)
{
	struct tr_feed_call fc = call_of(ev);
	uint64_t data = TR_INJECT_FEED + b->len + sizeof fc;
	struct tr_batch calls;
	size_t bytes;

	if (!rep_mapping_plan(ev, brk, &calls))
		return false;
	bytes = calls.n * sizeof calls.call[0];
	data += bytes;
	for (unsigned i = 0; i < calls.n; i++)
		if (calls.call[i].nr == SYS_openat) /* the path */
			calls.call[i].args[1] += data - TR_REMOTE_DATA;
	fc.ncalls = (uint8_t)calls.n;
	fc.size += (uint32_t)(bytes + TR_ALIGN8(calls.data_len));
	tr_buf_put(b, &fc, sizeof fc);
	tr_buf_put(b, calls.call, bytes);
	put_padded(b, calls.data, calls.data_len);
	return true;
}

/* False when the feed has no room, or it is for none. */
static bool put_entry(struct tr_buf *b, const struct tr_event *ev,
		      uint64_t *brk)
{
	size_t at = b->len;
	bool put = true;

	if (ev->type == TR_EV_INSN)
		put_insn(b, ev);
	else if (is_mapping(ev))
		put = put_mapping(b, ev, brk);
	else
		put_call(b, ev);
	if (put && b->len <= TR_INJECT_FEED_SIZE)
		return true;
	b->len = at;
	return false;
}

/* The events of a run, as far as the feed has room: *n of them, the last of
 * which may have to be left to a stop. */
static int collect(struct tr_replay *r, struct rtask *t, uint32_t stream,
		   struct tr_buf *feed, size_t *n, struct tr_error *err)
{
	bool alone = rep_runs_alone(r, t);
	size_t last = 0; /* where the last entry begins */
	uint64_t number = 0, brk = t->as->brk;

	for (*n = 0; *n < RUN_MAX; ++*n) {
		const struct tr_event *ev;
		size_t at = feed->len;

		if (tr_feed_peek(r->feed, stream, *n, &ev, err) < 0)
			return -1;
		/* Others that share memory have their events in between. */
		if (ev && !alone && *n && ev->number != number + 1)
			ev = NULL;
		if (ev && is_fit(r, t, ev) && put_entry(feed, ev, &brk)) {
			last = at;
			number = ev->number;
			t->fed_time = ev->time;
			continue;
		}
		if (*n && !rep_stops_at(t, ev)) {
			feed->len = last;
			--*n;
		}
		return 0;
	}
	feed->len = last;
	--*n;
	return 0;
}

int rep_batch_fill(struct tr_replay *r, struct rtask *t, uint32_t stream,
		   struct tr_error *err)
{
	TR_AUTOBUF struct tr_buf feed = {0};
	uint64_t where[2] = {0};
	size_t n;

	if (!r->intercept || t->running || t->fed || t->answered ||
	    t->at_entry || t->stop_signal)
		return 0;
	if (collect(r, t, stream, &feed, &n, err) < 0)
		return -1;
	if (!n)
		return 0;
	where[1] = feed.len;
	if (tr_memory_write(t->tid, TR_INJECT_FEED, feed.data, feed.len) < 0 ||
	    tr_memory_write(t->tid, TR_CONTROL_AT(feed_at), where,
			    sizeof where) < 0)
		return tr_fail_errno(err, "task %u: feeding it", t->id);
	t->fed = n;
	return 0;
}

/* The log must be whole and the records of as many calls as it says. */
static bool is_whole(const struct tr_buf *log, uint64_t calls)
{
	size_t at = 0;

	for (; calls; calls--) {
		const struct tr_log_call *c = (const void *)(log->data + at);

		if (log->len - at < sizeof *c || c->size < sizeof *c ||
		    c->size % 8 || c->size > log->len - at)
			return false;
		at += c->size;
	}
	return at == log->len;
}

int rep_batch_take(struct rtask *t, struct tr_error *err)
{
	struct { uint64_t head, done, feed_at, feed_end; } c;
	static const uint64_t none[4];

	if (!t->fed)
		return 0;
	if (tr_memory_read(t->tid, TR_CONTROL_AT(head), &c, sizeof c) < 0)
		return tr_fail_errno(err, "task %u: reading its log", t->id);
	t->log.len = t->log_at = 0;
	if (c.head > TR_INJECT_LOG_SIZE || c.done > t->fed)
		goto damaged;
	if (tr_memory_read(t->tid, TR_INJECT_LOG,
			   tr_buf_reserve(&t->log, c.head), c.head) < 0 ||
	    tr_memory_write(t->tid, TR_CONTROL_AT(head), none, sizeof none) < 0)
		return tr_fail_errno(err, "task %u: reading its log", t->id);
	t->log.len = c.head;
	if (!is_whole(&t->log, c.done))
		goto damaged;
	t->fed = 0;
	t->answered = c.done;
	return 0;
damaged:
	return tr_fail(err, TR_EDIVERGED, "task %u: it changed the replayer's "
		       "memory", t->id);
}

/* The n-th thing the call read, or NULL. */
static const struct tr_log_range *input(const struct tr_log_call *c, size_t n)
{
	const uint8_t *p = (const uint8_t *)(c + 1), *end;

	end = (const uint8_t *)c + c->size;
	for (unsigned i = 0; i < c->nranges; i++) {
		const struct tr_log_range *rg = (const void *)p;

		if ((size_t)(end - p) < sizeof *rg ||
		    (size_t)(end - p) - sizeof *rg < rg->len)
			return NULL;
		if (n-- == 0)
			return rg;
		p += sizeof *rg + TR_ALIGN8(rg->len);
	}
	return NULL;
}

static enum applied check_input(struct tr_replay *r, struct rtask *t,
				const struct tr_arg *a,
				const struct tr_log_range *rg)
{
	if (!rg || rg->addr != a->addr)
		return rep_diverged(r, t, "argument %u at 0x%" PRIx64
				    " is not where it was", a->index, a->addr);
	if (rg->len != a->len || XXH3_64bits(rg + 1, rg->len) != a->hash)
		return rep_diverged(r, t, "the %" PRIu64 " bytes of argument %u "
				    "at 0x%" PRIx64 " differ", a->len,
				    a->index, a->addr);
	return AGREED;
}

/* What the program wrote to its output: argument 1 of all write calls. */
static void take_output(struct tr_replay *r, const struct tr_log_call *c)
{
	int64_t n = (int64_t)tr_event_get(&r->ev, TR_F_RESULT);
	const struct tr_log_range *rg;

	r->is_output = tr_event_has(&r->ev, TR_F_OUTPUT);
	for (size_t i = 0; r->is_output && (rg = input(c, i)); i++)
		if (rg->arg == 1 && n > 0)
			tr_buf_put(&r->written, rg + 1,
				   rg->len < (uint64_t)n ? rg->len : (size_t)n);
}

enum applied rep_batch_apply(struct tr_replay *r, struct rtask *t)
{
	const struct tr_log_call *c = (const void *)(t->log.data + t->log_at);
	enum applied how = AGREED;

	t->log_at += c->size;
	t->answered--;
	/* The injected code compares what goes into an instruction. */
	if (c->insn)
		return AGREED;
	if (is_mapping(&r->ev))
		rep_mapping_made(t, &r->ev);
	for (size_t i = 0; i < r->ev.narg && how == AGREED; i++)
		how = check_input(r, t, &r->ev.arg[i], input(c, i));
	if (how == AGREED)
		take_output(r, c);
	return how;
}
