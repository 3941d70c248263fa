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
	"pad_fifth:\n"
	"	.cfi_startproc\n"
	"	mov $39, %eax\n"
	"	.globl pad_led\n"
	"pad_led:\n"
	"	syscall\n"
	"	movabs $0x2700000001b8, %rax\n" /* looks like one */
	"	.globl pad_inside\n"
	"pad_inside:\n"
	"	syscall\n"
	"	mov $39, %r8d\n" /* six bytes */
	"	.globl pad_longer\n"
	"pad_longer:\n"
	"	syscall\n"
	"	test %edi, %edi\n"
	"	mov %r12d, %eax\n" /* three bytes */
	"	mov %esi, %ecx\n" /* two */
	"	.globl pad_two\n"
	"pad_two:\n"
	"	syscall\n"
	"	xor %ecx, %ecx\n"
	"	mov 8(%rsp), %edi\n" /* memory */
	"	mov %esi, %ecx\n"
	"	.globl pad_memory\n"
	"pad_memory:\n"
	"	syscall\n"
	"	jmp 4f + 1\n"
	"4:	mov $39, %eax\n"
	"	.globl pad_entered\n"
	"pad_entered:\n"
	"	syscall\n"
	"	jmp 5f\n"
	"	mov $39, %eax\n"
	"	.globl pad_joined\n"
	"pad_joined:\n" /* others come to the call, not to the MOV */
	"5:	syscall\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"pad_sixth:\n"
	"	.cfi_startproc\n"
	"	jmp *%rdx\n"
	"	mov $39, %eax\n"
	"	.globl pad_switch_one\n"
	"pad_switch_one:\n"
	"	syscall\n"
	"	mov %r12d, %eax\n"
	"	mov %esi, %ecx\n"
	"	.globl pad_switch_two\n"
	"pad_switch_two:\n"
	"	syscall\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"pad_seventh:\n"
	"	.cfi_startproc\n"
	"	test %edi, %edi\n"
	"	jne pad_unlikely\n"
	"	mov %r12d, %eax\n"
	"6:	mov %esi, %ecx\n"
	"	.globl pad_come_back\n"
	"pad_come_back:\n"
	"	syscall\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.p2align 12\n"
	"pad_unlikely:\n"
	"	.cfi_startproc\n"
	"	xor %eax, %eax\n"
	"	jmp 6b\n"
	"	.cfi_endproc\n"
	"	.p2align 12\n");

extern const char pad_ret[], pad_ret_end[], pad_executed[], pad_target[],
	pad_between[], pad_between_end[], pad_falls[], pad_data[], pad_led[],
	pad_inside[], pad_longer[], pad_entered[], pad_joined[],
	pad_two[], pad_memory[], pad_switch_one[], pad_switch_two[],
	pad_come_back[];

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

static int segment_end(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    info->dlpi_phdr[i].p_flags & PF_X)
			*(uint64_t *)arg = info->dlpi_phdr[i].p_offset +
					   info->dlpi_phdr[i].p_filesz;
	return 1;
}

static uint64_t offset_of(const char *label)
{
	union { const char *label; uint64_t offset; } u = {.label = label};

	dl_iterate_phdr(segment, &u);
	return u.offset;
}

/* Offset of the end of this program's code. */
static uint64_t code_end(void)
{
	uint64_t end = 0;

	dl_iterate_phdr(segment_end, &end);
	return end;
}

static bool has(const struct tr_room *g, const char *start, const char *end)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->gap[i].start == offset_of(start) &&
		    (!end || g->gap[i].end == offset_of(end)))
			return true;
	return false;
}

static struct tr_room room_near(const char *label, uint64_t reach)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct tr_padding *p = tr_padding_open(fd);
	struct tr_room g = {0};

	CHECK(p);
	if (p)
		tr_padding_near(p, offset_of(label), reach, &g);
	tr_padding_close(p);
	close(fd);
	return g;
}

static void test_found(void)
{
	struct tr_room g = room_near(pad_executed, 128);

	CHECK(has(&g, pad_ret, pad_ret_end));
	CHECK(has(&g, pad_between, pad_between_end));
	CHECK(!has(&g, pad_executed, NULL));
	CHECK(!has(&g, pad_target, NULL));
	CHECK(!has(&g, pad_falls, NULL));
	CHECK(!has(&g, pad_data, NULL));
}

static void test_reach(void)
{
	struct tr_room g = room_near(pad_executed, 8);

	CHECK(has(&g, pad_ret, pad_ret_end));
	CHECK(!has(&g, pad_between, NULL));
}

static void test_lead(void)
{
	CHECK(room_near(pad_led, 128).lead == 5);
	CHECK(room_near(pad_led, 128).lead_is_one);
	CHECK(room_near(pad_joined, 128).lead == 5);
	CHECK(room_near(pad_inside, 128).lead == 10);
	CHECK(room_near(pad_longer, 128).lead == 6);
	CHECK(room_near(pad_two, 128).lead == 5);
	CHECK(!room_near(pad_two, 128).lead_is_one);
	CHECK(!room_near(pad_memory, 128).lead);
	CHECK(!room_near(pad_entered, 128).lead);
	CHECK(!room_near(pad_executed, 128).lead);
}

/* From the end of the segment, where it is in a page, to the page's. */
static void test_tail(void)
{
	struct tr_gap tail = room_near(pad_led, 128).tail;

	CHECK(tail.start > offset_of(pad_joined));
	CHECK(tail.end % 4096 == 0 && tail.end - tail.start < 4096);
	CHECK(tail.start == code_end());
}

/* An indirect branch may lead to any instruction of its function. */
static void test_indirect(void)
{
	CHECK(room_near(pad_switch_one, 128).lead == 5);
	CHECK(!room_near(pad_switch_two, 128).lead);
	CHECK(!room_near(pad_come_back, 128).lead);
}

static void test_moves(void)
{
	static const uint8_t good[] = {0x44, 0x89, 0xe0, 0x89, 0xf1};
	static const uint8_t rip[] = {0x48, 0x8d, 0x05, 0, 0, 0, 0};
	static const uint8_t absolute[] = {0xa1, 0, 0, 0, 0, 0, 0, 0, 0};
	static const uint8_t segment[] = {0x8e, 0xd8, 0x44, 0x89, 0xe0};
	static const uint8_t stack[] = {0x50, 0x44, 0x89, 0xe0, 0x58};

	CHECK(tr_lead_moves(good, sizeof good));
	CHECK(!tr_lead_moves(good, 4));
	CHECK(!tr_lead_moves(rip, sizeof rip));
	CHECK(!tr_lead_moves(absolute, sizeof absolute));
	CHECK(!tr_lead_moves(segment, sizeof segment));
	CHECK(!tr_lead_moves(stack, sizeof stack));
}

static void test_no_code(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	struct tr_room g = {.n = 1};
	struct tr_padding *p;

	CHECK(!tr_padding_open(fd));
	close(fd);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	p = tr_padding_open(fd);
	close(fd);
	CHECK(p);
	if (p)
		tr_padding_near(p, UINT64_MAX, 128, &g);
	CHECK(g.n == 0);
	tr_padding_close(p);
}

int main(void)
{
	dl_iterate_phdr(take_base, NULL);
	RUN(test_found);
	RUN(test_reach);
	RUN(test_lead);
	RUN(test_tail);
	RUN(test_indirect);
	RUN(test_moves);
	RUN(test_no_code);
	return check_status();
}
