/*
 * XSAVEC, as the dynamic loader uses it: what it writes must not depend on
 * when the program was interrupted.  Says what it wrote.
 */
#include <cpuid.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

#define AREA 4096
#define PARTS 0xe6 /* SSE, AVX, AVX-512 */

/* Save the state at rsp, copy the area to the argument. */
void save(uint8_t *to);
__asm__(".text\n"
	".p2align 4\n"
	".type save, @function\n"
	"save:\n"
	".cfi_startproc\n"
	"	push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"	sub $4096 + 64, %rsp\n"
	"	and $-64, %rsp\n"
	"	mov %rdi, %rdx\n"
	"	lea 64(%rsp), %rdi\n"
	"	mov $4096 / 8, %ecx\n"
	"	xor %eax, %eax\n"
	"	rep stosq\n"
	"	mov %rdx, %rdi\n"
	"	mov $0xe6, %eax\n"
	"	xor %edx, %edx\n"
	"	xsavec 0x40(%rsp)\n"
	"	lea 64(%rsp), %rsi\n"
	"	mov $4096 / 8, %ecx\n"
	"	rep movsq\n"
	"	leave\n"
	".cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size save, . - save\n"
	".skip 16, 0x90\n");

static int has_xsavec(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && a & 2;
}

/* Registers that have been used and hold nothing. */
static void touch(int i)
{
	if (i % 3 == 0 && __builtin_cpu_supports("avx512f"))
		__asm__ volatile("vpxorq %%zmm17, %%zmm17, %%zmm17" : : :
				 "memory");
	if (i % 5 == 0 && __builtin_cpu_supports("avx"))
		__asm__ volatile("vxorps %%ymm5, %%ymm5, %%ymm5" : : :
				 "xmm5");
	if (i % 7 == 0 && __builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" : : : "memory");
}

int main(void)
{
	static uint8_t area[AREA];
	uint64_t hash = 0, parts, present;
	uint32_t xmm0[4] = {1, 2, 3, 4};

	if (!has_xsavec()) {
		puts("ok");
		return 0;
	}
	for (int i = 0; i < 3000; i++) {
		touch(i);
		if (i % 100 == 0)
			sched_yield();
		__asm__ volatile("movdqu %0, %%xmm0" : : "m"(xmm0) : "xmm0");
		save(area);
		memcpy(&present, area + 512, sizeof present);
		memcpy(&parts, area + 520, sizeof parts);
		CHECK(memcmp(area + 160, xmm0, sizeof xmm0) == 0);
		CHECK((parts & ~((uint64_t)1 << 63) & ~(uint64_t)PARTS) == 0);
		CHECK(present & 2 && (present & ~parts) == 0);
		for (size_t k = 0; k < AREA; k++)
			hash = hash * 31 + area[k];
	}
	printf("%016lx\n", (unsigned long)hash);
	puts("ok");
	return 0;
}
