/* String instructions with a repeat prefix. */
#include "libtrace/tracee/repeat.h"

#include "libtrace/state/regs.h"

#define DIRECTION ((uint64_t)1 << 10)
#define ARITHMETIC UINT64_C(0x8d5)

/* What the opcodes a4 to af do; their lowest bit tells bytes from others. */
static bool by_opcode(uint8_t opcode, struct tr_repeat *rep)
{
	switch (opcode & 0xfe) {
	case 0xa4: /* movs */
		rep->rsi = rep->rdi = true;
		return true;
	case 0xa6: /* cmps */
		rep->rsi = rep->rdi = rep->compares = true;
		return true;
	case 0xaa: /* stos */
		rep->rdi = true;
		return true;
	case 0xac: /* lods */
		rep->rsi = true;
		return true;
	case 0xae: /* scas */
		rep->rdi = rep->compares = true;
		return true;
	default:
		return false;
	}
}

bool tr_repeat_decode(const uint8_t *bytes, size_t n, struct tr_repeat *rep)
{
	bool repeats = false, narrow = false, wide = false;
	size_t i = 0;

	*rep = (struct tr_repeat){0};
	for (; i < n; i++) {
		if (bytes[i] == 0xf2 || bytes[i] == 0xf3)
			repeats = true;
		else if (bytes[i] == 0x66)
			narrow = true;
		else if (bytes[i] != 0x64 && bytes[i] != 0x65)
			break;
	}
	if (i < n && (bytes[i] & 0xf0) == 0x40)
		wide = bytes[i++] & 8;
	/* 0x67, 32-bit addresses, is not among the prefixes. */
	if (!repeats || i >= n || !by_opcode(bytes[i], rep))
		return false;
	rep->size = wide ? 8 : narrow ? 2 : 4;
	if (!(bytes[i] & 1))
		rep->size = 1;
	rep->length = (uint8_t)(i + 1);
	return true;
}

uint64_t tr_repeat_distance(const struct tr_repeat *rep,
			    const struct tr_regs *from,
			    const struct tr_regs *to)
{
	struct tr_regs then = *from;
	uint64_t count = from->rcx - to->rcx;
	uint64_t bytes = count * rep->size;

	if (from->rcx <= to->rcx)
		return 0;
	if (from->eflags & DIRECTION)
		bytes = 0 - bytes;
	then.rcx = to->rcx;
	if (rep->rsi)
		then.rsi += bytes;
	if (rep->rdi)
		then.rdi += bytes;
	if (rep->rsi && !rep->rdi)
		then.rax = to->rax; /* lods loads it */
	if (rep->compares)
		then.eflags = (then.eflags & ~ARITHMETIC) |
			      (to->eflags & ARITHMETIC);
	then.eflags &= ~TR_EFLAGS_RF;
	return tr_regs_equal(&then, to) ? count : 0;
}
