/* Making the stubs of abi.h. */
#include "libtrace/tracee/stub.h"

#include <stddef.h>
#include <string.h>

#include "libtrace/base/buf.h"
#include "libtrace/state/code.h"
#include "libtrace/tracee/calls.h"

/* Code being put together. */
struct code {
	uint8_t *p;
	uint64_t addr; /* of what p points to, in the task */
};

static void put(struct code *c, const void *bytes, size_t n)
{
	memcpy(c->p, bytes, n);
	c->p += n;
	c->addr += n;
}

static void put32(struct code *c, const char *opcode, size_t n, uint64_t imm)
{
	uint8_t b[4];

	tr_put_le32(b, (uint32_t)imm);
	put(c, opcode, n);
	put(c, b, sizeof b);
}

/* To the injected code. */
static void put_jump(struct code *c, const uint8_t *label)
{
	put32(c, "\xe9", 1, tr_calls_address(label) - (c->addr + 5));
}

static bool make_call(struct code *c, const struct tr_stub *s)
{
	uint8_t after[8];

	tr_put_le64(after, s->at + s->what.length);
	put(c, "\x48\xb9", 2); /* movabs to rcx */
	put(c, after, sizeof after);
	put32(c, "\x41\xbb", 2, c->addr + 11); /* to r11d: the syscall below */
	put_jump(c, tr_calls_enter);
	put(c, "\x0f\x05", 2);
	return memcmp(s->insn, "\x0f\x05", 2) == 0;
}

static bool make_xsavec(struct code *c, const struct tr_stub *s, uint64_t tail,
			uint8_t displacement[8])
{
	int32_t d;

	if (!tr_xsavec_decode(s->insn, s->what.length, &d))
		return false;
	put(c, s->insn, s->what.length);
	put32(c, "\x48\x89\x24\x25", 4, TR_CONTROL_AT(rsp));
	put32(c, "\xbc", 1, TR_INJECT_STACK_TOP); /* to esp */
	put(c, "\x9c\x56", 2);                    /* pushfq, push %rsi */
	put32(c, "\xbe", 1, tail);                /* to esi */
	put_jump(c, tr_calls_settle);
	tr_put_le64(displacement, (uint64_t)(int64_t)d);
	return true;
}

static bool make_insn(struct code *c, const struct tr_stub *s, uint64_t tail,
		      uint8_t insn[8])
{
	struct tr_site site;

	put32(c, "\x48\x89\x24\x25", 4, TR_CONTROL_AT(rsp));
	put32(c, "\xbc", 1, TR_INJECT_STACK_TOP); /* to esp */
	put32(c, "\x48\x89\x34\x25", 4, TR_CONTROL_AT(rsi));
	put32(c, "\xbe", 1, tail);                /* to esi */
	put_jump(c, tr_calls_insn);
	tr_put_le64(insn, s->what.insn);
	return tr_stub_can_do(s->what.insn) &&
	       tr_insn_decode(s->insn, s->what.length, &site) == s->what.insn;
}

bool tr_stub_can_do(enum tr_insn insn)
{
	return insn == TR_INSN_CPUID || insn == TR_INSN_RDTSC ||
	       insn == TR_INSN_RDTSCP;
}

bool tr_stub_make(uint8_t code[TR_LONG_STUB_SIZE], uint64_t addr,
		  const struct tr_stub *s, uint64_t *entry)
{
	struct code c = {code + TR_STUB_LEAD, addr + TR_STUB_LEAD};
	uint8_t *tail = code + TR_LONG_STUB_TAIL;
	uint64_t tail_addr = addr + TR_LONG_STUB_TAIL;
	uint64_t lead = tr_stub_lead(s);

	memset(code, 0xcc, TR_LONG_STUB_SIZE);
	memcpy(code + TR_STUB_LEAD - lead, s->via, lead);
	*entry = addr + TR_STUB_LEAD - lead;
	if (lead && !tr_lead_moves(s->via, lead))
		return false;
	if (!s->what.insn)
		return make_call(&c, s);
	tr_put_le64(tail + 8, s->at + s->what.length);
	return s->what.insn == TR_INSN_XSAVEC
		       ? make_xsavec(&c, s, tail_addr, tail)
		       : make_insn(&c, s, tail_addr, tail);
}
