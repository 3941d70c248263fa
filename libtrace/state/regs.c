/* Register sets. */
#include "libtrace/state/regs.h"

#include <stdio.h>
#include <string.h>

struct tr_regs tr_regs_after_call(const struct tr_regs *entry, int64_t result)
{
	struct tr_regs r = *entry;

	r.rax = (uint64_t)result;
	r.rcx = r.rip;
	r.r11 = r.eflags;
	return r;
}

bool tr_regs_equal(const struct tr_regs *a, const struct tr_regs *b)
{
	struct tr_regs x = *a, y = *b;

	x.orig_rax = y.orig_rax = 0;
	return memcmp(&x, &y, sizeof x) == 0;
}

void tr_regs_describe_difference(const struct tr_regs *recorded,
				 const struct tr_regs *replayed,
				 struct tr_buf *out)
{
	char line[96];

#define X(reg)                                                               \
	if (recorded->reg != replayed->reg &&                                \
	    strcmp(#reg, "orig_rax") != 0) {                                 \
		int n = snprintf(line, sizeof line,                          \
				 "%-8s recorded 0x%llx, replayed 0x%llx\n",  \
				 #reg, (unsigned long long)recorded->reg,    \
				 (unsigned long long)replayed->reg);         \
		tr_buf_put(out, line, (size_t)n);                            \
	}
	TR_REGS(X)
#undef X
}
