/*
 * The processor: what this one is, what a recording needs of it, and what a
 * program is told of it that shall run elsewhere as well.
 */
#ifndef TR_STATE_CPU_H
#define TR_STATE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "libtrace/base/error.h"

struct tr_cpu {
	char *model, *flags; /* as /proc/cpuinfo gives them; owned */
	uint64_t xcr0;       /* XSAVE components enabled */
};

void tr_cpu_read(struct tr_cpu *cpu);
void tr_cpu_release(struct tr_cpu *cpu);

/* The levels of the x86-64 psABI. */
enum tr_cpu_level {
	TR_CPU_ALL,
	TR_CPU_V1,
	TR_CPU_V2,
	TR_CPU_V3,
	TR_CPU_V4,
};

/* "x86-64-v2" and the like. */
bool tr_cpu_level_parse(const char *name, enum tr_cpu_level *level);

/*
 * Take what is above the level out of what CPUID gave for a leaf: registers
 * eax, ebx, ecx, edx.  With v1 and v2 there is no XSAVE, whose layout depends
 * on the machine.
 */
void tr_cpu_restrict(enum tr_cpu_level level, uint32_t leaf, uint32_t subleaf,
		     uint32_t regs[4]);

/*
 * Names of what a program recorded with these features may use and this
 * processor does not have, or NULL when that is nothing; owned by the caller.
 * `level` is what the program was held to.
 */
char *tr_cpu_missing(const char *flags, uint64_t xcr0, enum tr_cpu_level level,
		     const struct tr_cpu *here);

#endif
