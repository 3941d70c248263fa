/*
 * Synthetic events: the same number always gives the same event, so that a
 * test needs no copy of what it wrote.  Every type, every field, every limit
 * comes up.
 */
#ifndef TR_TESTS_SYNTHETIC_H
#define TR_TESTS_SYNTHETIC_H

#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/event.h"
#include "libtrace/format/page_list.h"
#include "libtrace/format/site_list.h"

/* An event and the memory its pointers lead to. */
struct synthetic {
	struct tr_event ev;
	struct tr_mem mem[8];
	struct tr_map map[8];
	struct tr_buf pages, sites;
	struct tr_arg arg[8];
	uint8_t pool[300 * 1024];
	size_t used;
	uint64_t state;
	bool small; /* few bytes an event, fields of the first version only */
};

static inline uint64_t syn_random(struct synthetic *s)
{
	/* splitmix64 */
	uint64_t z = s->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint64_t syn_below(struct synthetic *s, uint64_t n)
{
	return syn_random(s) % n;
}

/* Of any magnitude, small ones as likely as large ones. */
static inline uint64_t syn_number(struct synthetic *s)
{
	uint64_t v = syn_random(s);

	return v >> syn_below(s, 64);
}

/* A length or count below n. */
static inline size_t syn_size(struct synthetic *s, size_t n)
{
	size_t v = syn_below(s, n);

	return s->small ? v % 5 : v;
}

/* Compressible or not. */
static inline struct tr_bytes syn_bytes(struct synthetic *s, size_t n)
{
	uint8_t *p = s->pool + s->used;
	uint8_t mask = syn_below(s, 2) ? 0xff : 0x03;

	if (n > sizeof s->pool - s->used)
		n = sizeof s->pool - s->used;
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(syn_random(s) & mask);
	s->used += n;
	return (struct tr_bytes){p, n};
}

static inline struct tr_bytes syn_text(struct synthetic *s, size_t n)
{
	struct tr_bytes b = syn_bytes(s, n);
	uint8_t *p = s->pool + s->used - b.len;

	/* One in four is left as bytes that are not UTF-8. */
	if (syn_below(s, 4) == 0)
		return b;
	for (size_t i = 0; i < b.len; i++)
		p[i] = (uint8_t)("/abc\n\t\"\\x0 ~\x01z"[p[i] % 15]);
	return b;
}

static inline void syn_scalar(struct synthetic *s, enum tr_field f)
{
	uint64_t v = syn_number(s);

	switch (f) {
	case TR_F_PARENT:
	case TR_F_CHILD:
	case TR_F_CHILD_STREAM:
	case TR_F_FILE:
		v &= UINT32_MAX;
		break;
	case TR_F_PARTS:
		v %= TR_MAX_PARTS + 1;
		break;
	case TR_F_RESULT:
	case TR_F_MTIME:
		if (syn_below(s, 2))
			v = -v;
		break;
	default:
		v &= INT64_MAX; /* what JSON integers hold */
		break;
	}
	tr_event_set(&s->ev, f, v);
}

static inline void syn_regs(struct synthetic *s, struct tr_regs *r)
{
	uint64_t v[TR_NREGS];

	memset(v, 0, sizeof v);
	for (unsigned n = (unsigned)syn_below(s, TR_NREGS + 1); n > 0; n--) {
		size_t i = syn_below(s, TR_NREGS);

		v[i] = syn_number(s);
	}
	memcpy(r, v, sizeof v);
}

static inline void syn_mem(struct synthetic *s)
{
	size_t n = syn_size(s, 9);

	s->ev.mem = s->mem;
	s->ev.nmem = n;
	for (size_t i = 0; i < n; i++) {
		size_t len = syn_below(s, 40) ? syn_size(s, 200)
					      : syn_size(s, 20000);

		s->mem[i].bytes = syn_bytes(s, len);
		s->mem[i].addr = syn_below(s, 3) && i ?
			s->mem[i - 1].addr + s->mem[i - 1].bytes.len :
			syn_number(s) >> 1;
	}
	if (n)
		tr_event_mark(&s->ev, TR_F_MEM);
}

static inline void syn_map(struct synthetic *s)
{
	size_t n = syn_size(s, 9);

	s->ev.map = s->map;
	s->ev.nmap = n;
	for (size_t i = 0; i < n; i++) {
		struct tr_map *m = &s->map[i];

		m->start = syn_number(s) >> 1 & ~(uint64_t)4095;
		m->end = m->start + 4096 * (1 + syn_below(s, 100));
		m->prot = (uint32_t)syn_below(s, 8);
		m->flags = (uint32_t)syn_number(s);
		m->file = (uint32_t)syn_below(s, 3);
		m->offset = syn_number(s);
		m->name = syn_text(s, syn_size(s, 60));
	}
	if (n)
		tr_event_mark(&s->ev, TR_F_MAP);
}

static inline void syn_arg(struct synthetic *s)
{
	size_t n = syn_size(s, 7);

	s->ev.arg = s->arg;
	s->ev.narg = n;
	for (size_t i = 0; i < n; i++) {
		struct tr_arg *a = &s->arg[i];

		a->index = (uint8_t)syn_below(s, 6);
		a->is_string = (uint8_t)syn_below(s, 2);
		a->addr = syn_number(s);
		a->hash = syn_random(s);
		a->bytes = syn_text(s, syn_size(s, a->is_string
						? TR_ARG_STRING_MAX + 1
						: TR_ARG_PREFIX_MAX + 1));
		a->len = a->bytes.len + syn_below(s, 1000);
	}
	if (n)
		tr_event_mark(&s->ev, TR_F_ARG);
}

static inline void syn_structs(struct synthetic *s)
{
	struct tr_event *ev = &s->ev;

	/* Types that a reader may skip hold no registers. */
	if (ev->type < 128 && syn_below(s, 2)) {
		syn_regs(s, &ev->regs);
		tr_event_mark(ev, TR_F_REGS);
	}
	if (ev->type < 128 && syn_below(s, 4) == 0) {
		syn_regs(s, &ev->regs_after);
		tr_event_mark(ev, TR_F_REGS_AFTER);
	}
	if (syn_below(s, 20) == 0) {
		ev->xstate = syn_bytes(s, syn_size(s, 3000));
		tr_event_mark(ev, TR_F_XSTATE);
	}
	if (syn_below(s, 10) == 0) {
		ev->siginfo = syn_bytes(s, 128);
		tr_event_mark(ev, TR_F_SIGINFO);
	}
	if (syn_below(s, 5) == 0) {
		ev->text = syn_text(s, syn_size(s, 300));
		tr_event_mark(ev, TR_F_TEXT);
	}
	if (syn_below(s, 10) == 0) {
		ev->sha256 = syn_bytes(s, 32);
		tr_event_mark(ev, TR_F_SHA256);
	}
}

/* Lists of a state; younger than the golden trace, which is small. */
static inline void syn_state(struct synthetic *s)
{
	size_t n = syn_size(s, 20);

	if (n) {
		s->ev.digests = syn_bytes(s, n * 8);
		tr_event_mark(&s->ev, TR_F_DIGESTS);
	}
	s->pages.len = 0;
	for (uint64_t next = 0, i = 0; i < n; i++) {
		struct tr_page_hash page = {
			next + 4096 * syn_below(s, 1u << (i + 1)),
			syn_random(s)};

		tr_page_list_put(&s->pages, &next, &page);
	}
	if (n) {
		s->ev.page_hashes = (struct tr_bytes){s->pages.data, s->pages.len};
		tr_event_mark(&s->ev, TR_F_PAGE_HASHES);
	}
}

static inline void syn_known(struct synthetic *s)
{
	size_t n = syn_size(s, 20);

	s->sites.len = 0;
	for (uint64_t next = 0, i = 0; i < n; i++) {
		struct tr_listed_site site = {
			.at = next + syn_below(s, 1u << (i + 1)),
			.insn = (enum tr_insn)syn_below(s, 8),
			.length = (uint8_t)(1 + syn_below(s, 15)),
			.hole = syn_below(s, 1u << 30),
		};

		if (syn_below(s, 2))
			site.via = site.at + 1 + syn_below(s, 99);
		tr_site_list_put(&s->sites, &next, &site);
	}
	s->ev.known = (struct tr_bytes){s->sites.data, s->sites.len};
	if (n)
		tr_event_mark(&s->ev, TR_F_KNOWN);
}

/* The event numbered `number`, or its `more` record number `part` (from 1). */
static inline const struct tr_event *synthesize(struct synthetic *s,
						uint64_t number, unsigned part,
						uint32_t streams)
{
	/* Not the table: the golden trace must not change with it. */
	static const uint8_t types[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 128,
					12};
	static const uint8_t scalars[] = {
#define X(NAME, tag, name, sign, form) tag,
		TR_SCALAR_FIELDS(X)
#undef X
	};

	memset(&s->ev, 0, sizeof s->ev);
	s->used = 0;
	s->state = number;
	s->ev.number = number;
	s->ev.stream = (uint32_t)syn_below(s, streams);
	s->ev.task = (uint32_t)(s->ev.stream * 3 + syn_below(s, 3));
	s->state += (uint64_t)part << 40;
	s->ev.type = (enum tr_event_type)types[syn_below(s, sizeof types)];
	if (part)
		s->ev.type = TR_EV_MORE;
	s->ev.time = number * 1000 + syn_below(s, 3000);
	for (size_t i = 0; i < sizeof scalars && scalars[i] <= 47; i++)
		if ((!s->small || scalars[i] <= 32) && syn_below(s, 4) == 0)
			syn_scalar(s, (enum tr_field)scalars[i]);
	syn_structs(s);
	if (syn_below(s, 2))
		syn_mem(s);
	if (syn_below(s, 4) == 0)
		syn_map(s);
	if (syn_below(s, 4) == 0)
		syn_arg(s);
	if (!s->small && syn_below(s, 8) == 0)
		syn_state(s);
	if (!s->small && syn_below(s, 8) == 0)
		syn_known(s);
	return &s->ev;
}

/* How many `more` records the event numbered `number` has. */
static inline unsigned syn_parts(uint64_t number)
{
	return number % 7 == 3 ? (unsigned)(number % 5) : 0;
}

#endif
