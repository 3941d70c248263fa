/* Memory that instructions access. */
#include <string.h>

#include "libtrace/state/operands.h"
#include "tests/unit/check.h"

static const struct tr_regs regs = {
	.rip = 0x401000, .rsp = 0x7ffe0000, .rbp = 0x7ffe0100, .rax = 0x1000,
	.rcx = 3, .rsi = 0x2000, .rdi = 0x3000, .fs_base = 0x7f0000000000,
};

static const struct one {
	const char *name;
	uint8_t bytes[15];
	size_t n;
	bool refused;
	struct tr_operands out;
} all[] = {
	{"registers alone", {0x48, 0x89, 0xd8}, 3, .out = {.n = 0}},
	{"pause", {0xf3, 0x90}, 2, .out = {.pauses = true}},
	{"lea", {0x48, 0x8d, 0x05, 0x10, 0, 0, 0}, 7, .out = {.n = 0}},
	{"load relative to rip", {0x8b, 0x05, 0x10, 0, 0, 0}, 6,
	 .out = {{{0x401016, 4, false}}, .n = 1}},
	{"compare with a byte", {0x80, 0x38, 0}, 3,
	 .out = {{{0x1000, 1, false}}, .n = 1}},
	{"store with an index", {0x48, 0x89, 0x54, 0xc8, 0xf8}, 5,
	 .out = {{{0x1010, 8, true}}, .n = 1}},
	{"locked exchange", {0x87, 0x07}, 2,
	 .out = {{{0x3000, 4, true}}, .n = 1}},
	{"locked compare and exchange", {0xf0, 0x0f, 0xb1, 0x17}, 4,
	 .out = {{{0x3000, 4, true}}, .n = 1}},
	{"add to a counter", {0x83, 0x45, 0xfc, 1}, 4,
	 .out = {{{0x7ffe00fc, 4, true}}, .n = 1}},
	{"thread-local", {0x64, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0}, 8,
	 .out = {{{0x7f0000000010, 4, false}}, .n = 1}},
	{"vector load", {0xc5, 0xfd, 0x6f, 0x06}, 4,
	 .out = {{{0x2000, 32, false}}, .n = 1}},
	{"movsb, once", {0xa4}, 1,
	 .out = {{{0x3000, 1, true}, {0x2000, 1, false}}, .n = 2}},
	{"push", {0x55}, 1, .out = {.n = 0}},
	{"push of memory", {0xff, 0x30}, 2,
	 .out = {{{0x1000, 8, false}}, .n = 1}},
	{"call", {0xe8, 0, 0, 0, 0}, 5, .out = {.n = 0}},
	{"call through memory", {0xff, 0x10}, 2,
	 .out = {{{0x1000, 8, false}}, .n = 1}},
	{"ret", {0xc3}, 1, .out = {.n = 0}},
	{"a bit by its number", {0xf0, 0x0f, 0xba, 0x28, 0}, 5,
	 .out = {{{0x1000, 4, true}}, .n = 1}},
	{"a bit by a register", {0x0f, 0xab, 0x08}, 3, .refused = true},
	{"rep movsb", {0xf3, 0xa4}, 2, .refused = true},
	{"32-bit address", {0x67, 0x8b, 0x00}, 3, .refused = true},
	{"gather", {0xc4, 0xe2, 0x6d, 0x92, 0x04, 0x88}, 6, .refused = true},
	{"rdtsc", {0x0f, 0x31}, 2, .refused = true},
	{"rdrand", {0x0f, 0xc7, 0xf0}, 3, .refused = true},
	{"syscall", {0x0f, 0x05}, 2, .refused = true},
	{"int3", {0xcc}, 1, .refused = true},
	{"fxsave", {0x0f, 0xae, 0x00}, 3, .refused = true},
	{"half an instruction", {0x8b, 0x05, 0x10}, 3, .refused = true},
	{"no instruction", {0x06}, 1, .refused = true},
};

static bool equal(const struct tr_operands *a, const struct tr_operands *b)
{
	if (a->n != b->n || a->pauses != b->pauses)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->op[i].addr != b->op[i].addr ||
		    a->op[i].len != b->op[i].len ||
		    a->op[i].written != b->op[i].written)
			return false;
	return true;
}

static void show(const struct one *c, const struct tr_operands *out)
{
	printf("# %s:", c->name);
	for (unsigned i = 0; i < out->n; i++)
		printf(" %u at 0x%llx%s", out->op[i].len,
		       (unsigned long long)out->op[i].addr,
		       out->op[i].written ? " written" : "");
	printf("\n");
}

static void finds_and_refuses(void)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const struct one *c = &all[i];
		struct tr_operands out;
		bool found = tr_operands_find(c->bytes, c->n, &regs, &out);
		bool right = found ? !c->refused && equal(&out, &c->out)
				   : c->refused;

		CHECK(right);
		if (!right)
			show(c, &out);
	}
}

int main(void)
{
	RUN(finds_and_refuses);
	return check_status();
}
