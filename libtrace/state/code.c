/* Nondeterministic instructions in the text of ELF files. */
#include "libtrace/state/code.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"

/* A file's bytes and what of its structure is needed. */
struct image {
	const uint8_t *data;
	size_t size;
	const Elf64_Phdr *phdr;
	size_t phnum;
	uint64_t *starts; /* function starts, as addresses, ascending */
	size_t nstarts, starts_cap;
};

static const uint8_t RDTSC[2] = {0x0f, 0x31};
static const uint8_t RDTSCP[3] = {0x0f, 0x01, 0xf9};

enum tr_insn tr_insn_decode(const uint8_t *b, size_t n, uint8_t *length)
{
	if (n >= sizeof RDTSC && memcmp(b, RDTSC, sizeof RDTSC) == 0) {
		*length = sizeof RDTSC;
		return TR_INSN_RDTSC;
	}
	if (n >= sizeof RDTSCP && memcmp(b, RDTSCP, sizeof RDTSCP) == 0) {
		*length = sizeof RDTSCP;
		return TR_INSN_RDTSCP;
	}
	return 0;
}

static bool parse_elf(struct image *im)
{
	const Elf64_Ehdr *eh = (const void *)im->data;

	if (im->size < sizeof *eh || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_machine != EM_X86_64 ||
	    eh->e_phentsize != sizeof(Elf64_Phdr) || eh->e_phoff % 8 ||
	    eh->e_phoff > im->size ||
	    eh->e_phnum > (im->size - eh->e_phoff) / sizeof(Elf64_Phdr))
		return false;
	im->phdr = (const void *)(im->data + eh->e_phoff);
	im->phnum = eh->e_phnum;
	return true;
}

static const Elf64_Phdr *find_phdr(const struct image *im, uint32_t type)
{
	for (size_t i = 0; i < im->phnum; i++)
		if (im->phdr[i].p_type == type)
			return &im->phdr[i];
	return NULL;
}

static void add_start(struct image *im, uint64_t addr)
{
	TR_GROW(im->starts, im->nstarts, im->starts_cap);
	im->starts[im->nstarts++] = addr;
}

/*
 * The sorted table of .eh_frame_hdr (LSB Core, "The .eh_frame_hdr section"):
 * version 1, encodings, the count, then pairs of (function start, FDE) as
 * 32-bit offsets from the section's own address, which is the only encoding
 * (0x3b, datarel | sdata4) that linkers write.
 */
static void read_unwind_table(struct image *im)
{
	const Elf64_Phdr *ph = find_phdr(im, PT_GNU_EH_FRAME);
	const uint8_t *p;
	uint64_t count;

	if (!ph || ph->p_offset > im->size || ph->p_filesz < 12 ||
	    ph->p_filesz > im->size - ph->p_offset)
		return;
	p = im->data + ph->p_offset;
	if (p[0] != 1 || p[2] != 0x03 || p[3] != 0x3b)
		return;
	count = tr_get_le32(p + 8);
	if (count > (ph->p_filesz - 12) / 8)
		return;
	for (uint64_t i = 0; i < count; i++) {
		int32_t rel = (int32_t)tr_get_le32(p + 12 + 8 * i);

		add_start(im, ph->p_vaddr + (uint64_t)(int64_t)rel);
	}
}

/* Function symbols, for files without unwind table (Go, hand-written code). */
static void read_symbols(struct image *im)
{
	const Elf64_Ehdr *eh = (const void *)im->data;
	const Elf64_Shdr *sh = (const void *)(im->data + eh->e_shoff);

	if (eh->e_shentsize != sizeof *sh || eh->e_shoff % 8 ||
	    eh->e_shoff > im->size ||
	    eh->e_shnum > (im->size - eh->e_shoff) / sizeof *sh)
		return;
	for (size_t i = 0; i < eh->e_shnum; i++) {
		const Elf64_Sym *sym;

		if ((sh[i].sh_type != SHT_SYMTAB &&
		     sh[i].sh_type != SHT_DYNSYM) || sh[i].sh_offset % 8 ||
		    sh[i].sh_offset > im->size ||
		    sh[i].sh_size > im->size - sh[i].sh_offset)
			continue;
		sym = (const void *)(im->data + sh[i].sh_offset);
		for (size_t k = 0; k < sh[i].sh_size / sizeof *sym; k++)
			if (ELF64_ST_TYPE(sym[k].st_info) == STT_FUNC &&
			    sym[k].st_shndx != SHN_UNDEF)
				add_start(im, sym[k].st_value);
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The last function start at or below addr, or UINT64_MAX. */
static uint64_t start_below(const struct image *im, uint64_t addr)
{
	size_t lo = 0, hi = im->nstarts;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (im->starts[mid] <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? im->starts[lo - 1] : UINT64_MAX;
}

/* Does decoding from the function's start arrive at `at`? Offsets in a
 * segment whose bytes are code[0..size). */
static bool decodes_to(const ZydisDecoder *decoder, const uint8_t *code,
		       size_t start, size_t at, size_t size)
{
	while (start < at) {
		ZydisDecodedInstruction insn;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			decoder, NULL, code + start, size - start, &insn)))
			return false;
		start += insn.length;
	}
	return start == at;
}

/* Find every occurrence of one instruction's bytes in a segment. */
static void scan_pattern(const struct image *im, const Elf64_Phdr *ph,
			 const ZydisDecoder *decoder, const void *pattern,
			 size_t length, enum tr_insn insn,
			 struct tr_sites *sites)
{
	const uint8_t *code = im->data + ph->p_offset;
	size_t size = ph->p_filesz;
	const uint8_t *p = code, *end = code + size;

	for (; (p = memmem(p, (size_t)(end - p), pattern, length)); p++) {
		size_t at = (size_t)(p - code);
		uint64_t start = start_below(im, ph->p_vaddr + at);

		if (start == UINT64_MAX || start < ph->p_vaddr ||
		    !decodes_to(decoder, code, start - ph->p_vaddr, at, size)) {
			sites->undecided++;
			continue;
		}
		TR_GROW(sites->s, sites->n, sites->cap);
		sites->s[sites->n++] =
			(struct tr_site){ph->p_offset + at, insn,
					 (uint8_t)length};
	}
}

static void scan_segment(const struct image *im, const Elf64_Phdr *ph,
			 const ZydisDecoder *decoder, struct tr_sites *sites)
{
	scan_pattern(im, ph, decoder, RDTSC, sizeof RDTSC, TR_INSN_RDTSC,
		     sites);
	scan_pattern(im, ph, decoder, RDTSCP, sizeof RDTSCP, TR_INSN_RDTSCP,
		     sites);
}

static void scan_image(struct image *im, struct tr_sites *sites)
{
	ZydisDecoder decoder;

	/* Only lengths are asked for: the minimal mode is several times faster. */
	if (!parse_elf(im) ||
	    !ZYAN_SUCCESS(ZydisDecoderInit(&decoder,
					   ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderEnableMode(
		    &decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE)))
		return;
	read_unwind_table(im);
	read_symbols(im);
	qsort(im->starts, im->nstarts, sizeof *im->starts, by_value);
	for (size_t i = 0; i < im->phnum; i++) {
		const Elf64_Phdr *ph = &im->phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) &&
		    ph->p_offset <= im->size &&
		    ph->p_filesz <= im->size - ph->p_offset)
			scan_segment(im, ph, &decoder, sites);
	}
	free(im->starts);
}

void tr_sites_find(int fd, struct tr_sites *sites)
{
	struct image im = {0};
	struct stat st;
	void *data;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 64)
		return;
	im.size = (size_t)st.st_size;
	data = mmap(NULL, im.size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd,
		    0);
	if (data == MAP_FAILED)
		return;
	im.data = data;
	scan_image(&im, sites);
	munmap(data, im.size);
}

void tr_sites_release(struct tr_sites *sites)
{
	free(sites->s);
	*sites = (struct tr_sites){0};
}
