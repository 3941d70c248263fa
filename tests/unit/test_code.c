/* Instructions that are patched: which XSAVEC are taken for one, and where
 * functions start, by whatever the file tells of them. */
#include "libtrace/state/code.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#include "libtrace/base/buf.h"
#include "libtrace/base/io.h"

#include "tests/unit/check.h"

struct sample {
	const char *bytes;
	size_t n;
	bool taken;
	int32_t displacement;
};
#define BYTES(s) (s), sizeof(s) - 1

static void test_xsavec(void)
{
	static const struct sample samples[] = {
		{BYTES("\x0f\xc7\x64\x24\x40"), true, 0x40},
		{BYTES("\x0f\xc7\x24\x24"), true, 0},
		{BYTES("\x0f\xc7\xa4\x24\x00\x01\x00\x00"), true, 0x100},
		{BYTES("\x48\x0f\xc7\x64\x24\x40"), true, 0x40},
		{BYTES("\x40\x0f\xc7\x64\x24\xc0"), true, -0x40},
		/* r12, an index, another base, no base */
		{BYTES("\x41\x0f\xc7\x64\x24\x40"), false, 0},
		{BYTES("\x0f\xc7\x64\x04\x40"), false, 0},
		{BYTES("\x0f\xc7\x67\x40"), false, 0},
		{BYTES("\x0f\xc7\x25\x00\x00\x00\x00"), false, 0},
		/* XSAVES, XRSTORS, RDRAND, XSAVE; too short, too long */
		{BYTES("\x0f\xc7\x6c\x24\x40"), false, 0},
		{BYTES("\x0f\xc7\x5c\x24\x40"), false, 0},
		{BYTES("\x0f\xc7\xf0\x90\x90"), false, 0},
		{BYTES("\x0f\xae\x64\x24\x40"), false, 0},
		{BYTES("\x0f\xc7\x64\x24"), false, 0},
		{BYTES("\x0f\xc7\x64\x24\x40\x90"), false, 0},
	};

	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		const struct sample *s = &samples[i];
		int32_t d = 0;

		CHECK(tr_xsavec_decode((const uint8_t *)s->bytes, s->n, &d) ==
		      s->taken);
		CHECK(!s->taken || d == s->displacement);
	}
}

__attribute__((noinline, used)) static uint64_t some_sites(void)
{
	unsigned aux;

	return __rdtsc() + __rdtscp(&aux);
}

/* The file's symbols, or its sorted table of functions, or the entries that this
 * table points to, taken away. */
enum { SYMBOLS = 1, TABLE = 2, FRAMES = 4 };

static void take_away(uint8_t *data, unsigned what)
{
	const Elf64_Ehdr *eh = (const void *)data;
	Elf64_Phdr *ph = (void *)(data + eh->e_phoff);
	Elf64_Shdr *sh = (void *)(data + eh->e_shoff);
	const char *names = (const char *)data + sh[eh->e_shstrndx].sh_offset;

	for (int i = 0; i < eh->e_phnum; i++)
		if (what & TABLE && ph[i].p_type == PT_GNU_EH_FRAME)
			ph[i].p_type = PT_NULL;
	for (int i = 0; i < eh->e_shnum; i++) {
		bool symbols = sh[i].sh_type == SHT_SYMTAB ||
			       sh[i].sh_type == SHT_DYNSYM;
		bool frames = strcmp(names + sh[i].sh_name, ".eh_frame") == 0;

		if ((what & SYMBOLS && symbols) || (what & FRAMES && frames))
			sh[i].sh_type = SHT_NOBITS;
	}
}

static struct tr_sites sites_without(unsigned what)
{
	TR_AUTOBUF struct tr_buf file = {0};
	struct tr_sites sites = {0};
	struct tr_error err;

	CHECK(tr_read_file(AT_FDCWD, "/proc/self/exe", 64 << 20, &file,
			   &err) == 0);
	take_away(file.data, what);
	tr_sites_scan(file.data, file.len, &sites);
	return sites;
}

static bool has(const struct tr_sites *sites, const struct tr_site *s)
{
	for (size_t i = 0; i < sites->n; i++)
		if (sites->s[i].offset == s->offset &&
		    sites->s[i].insn == s->insn)
			return true;
	return false;
}

static void test_starts(void)
{
	struct tr_sites all = sites_without(0);

	CHECK(some_sites() > 0);
	CHECK(all.n >= 2);
	for (unsigned what = 0; what < 8; what++) {
		struct tr_sites some = sites_without(what);
		/* Without the table its source is looked at. */
		bool known = (what & (SYMBOLS | TABLE)) != (SYMBOLS | TABLE) ||
			     !(what & FRAMES);

		CHECK(some.n == (known ? all.n : 0));
		CHECK(known || some.undecided >= all.n);
		for (size_t i = 0; i < some.n; i++)
			CHECK(has(&all, &some.s[i]));
		tr_sites_release(&some);
	}
	tr_sites_release(&all);
}

int main(void)
{
	RUN(test_starts);
	RUN(test_xsavec);
	return check_status();
}
