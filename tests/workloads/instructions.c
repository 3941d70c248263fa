/*
 * CPUID, RDTSC and RDTSCP in loops, with a timer's signals in between: they give
 * what they should, leave other registers alone, and give the same when
 * replayed.
 */
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "check.h"

/* Each executes its instruction and stores rax, rbx, rcx, rdx; the others hold
 * what is known before and after it.  Fillers are where a recorder may put
 * something. */
struct result {
	uint64_t rax, rbx, rcx, rdx;
	uint64_t changed;
};
void do_cpuid(struct result *r, uint64_t leaf);
void do_rdtsc(struct result *r, uint64_t leaf);
void do_rdtscp(struct result *r, uint64_t leaf);

#define FUNCTION(name, insn)                                                   \
	__asm__(".text\n"                                                      \
		".p2align 4\n"                                                 \
		".type " name ", @function\n"                                  \
		name ":\n"                                                     \
		".cfi_startproc\n"                                             \
		"	push %rbx\n"                                           \
		".cfi_def_cfa_offset 16\n"                                     \
		".cfi_offset %rbx, -16\n"                                      \
		"	mov %rsi, %rax\n"                                      \
		"	mov %rdi, %r10\n"                                      \
		"	mov $0x1234567812345678, %r11\n"                       \
		"	mov %r11, %rbx\n"                                      \
		"	mov %r11, %rdx\n"                                      \
		"	mov %r11, -0x20(%rsp)\n" /* the red zone */            \
		"	xor %ecx, %ecx\n"                                      \
		"	stc\n"                                                 \
		"	" insn "\n"                                            \
		"	mov %rax, (%r10)\n"                                    \
		"	mov %rbx, 8(%r10)\n"                                   \
		"	mov %rcx, 16(%r10)\n"                                  \
		"	mov %rdx, 24(%r10)\n"                                  \
		"	sbb %rax, %rax\n"                                      \
		"	inc %rax\n"                                            \
		"	mov $0x1234567812345678, %rdx\n"                       \
		"	xor %rdx, %r11\n"                                      \
		"	xor -0x20(%rsp), %rdx\n"                               \
		"	or %r11, %rax\n"                                       \
		"	or %rdx, %rax\n"                                       \
		"	xor %r10, %rdi\n"                                      \
		"	or %rdi, %rax\n"                                       \
		"	mov %rax, 32(%r10)\n"                                  \
		"	pop %rbx\n"                                            \
		".cfi_def_cfa_offset 8\n"                                      \
		"	ret\n"                                                 \
		".cfi_endproc\n"                                               \
		".size " name ", . - " name "\n"                               \
		".skip 20, 0x90\n")

FUNCTION("do_cpuid", "cpuid");
FUNCTION("do_rdtsc", "rdtsc");
FUNCTION("do_rdtscp", "rdtscp");

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks = ticks + 1;
}

static uint64_t hash;

static void mix(const struct result *r)
{
	const uint64_t v[] = {r->rax, r->rbx, r->rcx, r->rdx, (uint64_t)ticks};

	for (unsigned i = 0; i < sizeof v / sizeof *v; i++)
		hash = (hash ^ v[i]) * 0x9e3779b97f4a7c15 >> 1;
}

static void check_cpuid(void)
{
	static const char intel[] = "GenuineIntel", amd[] = "AuthenticAMD";
	struct result r;

	do_cpuid(&r, 0);
	CHECK(!r.changed && r.rax >> 32 == 0 && r.rax >= 1);
	CHECK(memcmp(&r.rbx, intel, 4) == 0 || memcmp(&r.rbx, amd, 4) == 0);
	CHECK(r.rbx >> 32 == 0 && r.rcx >> 32 == 0 && r.rdx >> 32 == 0);
	mix(&r);
	do_cpuid(&r, 1);
	CHECK(!r.changed && r.rdx & 1 << 26); /* SSE2 */
	mix(&r);
}

static void check_counter(void (*read)(struct result *, uint64_t), int rcx)
{
	struct result r;
	uint64_t before = 0, now;

	for (int i = 0; i < 20; i++) {
		read(&r, 7);
		now = r.rdx << 32 | r.rax;
		CHECK(!r.changed && r.rax >> 32 == 0 && r.rdx >> 32 == 0);
		CHECK(r.rbx == 0x1234567812345678 && (rcx || r.rcx == 0));
		CHECK(now > before);
		before = now;
		mix(&r);
	}
}

int main(void)
{
	const struct itimerval often = {{0, 5000}, {0, 5000}};
	const struct sigaction act = {.sa_handler = tick};

	CHECK(sigaction(SIGALRM, &act, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (int i = 0; i < 300; i++) {
		check_cpuid();
		check_counter(do_rdtsc, 0);
		check_counter(do_rdtscp, 1);
	}
	printf("%016lx\n", (unsigned long)hash);
	puts("ok");
	return 0;
}
