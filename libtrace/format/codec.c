/*
 * The record codec.  Both directions are in one file, each encoding function
 * next to the function that undoes it.
 */
#include "libtrace/format/codec.h"

#include <inttypes.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/limits.h"

#define PAGE_SHIFT 12

#define KIND_VALUE 0u
#define KIND_BYTES 1u

#define FIRST_COMPAT_TAG 64

#define BIT(n) ((uint64_t)1 << (n))

#define X(NAME, tag, name, sign, form) | BIT(tag)
static const uint64_t scalars = 0 TR_SCALAR_FIELDS(X);
#undef X
#define X(NAME, tag, name) | BIT(tag)
static const uint64_t structs = 0 TR_STRUCT_FIELDS(X);
#undef X
#define SIGN_U(tag) 0
#define SIGN_S(tag) BIT(tag)
#define X(NAME, tag, name, sign, form) | SIGN_##sign(tag)
static const uint64_t signed_scalars = 0 TR_SCALAR_FIELDS(X);
#undef X

/*
 * ---- Registers of each task ----
 */

void tr_codec_begin(struct tr_codec *c, uint64_t first)
{
	c->number = first;
	c->time = 0;
	if (c->ntasks == 0)
		return;
	for (size_t i = 0; i < c->cap; i++)
		c->tasks[i].key = 0;
	c->ntasks = 0;
}

void tr_codec_release(struct tr_codec *c)
{
	free(c->tasks);
	*c = (struct tr_codec){0};
}

bool tr_codec_full(const struct tr_codec *c)
{
	return c->ntasks >= TR_MAX_CHUNK_TASKS;
}

/* The task's slot, or the free one where it would go. */
static struct tr_codec_task *find_slot(const struct tr_codec *c, uint64_t key)
{
	size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 32);

	for (;; i++) {
		struct tr_codec_task *t = &c->tasks[i & (c->cap - 1)];

		if (t->key == key || t->key == 0)
			return t;
	}
}

static void grow_table(struct tr_codec *c)
{
	struct tr_codec old = *c;

	c->cap = old.cap ? 2 * old.cap : 4;
	c->tasks = tr_alloc(c->cap * sizeof *c->tasks);
	for (size_t i = 0; i < old.cap; i++)
		if (old.tasks[i].key)
			*find_slot(c, old.tasks[i].key) = old.tasks[i];
	free(old.tasks);
}

/* The task's registers so far; all zero for one not met in this chunk. */
static const uint64_t *last_regs(const struct tr_codec *c, uint32_t task)
{
	static const uint64_t zero[TR_NREGS];
	const struct tr_codec_task *t;

	if (c->ntasks == 0)
		return zero;
	t = find_slot(c, (uint64_t)task + 1);
	return t->key ? t->regs : zero;
}

static void keep_regs(struct tr_codec *c, uint32_t task,
		      const struct tr_regs *regs)
{
	struct tr_codec_task *t;

	if (2 * c->ntasks >= c->cap)
		grow_table(c);
	t = find_slot(c, (uint64_t)task + 1);
	if (t->key == 0) {
		t->key = (uint64_t)task + 1;
		c->ntasks++;
	}
	memcpy(t->regs, regs, sizeof t->regs);
}

/*
 * ---- Integers, quicker than those of buf.h for what is mostly one byte ----
 */

#define VARINT_MAX 10

static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static inline bool get_varint(struct tr_span *s, uint64_t *v)
{
	if (s->p < s->end && *s->p < 0x80) {
		*v = *s->p++;
		return true;
	}
	return tr_span_varint(s, v);
}

static bool get_u32(struct tr_span *s, uint32_t *v)
{
	uint64_t x;

	if (!get_varint(s, &x) || x > UINT32_MAX)
		return false;
	*v = (uint32_t)x;
	return true;
}

static size_t varint_size(uint64_t v)
{
	return (size_t)(70 - __builtin_clzll(v | 1)) / 7;
}

static uint8_t *put_raw(uint8_t *p, const void *data, size_t n)
{
	if (n)
		memcpy(p, data, n);
	return p + n;
}

static struct tr_bytes rest_of(const struct tr_span *s)
{
	return (struct tr_bytes){s->p, tr_span_left(s)};
}

static uint8_t *put_key(uint8_t *p, unsigned tag, unsigned kind)
{
	return put_varint(p, (uint64_t)tag << 1 | kind);
}

/*
 * ---- Fields ----
 */

static uint8_t *put_scalars(uint8_t *p, const struct tr_event *ev,
			    uint64_t which)
{
	for (uint64_t m = ev->has & scalars & which; m; m &= m - 1) {
		unsigned tag = (unsigned)__builtin_ctzll(m);
		uint64_t v = ev->v[tag];

		p = put_key(p, tag, KIND_VALUE);
		if (signed_scalars >> tag & 1)
			v = tr_zigzag((int64_t)v);
		p = put_varint(p, v);
	}
	return p;
}

static uint8_t *put_bytes(uint8_t *p, const struct tr_event *ev,
			  enum tr_field tag, const struct tr_bytes *b)
{
	if (!tr_event_has(ev, tag))
		return p;
	p = put_key(p, tag, KIND_BYTES);
	p = put_varint(p, b->len);
	return put_raw(p, b->data, b->len);
}

/* Bitmap and differences. */
#define REGS_ROOM ((size_t)VARINT_MAX * (TR_NREGS + 1))

static uint8_t *put_regs(uint8_t *p, enum tr_field tag, const uint64_t *regs,
			 const uint64_t *base)
{
	uint8_t body[REGS_ROOM], *end;
	uint64_t changed = 0;

	for (unsigned i = 0; i < TR_NREGS; i++)
		changed |= (uint64_t)(regs[i] != base[i]) << i;
	end = put_varint(body, changed);
	for (uint64_t m = changed; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctzll(m);

		end = put_varint(end, tr_zigzag((int64_t)(regs[i] - base[i])));
	}
	p = put_key(p, tag, KIND_BYTES);
	p = put_varint(p, (uint64_t)(end - body));
	return put_raw(p, body, (size_t)(end - body));
}

static bool get_regs(struct tr_span s, uint64_t *regs, const uint64_t *base)
{
	uint64_t changed;

	if (!get_varint(&s, &changed) || changed >> TR_NREGS)
		return false;
	memcpy(regs, base, TR_NREGS * sizeof *regs);
	for (; changed; changed &= changed - 1) {
		uint64_t diff;

		if (!get_varint(&s, &diff))
			return false;
		regs[__builtin_ctzll(changed)] += (uint64_t)tr_unzigzag(diff);
	}
	return tr_span_left(&s) == 0;
}

/* An address, as the distance from where the piece before it ended. */
static uint8_t *put_mem(uint8_t *p, const struct tr_mem *m, uint64_t *at)
{
	uint64_t distance = tr_zigzag((int64_t)(m->addr - *at));

	p = put_key(p, TR_F_MEM, KIND_BYTES);
	p = put_varint(p, varint_size(distance) + m->bytes.len);
	p = put_varint(p, distance);
	*at = m->addr + m->bytes.len;
	return put_raw(p, m->bytes.data, m->bytes.len);
}

static bool get_mem(struct tr_span s, struct tr_mem *m, uint64_t at)
{
	uint64_t distance;

	if (!get_varint(&s, &distance))
		return false;
	m->addr = at + (uint64_t)tr_unzigzag(distance);
	m->bytes = rest_of(&s);
	return true;
}

#define MAP_ROOM ((size_t)6 * VARINT_MAX)

static uint8_t *put_map(uint8_t *p, const struct tr_map *m, uint64_t *at)
{
	uint8_t body[MAP_ROOM], *end = body;
	int64_t distance = (int64_t)(m->start >> PAGE_SHIFT) -
			   (int64_t)(*at >> PAGE_SHIFT);

	end = put_varint(end, tr_zigzag(distance));
	end = put_varint(end, (m->end - m->start) >> PAGE_SHIFT);
	end = put_varint(end, m->prot);
	end = put_varint(end, m->flags);
	end = put_varint(end, m->file);
	end = put_varint(end, m->offset);
	*at = m->end;
	p = put_key(p, TR_F_MAP, KIND_BYTES);
	p = put_varint(p, (uint64_t)(end - body) + m->name.len);
	p = put_raw(p, body, (size_t)(end - body));
	return put_raw(p, m->name.data, m->name.len);
}

static bool get_map(struct tr_span s, struct tr_map *m, uint64_t at)
{
	const uint64_t pages = UINT64_MAX >> PAGE_SHIFT;
	uint64_t distance, start, n;

	if (!get_varint(&s, &distance) || !get_varint(&s, &n) ||
	    !get_u32(&s, &m->prot) || !get_u32(&s, &m->flags) ||
	    !get_u32(&s, &m->file) || !get_varint(&s, &m->offset))
		return false;
	start = (at >> PAGE_SHIFT) + (uint64_t)tr_unzigzag(distance);
	if (start > pages || n > pages - start)
		return false;
	m->start = start << PAGE_SHIFT;
	m->end = (start + n) << PAGE_SHIFT;
	m->name = rest_of(&s);
	return true;
}

#define ARG_ROOM ((size_t)1 + 2 * VARINT_MAX + 8)

static uint8_t *put_arg(uint8_t *p, const struct tr_arg *a)
{
	uint8_t body[ARG_ROOM], *end = body;

	end = put_varint(end, (unsigned)a->index << 1 | a->is_string);
	end = put_varint(end, a->addr);
	end = put_varint(end, a->len);
	tr_put_le64(end, a->hash);
	end += 8;
	p = put_key(p, TR_F_ARG, KIND_BYTES);
	p = put_varint(p, (uint64_t)(end - body) + a->bytes.len);
	p = put_raw(p, body, (size_t)(end - body));
	return put_raw(p, a->bytes.data, a->bytes.len);
}

static bool get_arg(struct tr_span s, struct tr_arg *a)
{
	struct tr_span hash;
	uint64_t head;

	if (!get_varint(&s, &head) || head > (5 << 1 | 1) ||
	    !get_varint(&s, &a->addr) || !get_varint(&s, &a->len) ||
	    !tr_span_take(&s, 8, &hash))
		return false;
	a->index = (uint8_t)(head >> 1);
	a->is_string = head & 1;
	a->hash = tr_get_le64(hash.p);
	a->bytes = rest_of(&s);
	return true;
}

/*
 * ---- Encoding a record ----
 */

/* Key (2 bytes at most) and length of a field with bytes. */
#define FIELD_HEAD ((size_t)2 + VARINT_MAX)

/* Bytes of variable length in the event: what its size depends on. */
static uint64_t bulk_of(const struct tr_event *ev)
{
	uint64_t n = 0;

	if (tr_event_has(ev, TR_F_XSTATE))
		n += ev->xstate.len;
	if (tr_event_has(ev, TR_F_TEXT))
		n += ev->text.len;
	if (tr_event_has(ev, TR_F_DIGESTS))
		n += ev->digests.len;
	if (tr_event_has(ev, TR_F_PAGE_HASHES))
		n += ev->page_hashes.len;
	if (tr_event_has(ev, TR_F_BLOCKS))
		n += ev->blocks.len;
	if (tr_event_has(ev, TR_F_KNOWN))
		n += ev->known.len;
	for (size_t i = 0; i < ev->nmem; i++)
		n += ev->mem[i].bytes.len;
	for (size_t i = 0; i < ev->nmap; i++)
		n += ev->map[i].name.len;
	for (size_t i = 0; i < ev->narg; i++)
		n += ev->arg[i].bytes.len;
	return n;
}

/* No record is larger than this with bulk of that size. */
static size_t room_for(const struct tr_event *ev, size_t bulk)
{
	return 1 + 4 * VARINT_MAX + TR_NSCALARS * FIELD_HEAD +
	       2 * (FIELD_HEAD + REGS_ROOM) + 8 * FIELD_HEAD + 128 + 32 +
	       ev->nmem * (FIELD_HEAD + VARINT_MAX) +
	       ev->nmap * (FIELD_HEAD + MAP_ROOM) +
	       ev->narg * (FIELD_HEAD + ARG_ROOM) + bulk;
}

static uint8_t *put_fields(uint8_t *p, const struct tr_event *ev,
			   const uint64_t *regs, const uint64_t *base)
{
	uint64_t at = 0;

	p = put_scalars(p, ev, BIT(TR_F_REGS) - 1);
	if (tr_event_has(ev, TR_F_REGS)) {
		p = put_regs(p, TR_F_REGS, regs, base);
		base = regs;
	}
	if (tr_event_has(ev, TR_F_REGS_AFTER)) {
		uint64_t after[TR_NREGS];

		memcpy(after, &ev->regs_after, sizeof after);
		p = put_regs(p, TR_F_REGS_AFTER, after, base);
	}
	p = put_bytes(p, ev, TR_F_XSTATE, &ev->xstate);
	p = put_bytes(p, ev, TR_F_SIGINFO, &ev->siginfo);
	p = put_bytes(p, ev, TR_F_TEXT, &ev->text);
	p = put_bytes(p, ev, TR_F_SHA256, &ev->sha256);
	for (size_t i = 0; i < ev->nmem; i++)
		p = put_mem(p, &ev->mem[i], &at);
	at = 0;
	for (size_t i = 0; i < ev->nmap; i++)
		p = put_map(p, &ev->map[i], &at);
	for (size_t i = 0; i < ev->narg; i++)
		p = put_arg(p, &ev->arg[i]);
	p = put_bytes(p, ev, TR_F_DIGESTS, &ev->digests);
	p = put_bytes(p, ev, TR_F_PAGE_HASHES, &ev->page_hashes);
	p = put_scalars(p, ev, BIT(TR_F_VIA));
	p = put_bytes(p, ev, TR_F_BLOCKS, &ev->blocks);
	p = put_scalars(p, ev, BIT(TR_F_TRANSLATED));
	return put_bytes(p, ev, TR_F_KNOWN, &ev->known);
}

/* Put type and length before a body that was written after a gap of
 * 1 + guess bytes; returns the record's size. */
static size_t put_head(uint8_t *start, unsigned type, size_t guess, size_t body)
{
	size_t n = varint_size(body);

	if (n != guess)
		memmove(start + 1 + n, start + 1 + guess, body);
	*start = (uint8_t)type;
	put_varint(start + 1, body);
	return 1 + n + body;
}

static int refuse(struct tr_error *err, const struct tr_event *ev,
		  const char *why)
{
	return tr_fail(err, TR_EINVAL, "event %" PRIu64 " (type %u): %s",
		       ev->number, (unsigned)ev->type, why);
}

static const char *not_encodable(const struct tr_codec *c,
				 const struct tr_event *ev)
{
	if (!tr_event_type_name(ev->type))
		return "unknown type";
	if (ev->has & ~(scalars | structs))
		return "unknown field";
	if (ev->number < c->number)
		return "numbers must not decrease";
	if (tr_codec_full(c))
		return "too many tasks in a chunk";
	if (ev->nmem > TR_MAX_RECORD || ev->nmap > TR_MAX_RECORD ||
	    ev->narg > TR_MAX_RECORD)
		return "record too large";
	return tr_out_of_limits(ev);
}

int tr_encode(struct tr_codec *c, const struct tr_event *ev,
	      struct tr_buf *out, struct tr_error *err)
{
	const char *why = not_encodable(c, ev);
	uint64_t bulk, regs[TR_NREGS];
	uint8_t *start, *body, *p;
	size_t guess, size;

	if (why)
		return refuse(err, ev, why);
	bulk = bulk_of(ev);
	if (bulk > TR_MAX_RECORD)
		return refuse(err, ev, "record too large");
	start = tr_buf_reserve(out, room_for(ev, (size_t)bulk));
	guess = varint_size(bulk + 64);
	body = start + 1 + guess;
	p = put_varint(body, ev->number - c->number);
	p = put_varint(p, ev->task);
	p = put_varint(p, tr_zigzag((int64_t)(ev->time - c->time)));
	memcpy(regs, &ev->regs, sizeof regs);
	p = put_fields(p, ev, regs, last_regs(c, ev->task));
	size = put_head(start, ev->type, guess, (size_t)(p - body));
	if (size > TR_MAX_RECORD)
		return refuse(err, ev, "record too large");
	out->len += size;
	c->number = ev->number;
	c->time = ev->time;
	if (tr_event_has(ev, TR_F_REGS))
		keep_regs(c, ev->task, &ev->regs);
	return 0;
}

/*
 * ---- Decoding a record ----
 */

void tr_decoder_begin(struct tr_decoder *d, const struct tr_chunk_header *h,
		      const void *payload)
{
	d->chunk = *h;
	d->in.p = payload;
	d->in.end = d->in.p + h->raw_size;
	d->records = 0;
	tr_codec_begin(&d->codec, h->first);
}

void tr_decoder_release(struct tr_decoder *d)
{
	free(d->ev.mem);
	free(d->ev.map);
	free(d->ev.arg);
	tr_codec_release(&d->codec);
	*d = (struct tr_decoder){0};
}

static int bad_record(const struct tr_decoder *d, struct tr_error *err,
		      const char *why)
{
	return tr_fail(err, TR_ECORRUPT, "record %u: %s", d->records, why);
}

/* An empty event, the arrays' memory kept. */
static void clear_event(struct tr_event *ev)
{
	struct tr_mem *mem = ev->mem;
	struct tr_map *map = ev->map;
	struct tr_arg *arg = ev->arg;

	memset(ev, 0, sizeof *ev);
	ev->mem = mem;
	ev->map = map;
	ev->arg = arg;
}

static bool take_regs(struct tr_decoder *d, struct tr_span s)
{
	uint64_t regs[TR_NREGS];

	if (!get_regs(s, regs, last_regs(&d->codec, d->ev.task)))
		return false;
	memcpy(&d->ev.regs, regs, sizeof regs);
	return true;
}

static bool take_regs_after(struct tr_decoder *d, struct tr_span s)
{
	uint64_t base[TR_NREGS], regs[TR_NREGS];

	if (tr_event_has(&d->ev, TR_F_REGS))
		memcpy(base, &d->ev.regs, sizeof base);
	else
		memcpy(base, last_regs(&d->codec, d->ev.task), sizeof base);
	if (!get_regs(s, regs, base))
		return false;
	memcpy(&d->ev.regs_after, regs, sizeof regs);
	return true;
}

static bool take_mem(struct tr_decoder *d, struct tr_span s)
{
	struct tr_event *ev = &d->ev;
	uint64_t at = 0;

	TR_GROW(ev->mem, ev->nmem, d->mem_cap);
	if (ev->nmem > 0) {
		const struct tr_mem *before = &ev->mem[ev->nmem - 1];

		at = before->addr + before->bytes.len;
	}
	return get_mem(s, &ev->mem[ev->nmem++], at);
}

static bool take_map(struct tr_decoder *d, struct tr_span s)
{
	struct tr_event *ev = &d->ev;
	uint64_t at = ev->nmap ? ev->map[ev->nmap - 1].end : 0;

	TR_GROW(ev->map, ev->nmap, d->map_cap);
	return get_map(s, &ev->map[ev->nmap++], at);
}

static bool take_arg(struct tr_decoder *d, struct tr_span s)
{
	struct tr_event *ev = &d->ev;

	TR_GROW(ev->arg, ev->narg, d->arg_cap);
	return get_arg(s, &ev->arg[ev->narg++]);
}

static bool take_struct(struct tr_decoder *d, unsigned tag, struct tr_span s)
{
	struct tr_event *ev = &d->ev;

	switch (tag) {
	case TR_F_REGS:
		return take_regs(d, s);
	case TR_F_REGS_AFTER:
		return take_regs_after(d, s);
	case TR_F_XSTATE:
		ev->xstate = rest_of(&s);
		return true;
	case TR_F_SIGINFO:
		ev->siginfo = rest_of(&s);
		return true;
	case TR_F_TEXT:
		ev->text = rest_of(&s);
		return true;
	case TR_F_SHA256:
		ev->sha256 = rest_of(&s);
		return true;
	case TR_F_DIGESTS:
		ev->digests = rest_of(&s);
		return true;
	case TR_F_PAGE_HASHES:
		ev->page_hashes = rest_of(&s);
		return true;
	case TR_F_BLOCKS:
		ev->blocks = rest_of(&s);
		return true;
	case TR_F_KNOWN:
		ev->known = rest_of(&s);
		return true;
	case TR_F_MEM:
		return take_mem(d, s);
	case TR_F_MAP:
		return take_map(d, s);
	}
	return take_arg(d, s);
}

/* Fields that may occur again. */
#define REPEATED (BIT(TR_F_MEM) | BIT(TR_F_MAP) | BIT(TR_F_ARG))

static const char *take_known(struct tr_decoder *d, unsigned tag, unsigned kind,
			      uint64_t value, struct tr_span bytes)
{
	struct tr_event *ev = &d->ev;
	uint64_t bit = BIT(tag);

	if (!((kind == KIND_VALUE ? scalars : structs) & bit))
		return "unknown field";
	if (ev->has & bit & ~REPEATED)
		return "field given twice";
	ev->has |= bit;
	if (kind == KIND_BYTES)
		return take_struct(d, tag, bytes) ? NULL : "malformed field";
	if (signed_scalars & bit)
		value = (uint64_t)tr_unzigzag(value);
	ev->v[tag] = value;
	return NULL;
}

static const char *take_fields(struct tr_decoder *d, struct tr_span *s)
{
	uint64_t before = 0;

	while (tr_span_left(s) > 0) {
		struct tr_span bytes = {s->p, s->p};
		uint64_t key, value;
		const char *why;

		if (!get_varint(s, &key) || !get_varint(s, &value))
			return "cut off in a field";
		if (key >> 1 < before)
			return "fields out of order";
		before = key >> 1;
		if ((key & 1) == KIND_BYTES &&
		    (value > tr_span_left(s) ||
		     !tr_span_take(s, (size_t)value, &bytes)))
			return "field longer than its record";
		if (before >= FIRST_COMPAT_TAG)
			continue;
		why = take_known(d, (unsigned)before, key & 1, value, bytes);
		if (why)
			return why;
	}
	return NULL;
}

/* The three integers every record starts with. */
static const char *take_common(struct tr_decoder *d, struct tr_span *s)
{
	struct tr_event *ev = &d->ev;
	uint64_t delta, time;

	if (!get_varint(s, &delta) || !get_u32(s, &ev->task) ||
	    !get_varint(s, &time))
		return "cut off or task id too large";
	if (delta > d->chunk.last - d->codec.number ||
	    (d->records == 1 && delta != 0))
		return "event number outside the chunk's";
	ev->number = d->codec.number += delta;
	ev->time = d->codec.time += (uint64_t)tr_unzigzag(time);
	ev->stream = d->chunk.stream;
	return NULL;
}

static const char *take_event(struct tr_decoder *d, struct tr_span *s)
{
	const char *why = take_fields(d, s);

	if (!why)
		why = tr_out_of_limits(&d->ev);
	if (why || !tr_event_has(&d->ev, TR_F_REGS))
		return why;
	if (tr_codec_full(&d->codec))
		return "too many tasks in a chunk";
	keep_regs(&d->codec, d->ev.task, &d->ev.regs);
	return NULL;
}

/* One record: *known tells whether it holds an event to hand out. */
static const char *take_record(struct tr_decoder *d, bool *known)
{
	const uint8_t *start = d->in.p;
	struct tr_span body;
	uint64_t size;
	const char *why;

	clear_event(&d->ev);
	d->ev.type = (enum tr_event_type)*d->in.p++;
	if (!get_varint(&d->in, &size) || size > tr_span_left(&d->in) ||
	    !tr_span_take(&d->in, (size_t)size, &body))
		return "longer than its chunk";
	if (body.end - start > (ptrdiff_t)TR_MAX_RECORD)
		return "record too large";
	*known = tr_event_type_name(d->ev.type) != NULL;
	if (!*known && d->ev.type < TR_FIRST_COMPAT_TYPE)
		return "unknown event type";
	why = take_common(d, &body);
	return why || !*known ? why : take_event(d, &body);
}

static int finish_chunk(const struct tr_decoder *d, struct tr_error *err)
{
	if (d->records != d->chunk.records)
		return tr_fail(err, TR_ECORRUPT,
			       "%u records where the chunk header says %u",
			       d->records, d->chunk.records);
	if (d->records > 0 && d->codec.number != d->chunk.last)
		return tr_fail(err, TR_ECORRUPT,
			       "the last event is %" PRIu64 " where the chunk "
			       "header says %" PRIu64, d->codec.number,
			       d->chunk.last);
	return 0;
}

int tr_decoder_next(struct tr_decoder *d, struct tr_error *err)
{
	bool known = false;

	while (tr_span_left(&d->in) > 0) {
		const char *why;

		d->records++;
		why = take_record(d, &known);
		if (why)
			return bad_record(d, err, why);
		if (known)
			return 1;
	}
	return finish_chunk(d, err);
}
