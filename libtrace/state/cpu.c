/* The processor: identity, features, levels. */
#include "libtrace/state/cpu.h"

#include <cpuid.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/io.h"

/*
 * What user code can tell by executing it, as /proc/cpuinfo spells it, and the
 * level that has it (psABI for x86-64, "Micro-architecture levels"); with
 * TR_CPU_ALL none has.
 */
static const struct feature {
	const char *name;
	enum tr_cpu_level level;
} features[] = {
	{"cx16", TR_CPU_V2},       {"lahf_lm", TR_CPU_V2},
	{"popcnt", TR_CPU_V2},     {"pni", TR_CPU_V2},
	{"sse4_1", TR_CPU_V2},     {"sse4_2", TR_CPU_V2},
	{"ssse3", TR_CPU_V2},      {"avx", TR_CPU_V3},
	{"avx2", TR_CPU_V3},       {"bmi1", TR_CPU_V3},
	{"bmi2", TR_CPU_V3},       {"f16c", TR_CPU_V3},
	{"fma", TR_CPU_V3},        {"abm", TR_CPU_V3},
	{"movbe", TR_CPU_V3},      {"xsave", TR_CPU_V3},
	{"avx512f", TR_CPU_V4},    {"avx512bw", TR_CPU_V4},
	{"avx512cd", TR_CPU_V4},   {"avx512dq", TR_CPU_V4},
	{"avx512vl", TR_CPU_V4},   {"adx", TR_CPU_ALL},
	{"aes", TR_CPU_ALL},       {"amx_bf16", TR_CPU_ALL},
	{"amx_int8", TR_CPU_ALL},  {"amx_tile", TR_CPU_ALL},
	{"avx512_bf16", TR_CPU_ALL}, {"avx512_bitalg", TR_CPU_ALL},
	{"avx512_fp16", TR_CPU_ALL}, {"avx512_vbmi2", TR_CPU_ALL},
	{"avx512_vnni", TR_CPU_ALL}, {"avx512_vpopcntdq", TR_CPU_ALL},
	{"avx512ifma", TR_CPU_ALL}, {"avx512vbmi", TR_CPU_ALL},
	{"avx_vnni", TR_CPU_ALL},  {"clflushopt", TR_CPU_ALL},
	{"clwb", TR_CPU_ALL},      {"clzero", TR_CPU_ALL},
	{"fma4", TR_CPU_ALL},      {"fsgsbase", TR_CPU_ALL},
	{"gfni", TR_CPU_ALL},      {"movdir64b", TR_CPU_ALL},
	{"movdiri", TR_CPU_ALL},   {"ospke", TR_CPU_ALL},
	{"pclmulqdq", TR_CPU_ALL}, {"rdpid", TR_CPU_ALL},
	{"rdrand", TR_CPU_ALL},    {"rdseed", TR_CPU_ALL},
	{"rdtscp", TR_CPU_ALL},    {"rtm", TR_CPU_ALL},
	{"serialize", TR_CPU_ALL}, {"sha_ni", TR_CPU_ALL},
	{"sse4a", TR_CPU_ALL},     {"tbm", TR_CPU_ALL},
	{"vaes", TR_CPU_ALL},      {"vpclmulqdq", TR_CPU_ALL},
	{"waitpkg", TR_CPU_ALL},   {"xop", TR_CPU_ALL},
	{"xsavec", TR_CPU_ALL},    {"xsaveopt", TR_CPU_ALL},
};
#define NFEATURES (sizeof features / sizeof *features)

/* The value after "key\t: " in /proc/cpuinfo's first processor. */
static char *cpuinfo(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	p = p ? strchr(p, ':') : NULL;
	if (!p)
		return tr_strdup("");
	p += strspn(p, ": \t");
	return tr_strndup(p, strcspn(p, "\n"));
}

static uint64_t read_xcr0(void)
{
	unsigned a, b, c, d, lo, hi;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}

/* The file tells of every processor; the first is in the first page. */
void tr_cpu_read(struct tr_cpu *cpu)
{
	TR_AUTOCLOSE int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	char text[8192];
	ssize_t n = fd < 0 ? 0 : tr_read_full(fd, text, sizeof text - 1);

	text[n < 0 ? 0 : n] = '\0';
	*cpu = (struct tr_cpu){cpuinfo(text, "model name"),
			       cpuinfo(text, "\nflags"), read_xcr0()};
}

void tr_cpu_release(struct tr_cpu *cpu)
{
	free(cpu->model);
	free(cpu->flags);
	*cpu = (struct tr_cpu){0};
}

/* ---- levels ---- */

bool tr_cpu_level_parse(const char *name, enum tr_cpu_level *level)
{
	static const char *const names[] = {
		[TR_CPU_V1] = "x86-64-v1", [TR_CPU_V2] = "x86-64-v2",
		[TR_CPU_V3] = "x86-64-v3", [TR_CPU_V4] = "x86-64-v4",
	};

	for (int i = TR_CPU_V1; i <= TR_CPU_V4; i++) {
		if (strcmp(name, names[i]) == 0) {
			*level = (enum tr_cpu_level)i;
			return true;
		}
	}
	*level = TR_CPU_V1;
	return strcmp(name, "x86-64") == 0;
}

#define BIT(n) (UINT32_C(1) << (n))

/*
 * What is left of the feature bits of a leaf, by level and register (Intel
 * SDM, CPUID; AMD APM volume 3, appendix E).  Bits that tell of the kernel's
 * side or of what every x86-64 processor has stay.
 */
static const struct mask {
	uint32_t leaf, subleaf;
	int reg; /* 0 eax, 1 ebx, 2 ecx, 3 edx */
	uint32_t always, v2, v3, v4;
} masks[] = {
	/* ecx: hypervisor; v2: sse3 ssse3 cx16 sse4.1 sse4.2 popcnt; v3: fma
	 * movbe xsave osxsave avx f16c */
	{1, 0, 2, BIT(31),
	 BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23),
	 BIT(12) | BIT(22) | BIT(26) | BIT(27) | BIT(28) | BIT(29), 0},
	/* ebx: erms; v3: bmi1 avx2 bmi2; v4: avx512 f dq cd bw vl */
	{7, 0, 1, BIT(9), 0, BIT(3) | BIT(5) | BIT(8),
	 BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31)},
	{7, 0, 2, 0, 0, 0, 0},
	{7, 0, 3, 0, 0, 0, 0},
	{7, 1, 0, 0, 0, 0, 0},
	{7, 1, 1, 0, 0, 0, 0},
	{7, 1, 2, 0, 0, 0, 0},
	{7, 1, 3, 0, 0, 0, 0},
	{7, 2, 3, 0, 0, 0, 0},
	/* Which XSAVE instructions there are: the plain ones are enough. */
	{0xd, 1, 0, 0, 0, 0, 0},
	{0x80000001, 0, 2, 0, BIT(0), BIT(5), 0},
	/* syscall, nx, 1 GiB pages, rdtscp, long mode; no 3DNow! */
	{0x80000001, 0, 3, ~(BIT(22) | BIT(30) | BIT(31)), 0, 0, 0},
	{0x80000008, 0, 1, 0, 0, 0, 0},
};

/* Leaves with nothing but details of features that no level has. */
static bool is_dropped(enum tr_cpu_level level, uint32_t leaf)
{
	return leaf == 0x14 || leaf == 0x19 || leaf == 0x1d || leaf == 0x1e ||
	       leaf == 0x24 || (leaf == 0xd && level < TR_CPU_V3);
}

void tr_cpu_restrict(enum tr_cpu_level level, uint32_t leaf, uint32_t subleaf,
		     uint32_t regs[4])
{
	if (level == TR_CPU_ALL)
		return;
	if (is_dropped(level, leaf))
		memset(regs, 0, 4 * sizeof *regs);
	for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
		const struct mask *m = &masks[i];
		uint32_t keep = m->always;

		if (m->leaf != leaf || ((leaf == 7 || leaf == 0xd) &&
					m->subleaf != subleaf))
			continue;
		if (level >= TR_CPU_V2)
			keep |= m->v2;
		if (level >= TR_CPU_V3)
			keep |= m->v3;
		if (level >= TR_CPU_V4)
			keep |= m->v4;
		regs[m->reg] &= keep;
	}
}

/* ---- comparing ---- */

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = words; (p = strstr(p, word)); p += n)
		if ((p == words || p[-1] == ' ') &&
		    (p[n] == '\0' || p[n] == ' '))
			return true;
	return false;
}

static bool may_use(const struct feature *f, enum tr_cpu_level level)
{
	return level == TR_CPU_ALL ||
	       (f->level != TR_CPU_ALL && f->level <= level);
}

static void add_word(char **list, const char *word)
{
	char *longer = tr_printf("%s%s%s", *list ? *list : "",
				 *list ? " " : "", word);

	free(*list);
	*list = longer;
}

char *tr_cpu_missing(const char *flags, uint64_t xcr0, enum tr_cpu_level level,
		     const struct tr_cpu *here)
{
	char *missing = NULL;
	char text[64];

	for (size_t i = 0; i < NFEATURES; i++)
		if (may_use(&features[i], level) &&
		    has_word(flags, features[i].name) &&
		    !has_word(here->flags, features[i].name))
			add_word(&missing, features[i].name);
	/* Without XSAVE no program can tell. */
	if (xcr0 == here->xcr0 || (level != TR_CPU_ALL && level < TR_CPU_V3))
		return missing;
	snprintf(text, sizeof text, "xsave-layout(0x%" PRIx64 ",here:0x%" PRIx64
		 ")", xcr0, here->xcr0);
	add_word(&missing, text);
	return missing;
}
