/* Moving instructions elsewhere. */
#include "libtrace/tracee/relocate.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <string.h>

#include "libtrace/base/buf.h"

#define PUSH_RIP_RELATIVE 6 /* ff 35 disp32 */

/* How an instruction is moved, and how long it becomes. */
enum kind {
	REFUSED,
	VERBATIM,     /* the same bytes */
	RIP_RELATIVE, /* with its displacement adjusted */
	JMP,          /* jmp rel32 */
	JCC,          /* jcc rel32 */
	SHORT_ONLY,   /* loop, jrcxz: over a jump, or to another one */
	CALL,         /* push of the return address, jmp rel32 */
};

struct insn {
	enum kind kind;
	const char *why;    /* when refused */
	uint8_t length;
	bool ends;          /* nothing behind it is reached from it */
	uint8_t disp_at;    /* RIP_RELATIVE: offset of the displacement */
	uint8_t condition;  /* JCC */
	uint64_t target;    /* of a branch */
	uint16_t offset;    /* in the copy */
};

struct work {
	const uint8_t *bytes;
	struct insn insn[TR_RELOCATE_MAX];
	size_t n;
	size_t constants; /* return addresses written behind the code */
	struct tr_relocated *r;
	struct tr_error *err;
};

static size_t moved_length(const struct insn *in)
{
	switch (in->kind) {
	case JMP:
		return TR_JUMP;
	case JCC:
		return 6;
	case SHORT_ONLY:
		return in->length + 2u + TR_JUMP;
	case CALL:
		return PUSH_RIP_RELATIVE + TR_JUMP;
	default:
		return in->length;
	}
}

static const char *refusal(const ZydisDecodedInstruction *d)
{
	if (d->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return "a far branch";
	if (d->meta.isa_ext == ZYDIS_ISA_EXT_X87)
		return "an x87 instruction";
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_RDPMC:
	case ZYDIS_MNEMONIC_RDPRU:
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
	case ZYDIS_MNEMONIC_RDPID:
		return "an instruction that is recorded";
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return "a far branch";
	case ZYDIS_MNEMONIC_XBEGIN:
		return "a transaction";
	default:
		break;
	}
	switch (d->meta.category) {
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_UINTR:
		return "an instruction that enters the kernel";
	default:
		return NULL;
	}
}

/* A branch with its target in the instruction. */
static void classify_branch(const ZydisDecodedInstruction *d, uint64_t at,
			    struct insn *in)
{
	in->target = at + d->length + (uint64_t)d->raw.imm[0].value.s;
	/* Intel ignores an operand-size prefix, AMD cuts rip to 16 bits. */
	if (d->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) {
		in->why = "a branch with an operand-size prefix";
		return;
	}
	if (d->meta.category == ZYDIS_CATEGORY_CALL) {
		in->kind = CALL;
	} else if (d->meta.category == ZYDIS_CATEGORY_UNCOND_BR) {
		in->kind = JMP;
	} else if (d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		   d->opcode >= 0xe0 && d->opcode <= 0xe3) {
		in->kind = SHORT_ONLY;
	} else {
		in->kind = JCC;
		in->condition = d->opcode & 0xf;
	}
}

static void classify(const ZydisDecodedInstruction *d, uint64_t at,
		     struct insn *in)
{
	bool relative = d->attributes & ZYDIS_ATTRIB_IS_RELATIVE;

	in->length = d->length;
	in->ends = d->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		   d->meta.category == ZYDIS_CATEGORY_RET;
	in->why = refusal(d);
	if (in->why)
		return;
	if (d->raw.imm[0].is_relative) {
		classify_branch(d, at, in);
	} else if (d->meta.category == ZYDIS_CATEGORY_CALL) {
		in->why = "an indirect call";
	} else if (!relative) {
		in->kind = VERBATIM;
	} else if (d->address_width != 64 || d->raw.disp.size != 32) {
		in->why = "an operand relative to eip";
	} else {
		in->kind = RIP_RELATIVE;
		in->disp_at = d->raw.disp.offset;
		in->target = at + d->length + (uint64_t)d->raw.disp.value;
	}
}

static struct insn decode(const ZydisDecoder *decoder, const uint8_t *bytes,
			  size_t n, uint64_t at)
{
	struct insn in = {.why = "bytes that are no instruction"};
	ZydisDecodedInstruction d;

	if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, n,
						       &d)))
		classify(&d, at, &in);
	return in;
}

static bool init_decoder(ZydisDecoder *decoder)
{
	return ZYAN_SUCCESS(ZydisDecoderInit(decoder,
					     ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64));
}

size_t tr_relocatable(const uint8_t *bytes, size_t n)
{
	ZydisDecoder decoder;
	struct insn in;

	if (!init_decoder(&decoder))
		return 0;
	in = decode(&decoder, bytes, n, 0);
	return in.kind == REFUSED ? 0 : in.length;
}

/* Decode from one offset to another, and look for branches into (low, high).
 * Where that ends. */
static size_t sweep(const ZydisDecoder *decoder, const uint8_t *bytes, size_t n,
		    size_t from, size_t to, uint64_t low, uint64_t high,
		    bool *found)
{
	while (from < to) {
		struct insn in = decode(decoder, bytes + from, n - from, from);
		bool branches = in.kind == JMP || in.kind == JCC ||
				in.kind == SHORT_ONLY || in.kind == CALL;

		if (!in.length)
			break;
		*found |= branches && in.target > low && in.target < high;
		from += in.length;
	}
	return from;
}

bool tr_branched_into(const uint8_t *bytes, size_t n, size_t at, size_t taken)
{
	ZydisDecoder decoder;
	bool found = false;

	if (!init_decoder(&decoder))
		return false;
	sweep(&decoder, bytes, n, at, n, at, at + taken, &found);
	/* Decoding that begins anywhere soon falls in step. */
	for (size_t from = 0; from < TR_INSN_MAX && from < at && !found; from++) {
		bool before = false;

		if (sweep(&decoder, bytes, n, from, at, at, at + taken,
			  &before) == at)
			return before;
	}
	return found;
}

/* Decode what is to be moved and lay the copy out. */
static int plan(struct work *w, size_t n, size_t want)
{
	struct tr_relocated *r = w->r;
	size_t offset = 0;
	ZydisDecoder decoder;

	if (!init_decoder(&decoder))
		return tr_fail(w->err, TR_EUNSUPPORTED, "no decoder");
	while (r->taken < want) {
		struct insn *in = &w->insn[w->n++];

		*in = decode(&decoder, w->bytes + r->taken, n - r->taken,
			     r->from + r->taken);
		if (in->kind == REFUSED)
			return tr_fail(w->err, TR_EUNSUPPORTED, "code at 0x%"
				       PRIx64 ": %s", r->from + r->taken,
				       in->why);
		in->offset = (uint16_t)offset;
		offset += moved_length(in);
		r->taken += in->length;
		if (in->ends && !r->straight)
			r->straight = r->taken;
	}
	if (!r->straight)
		r->straight = r->taken;
	w->constants = offset + TR_JUMP;
	return 0;
}

static void add_point(struct work *w, bool entry, uint64_t home)
{
	w->r->point[w->r->npoints++] = (struct tr_relocated_point){
		(uint16_t)w->r->len, entry, home};
}

static void put(struct work *w, const void *bytes, size_t n)
{
	memcpy(w->r->code + w->r->len, bytes, n);
	w->r->len += n;
}

/* A 32-bit displacement that, with `after` more bytes of the instruction
 * behind it, refers to the target. */
static int put_relative(struct work *w, uint64_t target, size_t after)
{
	struct tr_relocated *r = w->r;
	int64_t rel = (int64_t)(target - (r->to + r->len + 4 + after));

	if (rel != (int32_t)rel)
		return tr_fail(w->err, TR_EUNSUPPORTED, "0x%" PRIx64
			       " cannot be reached from 0x%" PRIx64, target,
			       r->to);
	tr_put_le32(r->code + r->len, (uint32_t)rel);
	r->len += 4;
	return 0;
}

/* Where a branch to `target` goes: a copy, when that was moved. */
static int branch_target(const struct work *w, uint64_t target, uint64_t *where)
{
	const struct tr_relocated *r = w->r;
	uint64_t at = r->from;

	*where = target;
	if (target <= r->from || target >= r->from + r->taken)
		return 0;
	for (size_t i = 0; i < w->n; at += w->insn[i++].length) {
		if (at != target)
			continue;
		*where = r->to + w->insn[i].offset;
		return 0;
	}
	return tr_fail(w->err, TR_EUNSUPPORTED, "code at 0x%" PRIx64
		       ": a branch into the middle of an instruction", r->from);
}

static int put_jump(struct work *w, uint64_t target)
{
	uint64_t where;

	if (branch_target(w, target, &where) < 0)
		return -1;
	put(w, "\xe9", 1);
	return put_relative(w, where, 0);
}

static int put_jcc(struct work *w, const struct insn *in)
{
	const uint8_t opcode[] = {0x0f, (uint8_t)(0x80 | in->condition)};
	uint64_t where;

	if (branch_target(w, in->target, &where) < 0)
		return -1;
	put(w, opcode, sizeof opcode);
	return put_relative(w, where, 0);
}

/* loop 1f; jmp short 2f; 1: jmp target; 2:  The displacement of a short branch
 * is its last byte. */
static int put_short_only(struct work *w, const struct insn *in,
			  const uint8_t *bytes, uint64_t behind)
{
	static const uint8_t over_short = 2;
	static const uint8_t over_jump[] = {0xeb, TR_JUMP};

	put(w, bytes, in->length - 1u);
	put(w, &over_short, 1);
	add_point(w, false, behind);
	put(w, over_jump, sizeof over_jump);
	add_point(w, false, in->target);
	return put_jump(w, in->target);
}

static int put_call(struct work *w, const struct insn *in, uint64_t behind)
{
	struct tr_relocated *r = w->r;

	put(w, "\xff\x35", 2);
	if (put_relative(w, r->to + w->constants, 0) < 0)
		return -1;
	tr_put_le64(r->code + w->constants, behind);
	w->constants += 8;
	add_point(w, false, in->target);
	return put_jump(w, in->target);
}

static int put_insn(struct work *w, const struct insn *in, const uint8_t *bytes,
		    uint64_t at)
{
	uint64_t behind = at + in->length;

	add_point(w, true, at);
	switch (in->kind) {
	case JMP:
		return put_jump(w, in->target);
	case JCC:
		return put_jcc(w, in);
	case SHORT_ONLY:
		return put_short_only(w, in, bytes, behind);
	case CALL:
		return put_call(w, in, behind);
	case RIP_RELATIVE:
		put(w, bytes, in->disp_at);
		if (put_relative(w, in->target, in->length - in->disp_at - 4u) <
		    0)
			return -1;
		put(w, bytes + in->disp_at + 4, in->length - in->disp_at - 4u);
		return 0;
	default:
		put(w, bytes, in->length);
		return 0;
	}
}

int tr_relocate(const uint8_t *bytes, size_t n, uint64_t from, size_t want,
		uint64_t to, uint64_t next, struct tr_relocated *r,
		struct tr_error *err)
{
	struct work w = {.bytes = bytes, .r = r, .err = err};
	size_t at = 0;

	*r = (struct tr_relocated){.from = from, .to = to};
	if (plan(&w, n, want) < 0)
		return -1;
	for (size_t i = 0; i < w.n; at += w.insn[i++].length)
		if (put_insn(&w, &w.insn[i], bytes + at, from + at) < 0)
			return -1;
	add_point(&w, false, from + r->taken);
	if (put_jump(&w, next ? next : from + r->taken) < 0)
		return -1;
	r->len = w.constants;
	return 0;
}

bool tr_relocated_home(const struct tr_relocated *r, uint64_t ip,
		       uint64_t *home)
{
	for (size_t i = 0; i < r->npoints; i++)
		if (r->to + r->point[i].offset == ip) {
			*home = r->point[i].home;
			return true;
		}
	return false;
}

bool tr_relocated_entry(const struct tr_relocated *r, uint64_t home,
			uint64_t *ip)
{
	for (size_t i = 0; i < r->npoints; i++)
		if (r->point[i].entry && r->point[i].home == home) {
			*ip = r->to + r->point[i].offset;
			return true;
		}
	return false;
}

bool tr_jump_encode(uint8_t out[TR_JUMP], uint64_t from, uint64_t to)
{
	int64_t rel = (int64_t)(to - (from + TR_JUMP));

	if (rel != (int32_t)rel)
		return false;
	out[0] = 0xe9;
	tr_put_le32(out + 1, (uint32_t)rel);
	return true;
}
