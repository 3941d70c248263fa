/* Padding found near code: in this program's own functions. */
#include "libtrace/state/padding.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/unit/check.h"

/*
 * Labels mark the padding that is there, and what looks like it: fillers that
 * are executed, or jumped to.
 */
__asm__(
	"	.text\n"
	"	.p2align 12\n"
	"pad_first:\n"
	"	.cfi_startproc\n"
	"	test %edi, %edi\n"
	"	je 1f\n"
	"	ret\n"
	"	.globl pad_ret, pad_ret_end\n"
	"pad_ret:\n"
	"	.byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"
	"pad_ret_end:\n"
	"1:	call pad_second\n"
	"	.globl pad_executed\n"
	"pad_executed:\n"
	"	.byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0\n"
	"	jmp 3f\n"
	"	.globl pad_target\n"
	"pad_target:\n"
	"	.byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0\n"
	"2:	.byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0\n"
	"3:	jne 2b\n"
	"	call pad_second\n"
	"	.cfi_endproc\n"
	"	.globl pad_between, pad_between_end\n"
	"pad_between:\n"
	"	.byte 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc\n"
	"pad_between_end:\n"
	"pad_second:\n"
	"	.cfi_startproc\n"
	"	xor %eax, %eax\n"
	"	.cfi_endproc\n"
	"	.globl pad_falls\n"
	"pad_falls:\n" /* the function runs on into it */
	"	.byte 0x0f, 0x1f, 0x80, 0, 0, 0, 0\n"
	"pad_third:\n"
	"	.cfi_startproc\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.globl pad_data\n"
	"pad_data:\n" /* no fillers */
	"	.byte 0, 0, 0, 0, 0, 0, 0, 0\n"
	"pad_fourth:\n"
	"	.cfi_startproc\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.p2align 12\n");

extern const char pad_ret[], pad_ret_end[], pad_executed[], pad_target[],
	pad_between[], pad_between_end[], pad_falls[], pad_data[];

static uintptr_t base;

static int take_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	base = info->dlpi_addr;
	return 1; /* the program itself comes first */
}

/* Code is mapped at its file offset plus the difference of its segment. */
static int segment(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *label = *(const char **)arg;
	uintptr_t a = (uintptr_t)label - base;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    a >= info->dlpi_phdr[i].p_vaddr &&
		    a < info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz)
			*(uint64_t *)arg = a - info->dlpi_phdr[i].p_vaddr +
					   info->dlpi_phdr[i].p_offset;
	return 1;
}

static uint64_t offset_of(const char *label)
{
	union { const char *label; uint64_t offset; } u = {.label = label};

	dl_iterate_phdr(segment, &u);
	return u.offset;
}

static bool has(const struct tr_gaps *g, const char *start, const char *end)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->gap[i].start == offset_of(start) &&
		    (!end || g->gap[i].end == offset_of(end)))
			return true;
	return false;
}

static struct tr_gaps gaps_near(const char *label, uint64_t reach)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct tr_gaps g;

	tr_padding_near(fd, offset_of(label), reach, &g);
	close(fd);
	return g;
}

static void test_found(void)
{
	struct tr_gaps g = gaps_near(pad_executed, 128);

	CHECK(has(&g, pad_ret, pad_ret_end));
	CHECK(has(&g, pad_between, pad_between_end));
	CHECK(!has(&g, pad_executed, NULL));
	CHECK(!has(&g, pad_target, NULL));
	CHECK(!has(&g, pad_falls, NULL));
	CHECK(!has(&g, pad_data, NULL));
}

static void test_reach(void)
{
	struct tr_gaps g = gaps_near(pad_executed, 8);

	CHECK(has(&g, pad_ret, pad_ret_end));
	CHECK(!has(&g, pad_between, NULL));
}

static void test_no_code(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	struct tr_gaps g = {.n = 1};

	tr_padding_near(fd, 0, 128, &g);
	CHECK(g.n == 0);
	close(fd);
	g = gaps_near(pad_ret, 128);
	CHECK(g.n > 0);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	tr_padding_near(fd, UINT64_MAX, 128, &g);
	CHECK(g.n == 0);
	close(fd);
}

int main(void)
{
	dl_iterate_phdr(take_base, NULL);
	RUN(test_found);
	RUN(test_reach);
	RUN(test_no_code);
	return check_status();
}
