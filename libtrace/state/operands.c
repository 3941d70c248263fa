/* Memory that one instruction accesses. */
#include "libtrace/state/operands.h"

#include <Zydis/Zydis.h>

#include "libtrace/state/code.h"

/* A register that can be in an address, by Zydis's name for it. */
static bool value_of(ZydisRegister reg, const struct tr_regs *g, uint64_t *value)
{
	const uint64_t v[16] = {
		g->rax, g->rcx, g->rdx, g->rbx, g->rsp, g->rbp, g->rsi, g->rdi,
		g->r8, g->r9, g->r10, g->r11, g->r12, g->r13, g->r14, g->r15};

	*value = 0;
	if (reg == ZYDIS_REGISTER_NONE)
		return true;
	if (ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_GPR64)
		return false;
	*value = v[ZydisRegisterGetId(reg)];
	return true;
}

static uint64_t segment_base(ZydisRegister reg, const struct tr_regs *g)
{
	switch (reg) {
	case ZYDIS_REGISTER_FS:
		return g->fs_base;
	case ZYDIS_REGISTER_GS:
		return g->gs_base;
	default:
		return 0;
	}
}

static bool address_of(const ZydisDecodedInstruction *in,
		       const ZydisDecodedOperand *op, const struct tr_regs *g,
		       uint64_t *addr)
{
	uint64_t base = g->rip + in->length, index;

	if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM || in->address_width != 64 ||
	    !value_of(op->mem.index, g, &index) ||
	    (op->mem.base != ZYDIS_REGISTER_RIP &&
	     !value_of(op->mem.base, g, &base)))
		return false;
	*addr = segment_base(op->mem.segment, g) + base +
		index * op->mem.scale + (uint64_t)op->mem.disp.value;
	return true;
}

static bool is_stack(const ZydisDecodedOperand *op)
{
	return op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
	       op->mem.base == ZYDIS_REGISTER_RSP;
}

/* With a bit's number in a register these reach far beyond their operand. */
static bool is_bit_string(const ZydisDecodedInstruction *in,
			  const ZydisDecodedOperand *op)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTC:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTS:
		return op[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	default:
		return false;
	}
}

static bool is_refused(const ZydisDecodedInstruction *in,
		       const ZydisDecodedOperand *op)
{
	const ZydisInstructionAttributes repeats =
		ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
		ZYDIS_ATTRIB_HAS_REPNE;

	switch (in->meta.category) {
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_UINTR:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT:
		return true;
	default:
		return (in->attributes & repeats) || is_bit_string(in, op) ||
		       in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	}
}

static bool add_operand(const ZydisDecodedInstruction *in,
			const ZydisDecodedOperand *op, const struct tr_regs *g,
			struct tr_operands *out)
{
	struct tr_operand *o = &out->op[out->n];

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    op->mem.type == ZYDIS_MEMOP_TYPE_AGEN || is_stack(op))
		return true;
	if (out->n == TR_OPERANDS_MAX || op->size == 0 || op->size % 8 ||
	    op->size / 8 > TR_OPERAND_BYTES ||
	    !address_of(in, op, g, &o->addr))
		return false;
	o->len = op->size / 8;
	o->written = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
	out->n++;
	return true;
}

bool tr_operands_find(const uint8_t *bytes, size_t n,
		      const struct tr_regs *regs, struct tr_operands *out)
{
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecoder decoder;
	struct tr_site site;

	*out = (struct tr_operands){0};
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder,
					   ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &in, op)) ||
	    is_refused(&in, op) || tr_insn_decode(bytes, n, &site))
		return false;
	out->pauses = in.mnemonic == ZYDIS_MNEMONIC_PAUSE;
	for (unsigned i = 0; i < in.operand_count; i++)
		if (!add_operand(&in, &op[i], regs, out))
			return false;
	return true;
}
