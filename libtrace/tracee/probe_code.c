/* Generating the code of probes. */
#include "libtrace/tracee/probe_code.h"

#include <string.h>

#include "libtrace/base/buf.h"

#define PAGE 4096u
#define RAX 0
#define RCX 1
#define NO_SIB 4 /* rsp and r12 as a base need a SIB byte */

/* Parts of the region, by offset from its base. */
#define COMPARE_AT (3 * PAGE)
#define ALONE_AT (5 * PAGE - 64)
#define CONSTANTS_AT (5 * PAGE + 64)

/*
 * The part of every pass, around `entry`:
 *
 *	away:	jmp	compare
 *	entry:	mov	%rcx, RCX(%rip)
 *		lea	-VALUE(REG), %ecx
 *		jrcxz	away
 *		mov	RCX(%rip), %rcx
 *		... the moved instructions, jmp back
 *
 * Neither flags nor any other register change.  The first four bytes of the
 * register, or of a word of memory, decide.
 */
#define AWAY_BYTES 5
#define MOV_BYTES 7

/* Words are compared while there is room for them. */
#define WORD_BYTES 29
#define WORDS_MAX 110

struct emit {
	struct tr_probe_code *c;
	size_t at;        /* offset of the next byte */
	size_t constants; /* and of the next constant */
};

uint64_t *tr_probe_register(struct tr_regs *r, unsigned encoding)
{
	uint64_t *const order[16] = {
		&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp, &r->rsi,
		&r->rdi, &r->r8, &r->r9, &r->r10, &r->r11, &r->r12, &r->r13,
		&r->r14, &r->r15};

	return order[encoding & 15];
}

static void put(struct emit *e, const char *bytes, size_t n)
{
	memcpy(e->c->bytes + e->at, bytes, n);
	e->at += n;
}

static void put_u8(struct emit *e, unsigned byte)
{
	e->c->bytes[e->at++] = (uint8_t)byte;
}

static void put_u32(struct emit *e, uint32_t v)
{
	tr_put_le32(e->c->bytes + e->at, v);
	e->at += 4;
}

static void put_u64(struct emit *e, uint64_t v)
{
	tr_put_le64(e->c->bytes + e->at, v);
	e->at += 8;
}

/* A 32-bit distance to an offset in the region that ends the instruction. */
static void put_to(struct emit *e, size_t offset)
{
	put_u32(e, (uint32_t)offset - (uint32_t)(e->at + 4));
}

static size_t constant(struct emit *e, uint64_t v)
{
	size_t at = e->constants;

	tr_put_le64(e->c->bytes + at, v);
	e->constants += 8;
	return at;
}

/* lea -value(%reg), %ecx: 0 when the low halves are equal */
static void put_subtract(struct emit *e, unsigned reg, uint32_t value)
{
	if (reg >= 8)
		put_u8(e, 0x41);
	put_u8(e, 0x8d);
	put_u8(e, 0x88 | (reg & 7));
	if ((reg & 7) == NO_SIB)
		put_u8(e, 0x24);
	put_u32(e, 0 - value);
}

/* movabs $addr, %rcx; mov (%rcx), %ecx; lea -value(%rcx), %ecx */
static void put_subtract_word(struct emit *e, uint64_t addr, uint32_t value)
{
	put(e, "\x48\xb9", 2);
	put_u64(e, addr);
	put(e, "\x8b\x09", 2);
	put_subtract(e, RCX, value);
}

static void put_first(struct emit *e, const struct tr_probe_state *w)
{
	struct tr_regs regs = *w->regs;

	if (w->first_reg >= 0)
		put_subtract(e, (unsigned)w->first_reg,
			     (uint32_t)*tr_probe_register(
				     &regs, (unsigned)w->first_reg));
	else
		put_subtract_word(e, w->first_addr, w->first_value);
}

static bool has_first(const struct tr_probe_state *w)
{
	return w->first_reg >= 0 || w->first_addr;
}

uint64_t tr_probe_copy_at(uint64_t entry, const struct tr_probe_state *w)
{
	uint64_t n = 18; /* put_subtract_word */

	if (!w)
		return entry;
	if (!has_first(w)) /* always away */
		return entry + MOV_BYTES + 5 + MOV_BYTES;
	if (w->first_reg >= 0)
		n = 6u + (w->first_reg >= 8) +
		    ((w->first_reg & 7) == NO_SIB);
	return entry + MOV_BYTES + n + 2 + MOV_BYTES;
}

static void put_every_pass(struct emit *e, const struct tr_probe_state *w)
{
	size_t entry = (size_t)(e->c->entry - e->c->base);

	e->at = entry - AWAY_BYTES;
	put_u8(e, 0xe9);
	put_to(e, COMPARE_AT);
	put(e, "\x48\x89\x0d", 3);
	put_to(e, TR_PROBE_RCX);
	if (has_first(w)) {
		put_first(e, w);
		put_u8(e, 0xe3);
		put_u8(e, (unsigned)(entry - AWAY_BYTES - (e->at + 1)));
	} else {
		put_u8(e, 0xe9);
		put_to(e, COMPARE_AT);
	}
	e->c->restore = e->c->base + e->at;
	put(e, "\x48\x8b\x0d", 3);
	put_to(e, TR_PROBE_RCX);
}

/* jne out: the distance is filled in when it is known. */
struct outs {
	size_t at[WORDS_MAX + 32];
	size_t n;
};

static void put_jne(struct emit *e, struct outs *outs)
{
	put(e, "\x0f\x85", 2);
	outs->at[outs->n++] = e->at;
	put_u32(e, 0);
}

/* cmp constant(%rip), %reg; jne out */
static void put_compare(struct emit *e, unsigned reg, uint64_t value,
			struct outs *outs)
{
	put_u8(e, reg >= 8 ? 0x4c : 0x48);
	put_u8(e, 0x3b);
	put_u8(e, 0x05 | (reg & 7) << 3);
	put_to(e, constant(e, value));
	put_jne(e, outs);
}

/* The flags as lahf and seto leave them in ax. */
static uint16_t flags_in_ax(uint64_t eflags)
{
	return (uint16_t)((((eflags & 0xd5) | 2) << 8) | (eflags >> 11 & 1));
}

static void put_registers(struct emit *e, const struct tr_probe_state *w,
			  struct outs *outs)
{
	struct tr_regs regs = *w->regs;

	for (unsigned i = 1; i < 16; i++)
		if (!(w->ignored >> i & 1))
			put_compare(e, i, *tr_probe_register(&regs, i), outs);
	put(e, "\x48\x8b\x05", 3); /* mov RAX(%rip), %rax */
	put_to(e, TR_PROBE_RAX);
	if (!(w->ignored & 1))
		put_compare(e, RAX, regs.rax, outs);
	if (w->flags_ignored)
		return;
	put(e, "\x8b\x05", 2); /* mov FLAGS(%rip), %eax; cmp $flags, %ax */
	put_to(e, TR_PROBE_FLAGS);
	put(e, "\x66\x3d", 2);
	put_u8(e, flags_in_ax(regs.eflags) & 0xff);
	put_u8(e, flags_in_ax(regs.eflags) >> 8);
	put_jne(e, outs);
}

/* movabs $addr, %rax; mov (%rax), %rax; cmp constant(%rip), %rax; jne out */
static void put_words(struct emit *e, const struct tr_probe_state *w,
		      struct outs *outs)
{
	size_t left = WORDS_MAX;

	for (size_t i = 0; i < w->nwords; i++) {
		const struct tr_mem *m = &w->words[i];
		const uint8_t *data = m->bytes.data;

		for (size_t k = 0; k + 8 <= m->bytes.len && left; k += 8) {
			put(e, "\x48\xb8", 2);
			put_u64(e, m->addr + k);
			put(e, "\x48\x8b\x00", 3);
			put_compare(e, RAX, tr_get_le64(data + k), outs);
			left--;
		}
	}
}

/*
 *	compare: mov	%rax, RAX(%rip)
 *		lahf
 *		seto	%al
 *		mov	%eax, FLAGS(%rip)
 *		mov	RCX(%rip), %rcx
 *		...
 *	match:	int3
 *	out:	mov	FLAGS(%rip), %eax
 *		add	$127, %al		(sets OF when al is 1)
 *		sahf
 *		mov	RAX(%rip), %rax
 *		jmp	copy
 */
static void put_comparisons(struct emit *e, const struct tr_probe_state *w)
{
	struct tr_probe_code *c = e->c;
	struct outs outs = {.n = 0};

	e->at = COMPARE_AT;
	c->compare = c->base + e->at;
	put(e, "\x48\x89\x05", 3);
	put_to(e, TR_PROBE_RAX);
	put(e, "\x9f\x0f\x90\xc0\x89\x05", 6);
	put_to(e, TR_PROBE_FLAGS);
	put(e, "\x48\x8b\x0d", 3);
	put_to(e, TR_PROBE_RCX);
	put_registers(e, w, &outs);
	put_words(e, w, &outs);
	c->match = c->base + e->at;
	put_u8(e, 0xcc);
	c->out = c->base + e->at;
	for (size_t i = 0; i < outs.n; i++)
		tr_put_le32(c->bytes + outs.at[i],
			    (uint32_t)(e->at - (outs.at[i] + 4)));
	put(e, "\x8b\x05", 2);
	put_to(e, TR_PROBE_FLAGS);
	put(e, "\x04\x7f\x9e\x48\x8b\x05", 6);
	put_to(e, TR_PROBE_RAX);
	put_u8(e, 0xe9);
	put_to(e, (size_t)(c->moved.to - c->base));
	c->compare_end = c->base + e->at;
}

_Static_assert(COMPARE_AT + 64 + 20 * 13 + 32 + WORDS_MAX * WORD_BYTES <
	       ALONE_AT, "room for the comparisons");
_Static_assert(CONSTANTS_AT + (WORDS_MAX + 32) * 8 < TR_PROBE_SIZE,
	       "room for the constants");

/* The first instruction of the moved ones with a breakpoint behind it. */
static void put_alone(struct emit *e)
{
	struct tr_probe_code *c = e->c;
	size_t n = c->moved.npoints > 1 ? c->moved.point[1].offset : 0;

	e->at = ALONE_AT;
	c->alone = c->base + e->at;
	put(e, (const char *)c->moved.code, n);
	c->alone_end = c->base + e->at;
}

void tr_probe_generate(struct tr_probe_code *c,
		       const struct tr_probe_state *want)
{
	struct emit e = {.c = c, .constants = CONSTANTS_AT};

	memset(c->bytes, 0xcc, sizeof c->bytes);
	if (want) {
		put_every_pass(&e, want);
		put_comparisons(&e, want);
	}
	memcpy(c->bytes + (c->moved.to - c->base), c->moved.code,
	       c->moved.len);
	put_alone(&e);
}

/* ---- the jump ---- */

struct layout {
	uint64_t site;
	size_t prefixes;
	uint32_t fixed, mask; /* bytes of the distance that must be int3 */
};

/* Where other instructions begin in the jump, breakpoints must be: in its
 * distance. */
static bool make_layout(struct layout *l, const uint8_t *lengths, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i + 1 < n; i++) {
		at += lengths[i];
		if (at >= l->prefixes + TR_JUMP)
			break;
		if (at <= l->prefixes)
			return false;
		l->mask |= 0xffu << 8 * (at - l->prefixes - 1);
	}
	l->fixed = 0xcccccccc & l->mask;
	return true;
}

uint64_t tr_probe_base(uint64_t entry)
{
	return (entry & ~(uint64_t)(PAGE - 1)) - PAGE;
}

/* Distances to try, the near ones first, in steps of 1 MB. */
static bool find_entry(const struct layout *l, tr_probe_free_fn *is_free,
		       void *ctx, uint64_t *entry)
{
	uint64_t from = l->site + l->prefixes + TR_JUMP;

	for (uint32_t i = 2; i < 4096; i++) {
		uint32_t step = (i & 1 ? 0 - i / 2 : i / 2) << 20;
		uint32_t distance = step | (i & 0xff) << 8 | 0x40;
		uint64_t to;

		distance = (distance & ~l->mask) | l->fixed;
		to = from + (uint64_t)(int64_t)(int32_t)distance;
		if (to < 0x110000 || to >> 47)
			continue;
		if (is_free(ctx, tr_probe_base(to))) {
			*entry = to;
			return true;
		}
	}
	return false;
}

bool tr_probe_jump_bytes(uint64_t site, size_t prefixes,
			 const uint8_t *lengths, size_t n,
			 tr_probe_free_fn *is_free, void *ctx, uint64_t *entry,
			 uint8_t bytes[TR_RELOCATE_MAX])
{
	struct layout l = {.site = site, .prefixes = prefixes};

	if (!make_layout(&l, lengths, n) ||
	    !find_entry(&l, is_free, ctx, entry))
		return false;
	memset(bytes, 0xcc, TR_RELOCATE_MAX);
	memset(bytes, 0x2e, prefixes); /* a segment, which jumps ignore */
	return tr_jump_encode(bytes + prefixes, site + prefixes, *entry);
}
