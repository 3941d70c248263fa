/*
 * System calls made in the program's stead: recorded in the log, or, while
 * replaying, answered from the feed.
 *
 * Freestanding: no data, no library, general registers only.  A fault in here
 * before the call is made (the program gave a bad pointer) makes the tracer
 * send the task to tr_calls_go_traced.
 */
#if defined(__GNUC__) && !defined(__clang__)
/* No constants in memory, and no calls of memcpy in place of loops. */
#pragma GCC optimize("no-tree-slp-vectorize", \
		     "no-tree-loop-distribute-patterns")
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/format/event.h"
#include "libtrace/intercept/abi.h"

/* enter.S: the one place where the program's calls are made. */
int64_t tr_calls_make(const struct tr_call_frame *f);
/* From enter.S: an instruction, or that it should trap. */
struct stub_tail {
	uint64_t insn, after;
};
void tr_calls_do_insn(struct tr_call_frame *f, const struct stub_tail *tail);
/* From enter.S. 0: done, the result is in f->rax; 1: let it be traced; 2: done,
 * and the tracer is to look at it. */
int tr_calls_call(struct tr_call_frame *f);

#define CONTROL ((volatile struct tr_calls_control *)TR_INJECT_CONTROL)

#define STRING_MAX 4096u

static inline void copy(void *to, const void *from, uint64_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : :
			 "memory");
}

static inline uint64_t arg_of(const struct tr_call_frame *f, unsigned i)
{
	switch (i) {
	case 0:
		return f->rdi;
	case 1:
		return f->rsi;
	case 2:
		return f->rdx;
	case 3:
		return f->r10;
	case 4:
		return f->r8;
	default:
		return f->r9;
	}
}

/* An argument as a count: 32-bit ones have garbage above. */
static inline uint64_t count_of(const struct tr_call_frame *f, unsigned arg,
				unsigned type)
{
	uint64_t v = arg_of(f, arg);

	if (type == TR_COUNT_INT)
		return (int32_t)v < 0 ? 0 : (uint32_t)v;
	return type == TR_COUNT_UINT ? (uint32_t)v : v;
}

/* The bytes a memory argument may come to, at most. */
static inline uint64_t most(const struct tr_call_frame *f,
			    const volatile struct tr_rule_mem *m)
{
	uint64_t n;

	if (!arg_of(f, m->arg))
		return 0;
	if (m->what & TR_RULE_STRING)
		return STRING_MAX;
	if (m->size == TR_RULE_CONST)
		return m->scale;
	if (m->size == TR_RULE_COMMAND)
		return tr_ioctl_size((uint32_t)f->rsi);
	n = count_of(f, m->count, m->count_type);
	return n > TR_LOG_CALL_MAX ? n : n * m->scale;
}

/* The record being written. */
struct writing {
	struct tr_log_call *call;
	uint64_t at; /* address of the next range */
};

static inline void put_range(struct writing *w, unsigned arg, unsigned what,
			     uint64_t addr, uint64_t len)
{
	struct tr_log_range *rg = (struct tr_log_range *)w->at;

	rg->addr = addr;
	rg->len = (uint32_t)len;
	rg->arg = (uint8_t)arg;
	rg->what = (uint8_t)what;
	copy(rg + 1, (const void *)addr, len);
	w->at += sizeof *rg + TR_ALIGN8(len);
	w->call->nranges++;
}

/* Length of a string, STRING_MAX when it is not shorter. */
static inline uint64_t string_length(uint64_t addr)
{
	const char *s = (const char *)addr;
	uint64_t n = 0;

	while (n < STRING_MAX && s[n])
		n++;
	return n;
}

/* Could the path be the memory of a process?  The recorder must know. */
static inline bool names_memory(uint64_t addr, uint64_t n)
{
	const char *end = (const char *)(addr + n);

	return n >= 3 && end[-3] == 'm' && end[-2] == 'e' && end[-1] == 'm';
}

/* False when a string is too long, or is one the recorder looks for. */
static inline bool put_input(struct writing *w, const struct tr_call_frame *f,
			     const volatile struct tr_rule *rule)
{
	for (unsigned i = 0; i < rule->nmem; i++) {
		const volatile struct tr_rule_mem *m = &rule->mem[i];
		uint64_t addr = arg_of(f, m->arg), n;

		if (!addr || !(m->what & TR_RULE_IN))
			continue;
		n = m->what & TR_RULE_STRING ? string_length(addr) : most(f, m);
		if (m->what & TR_RULE_STRING &&
		    (n == STRING_MAX || names_memory(addr, n)))
			return false;
		if (n || m->what & TR_RULE_STRING)
			put_range(w, m->arg,
				  m->what & (TR_RULE_IN | TR_RULE_STRING),
				  addr, n);
	}
	return true;
}

static inline bool is_error(int64_t result)
{
	return result < 0 && result >= -4095;
}

static inline void put_output(struct writing *w, const struct tr_call_frame *f,
			      const volatile struct tr_rule *rule,
			      int64_t result)
{
	bool failed = is_error(result);

	for (unsigned i = 0; i < rule->nmem; i++) {
		const volatile struct tr_rule_mem *m = &rule->mem[i];
		uint64_t n;

		if (!arg_of(f, m->arg) || !(m->what & TR_RULE_OUT) ||
		    (failed && !(m->what & TR_RULE_ALWAYS)))
			continue;
		n = most(f, m);
		if (m->size == TR_RULE_RESULT) {
			uint64_t got = result > 0 ? (uint64_t)result * m->scale
						  : 0;

			n = got < n ? got : n;
		}
		if (n)
			put_range(w, m->arg, TR_RULE_OUT, arg_of(f, m->arg), n);
	}
}

static inline void put_frame(struct writing *w, const struct tr_call_frame *f,
			     unsigned insn)
{
	w->call = (struct tr_log_call *)(TR_INJECT_LOG + CONTROL->head);
	w->call->nranges = 0;
	w->call->output = TR_FD_UNKNOWN;
	w->call->insn = (uint8_t)insn;
	w->call->rsp = CONTROL->rsp;
	for (unsigned i = 0; i < TR_FRAME_WORDS; i++)
		((uint64_t *)&w->call->frame)[i] = ((const uint64_t *)f)[i];
	w->at = (uint64_t)(w->call + 1);
}

/* Begin a record; false when the call is none for the log. */
static inline bool begin(struct writing *w, const struct tr_call_frame *f,
			 const volatile struct tr_rule *rule)
{
	uint64_t need = sizeof *w->call;

	for (unsigned i = 0; i < rule->nmem; i++) {
		const volatile struct tr_rule_mem *m = &rule->mem[i];
		uint64_t n = most(f, m);

		if (n > TR_LOG_CALL_MAX ||
		    (m->what & TR_RULE_NULL_ONLY && arg_of(f, m->arg)))
			return false;
		/* Once before the call and once after it. */
		need += 2 * (sizeof(struct tr_log_range) + TR_ALIGN8(n));
	}
	if (need > TR_INJECT_LOG_SIZE - CONTROL->head)
		return false;
	put_frame(w, f, 0);
	return put_input(w, f, rule);
}

static inline void commit(const struct writing *w, int64_t result)
{
	w->call->result = result;
	w->call->size = (uint32_t)(w->at - (uint64_t)w->call);
	CONTROL->done++;
	CONTROL->head += w->call->size;
}

static inline const volatile struct tr_rule *rule_of(uint64_t nr)
{
	unsigned i = nr < TR_RULES_NR ? CONTROL->rule_of[nr] : 0;

	return i ? &CONTROL->rule[i - 1] : NULL;
}

/* What is known of the descriptor written to; -1 when it is not known whether
 * that is anything the recording takes note of. */
static inline int written_to(const struct tr_call_frame *f)
{
	uint32_t fd = (uint32_t)f->rdi;

	if (fd >= TR_FDS_MAX ||
	    CONTROL->fd[fd] == TR_FD_UNKNOWN)
		return -1;
	return CONTROL->fd[fd];
}

static inline void forget_fd(uint64_t fd)
{
	if ((uint32_t)fd < TR_FDS_MAX)
		CONTROL->fd[(uint32_t)fd] = TR_FD_UNKNOWN;
}

static inline int record(struct tr_call_frame *f,
			 const volatile struct tr_rule *rule)
{
	bool shown = tr_call_is_shown(f);
	int output = TR_FD_OTHER;
	struct writing w;

	if ((rule->flags & TR_RULE_BLOCKS && !CONTROL->alone) || !tr_call_is_simple(f))
		return 1;
	if (rule->flags & TR_RULE_WRITES_FD)
		output = written_to(f);
	if (output < 0 || !begin(&w, f, rule))
		return 1;
	w.call->output = (uint8_t)output;
	f->rax = (uint64_t)tr_calls_make(f);
	put_output(&w, f, rule, (int64_t)f->rax);
	commit(&w, (int64_t)f->rax);
	if (rule->flags & TR_RULE_FORGETS_FD0)
		forget_fd(f->rdi);
	if (rule->flags & TR_RULE_FORGETS_FD1)
		forget_fd(f->rsi);
	return shown && !is_error((int64_t)f->rax) ? 2 : 0;
}

static inline bool is_expected(const struct tr_feed_call *fc,
			       const struct tr_call_frame *f, unsigned insn)
{
	const uint64_t *a = (const uint64_t *)&fc->frame;
	const uint64_t *b = (const uint64_t *)f;
	uint64_t differ = (fc->rsp ^ CONTROL->rsp) | (fc->insn ^ insn);

	for (unsigned i = 0; i < TR_FRAME_WORDS; i++)
		if (insn || i != offsetof(struct tr_call_frame, traced) / 8)
			differ |= a[i] ^ b[i];
	return differ == 0;
}

/* Make the calls in place of the recorded one; false when one does not do what
 * it should: the tracer will make it again, and tell. */
static inline bool make_instead(const struct tr_feed_call *fc)
{
	const struct tr_inject_call *c = (const struct tr_inject_call *)(fc + 1);
	struct tr_call_frame g;

	for (unsigned i = 0; i < fc->ncalls; i++, c++) {
		g.rax = c->nr;
		g.rdi = c->args[0];
		g.rsi = c->args[1];
		g.rdx = c->args[2];
		g.r10 = c->args[3];
		g.r8 = c->args[4];
		g.r9 = c->args[5];
		if (tr_calls_make(&g) != c->result)
			return false;
	}
	return true;
}

static inline int replay(struct tr_call_frame *f,
			 const volatile struct tr_rule *rule)
{
	const struct tr_feed_call *fc =
		(const struct tr_feed_call *)(TR_INJECT_FEED + CONTROL->feed_at);
	uint64_t at = (uint64_t)(fc + 1);
	struct writing w;

	if (CONTROL->feed_at == CONTROL->feed_end || !is_expected(fc, f, 0) ||
	    !begin(&w, f, rule) || !make_instead(fc))
		return 1;
	at += fc->ncalls * sizeof(struct tr_inject_call);
	for (uint32_t i = 0; i < fc->nranges; i++) {
		const struct tr_log_range *rg = (const struct tr_log_range *)at;

		copy((void *)rg->addr, rg + 1, rg->len);
		at += sizeof *rg + TR_ALIGN8(rg->len);
	}
	f->rax = (uint64_t)fc->result;
	commit(&w, fc->result);
	CONTROL->feed_at += fc->size;
	return 0;
}

int tr_calls_call(struct tr_call_frame *f)
{
	const volatile struct tr_rule *rule = rule_of(f->rax);

	if (CONTROL->trace_next) {
		CONTROL->trace_next = 0;
		return 1;
	}
	if (!rule)
		return 1;
	switch (CONTROL->mode) {
	case TR_CALLS_RECORD:
		return record(f, rule);
	case TR_CALLS_REPLAY:
		return replay(f, rule);
	default:
		return 1;
	}
}

static inline void execute(uint64_t insn, const struct tr_call_frame *f,
			   struct tr_log_insn *v)
{
	uint32_t a = (uint32_t)f->rax, b = 0, c = (uint32_t)f->after, d = 0;

	switch (insn) {
	case TR_INSN_CPUID:
		__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		*v = (struct tr_log_insn){a, b, c, d};
		return;
	case TR_INSN_RDTSCP:
		__asm__ volatile("rdtscp" : "=a"(a), "=d"(d), "=c"(c));
		*v = (struct tr_log_insn){a, f->rbx, c, d};
		return;
	default:
		__asm__ volatile("rdtsc" : "=a"(a), "=d"(d));
		*v = (struct tr_log_insn){a, f->rbx, f->after, d};
		return;
	}
}

/* What the instruction gives, now or as recorded; false: let it trap. */
static inline bool value_of(uint64_t insn, const struct tr_call_frame *f,
			    struct tr_log_insn *v)
{
	const struct tr_feed_call *fc =
		(const struct tr_feed_call *)(TR_INJECT_FEED + CONTROL->feed_at);

	switch (CONTROL->mode) {
	case TR_CALLS_RECORD:
		execute(insn, f, v);
		return true;
	case TR_CALLS_REPLAY:
		if (CONTROL->feed_at == CONTROL->feed_end ||
		    !is_expected(fc, f, (unsigned)insn))
			return false;
		*v = *(const struct tr_log_insn *)(fc + 1);
		CONTROL->feed_at += fc->size;
		return true;
	default:
		return false;
	}
}

static inline bool do_insn(struct tr_call_frame *f,
			   const struct stub_tail *tail)
{
	struct tr_log_insn *v;
	struct writing w;

	if (sizeof *w.call + sizeof *v > TR_INJECT_LOG_SIZE - CONTROL->head)
		return false;
	put_frame(&w, f, (unsigned)tail->insn);
	v = (struct tr_log_insn *)w.at;
	if (!value_of(tail->insn, f, v))
		return false;
	w.at += sizeof *v;
	commit(&w, (int64_t)tail->after);
	f->rax = v->rax;
	f->rbx = v->rbx;
	f->after = v->rcx;
	f->rdx = v->rdx;
	return true;
}

void tr_calls_do_insn(struct tr_call_frame *f, const struct stub_tail *tail)
{
	CONTROL->phase = TR_PHASE_INSN;
	CONTROL->home = do_insn(f, tail) ? tail->after
		: (uint64_t)tail - TR_LONG_STUB_TAIL + TR_INSN_STUB_TRAP;
	CONTROL->phase = TR_PHASE_OUT;
}
