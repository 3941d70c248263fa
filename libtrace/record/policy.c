/*
 * Scheduling policy: who of those that wait for a domain's turn gets it, and
 * when a turn is over.
 *
 * Every task that begins to wait gets a deadline, now plus what its priority
 * lets it wait, and the earliest deadline is served first.  So priorities
 * decide among those that have come at the same time, and nobody starves:
 * whoever waits long enough is before all who come later, however important.
 * That matters more than obedience, since the task that waits may be the one
 * the important one spins for.
 *
 * With chaos, decisions are random, in epochs: for a random number of
 * decisions a random half of the tasks runs only when none of the other half
 * can, and turns end at random, in some epochs often, in others hardly ever.
 * Races need both: one thread held up for long, and changes at an unlikely
 * place.  Random numbers come from the seed and the domain alone and are drawn
 * once a decision, so that the same order of calls gives the same schedule.
 */
#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"

#define MS UINT64_C(1000000)
#define LATENCY_NS (20 * MS) /* at nice 0 */
#define LATENCY_IDLE_NS (100 * MS)
#define EPOCH_BITS 9 /* an epoch lasts up to 2^9 decisions */
#define RATE_BITS 6  /* in it, turns end at 1 call in up to 2^6 */

void rec_update_priority(struct task *t)
{
	int nice;

	switch (sched_getscheduler(t->tid)) {
	case SCHED_FIFO:
	case SCHED_RR:
		t->latency = 0;
		return;
	case SCHED_IDLE:
		t->latency = LATENCY_IDLE_NS;
		return;
	}
	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)t->tid);
	t->latency = LATENCY_NS + (errno ? 0 : nice) * (int64_t)MS;
}

/* A turn is the shorter the longer the task may wait: at nice 0 it has the
 * length that was asked for. */
static uint64_t slice_of(const struct recorder *r, const struct task *t)
{
	uint64_t part = 2 * LATENCY_NS > t->latency + MS
		? 2 * LATENCY_NS - t->latency : MS;

	return r->options->slice_ns / 1000 * part / (LATENCY_NS / 1000);
}

void rec_policy_enqueue(struct domain *d, struct task *t)
{
	t->deadline = tr_now_ns() + t->latency;
	if (!t->yields)
		return;
	/* sched_yield(2): behind all who wait now. */
	for (const struct task *q = d->first; q; q = q->run_next)
		if (q != t && q->deadline >= t->deadline)
			t->deadline = q->deadline + 1;
}

/* Below n (xorshift64). */
static uint64_t next_below(uint64_t *state, uint64_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 8) % n;
}

static uint64_t random_below(struct domain *d, uint64_t n)
{
	return next_below(&d->random, n);
}

/* When a computation is interrupted is up to the clock: these numbers are
 * others than those of decisions, which they must not change. */
uint64_t rec_policy_patience(struct recorder *r, struct domain *d,
			     const struct task *t)
{
	uint64_t slice = slice_of(r, t);

	if (!r->moments)
		r->moments = r->options->seed | 1;
	if (d->random)
		return slice / 2 + next_below(&r->moments, slice + 1);
	return slice + r->options->max_defer_ns;
}

void rec_policy_seed(const struct recorder *r, struct domain *d)
{
	/* splitmix64's multiplier spreads small seeds; 0 is no state */
	if (r->options->chaos)
		d->random = (r->options->seed * 4096 + d->id + 1) *
			    UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static void decide_once(struct recorder *r, struct domain *d)
{
	if (d->epoch-- > 0)
		return;
	d->epoch = (unsigned)random_below(d, UINT64_C(2) <<
					  random_below(d, EPOCH_BITS));
	d->rate = 1u << random_below(d, RATE_BITS + 1);
	/* By ascending ids, however the list is kept. */
	for (struct task *t = r->tasks; t; t = t->next)
		if (t->as->domain == d)
			t->favoured = random_below(d, 2);
}

static struct task *random_task(struct recorder *r, struct domain *d)
{
	uint64_t favoured = 0, all = 0, n;

	decide_once(r, d);
	for (const struct task *q = d->first; q; q = q->run_next) {
		favoured += q->favoured;
		all++;
	}
	n = random_below(d, favoured ? favoured : all);
	for (struct task *q = d->first;; q = q->run_next)
		if ((!favoured || q->favoured) && n-- == 0)
			return q;
}

struct task *rec_policy_next(struct recorder *r, struct domain *d)
{
	struct task *best = d->first;

	if (d->random)
		return random_task(r, d);
	for (struct task *q = d->first; q; q = q->run_next)
		if (q->deadline < best->deadline)
			best = q;
	return best;
}

/* A task of lower priority gives way at its next call. */
static bool more_urgent_waits(const struct domain *d, const struct task *t)
{
	for (const struct task *q = d->first; q; q = q->run_next)
		if (q->latency < t->latency)
			return true;
	return false;
}

bool rec_policy_turn_is_over(struct recorder *r, struct domain *d,
			     const struct task *t)
{
	if (!d->first)
		return false;
	if (d->random) {
		decide_once(r, d);
		return t->yields || random_below(d, d->rate) == 0;
	}
	return t->yields || tr_now_ns() - d->slice > slice_of(r, t) ||
	       more_urgent_waits(d, t);
}
