/* Where the functions of an ELF file start. */
#include "libtrace/state/starts.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"

struct file {
	const uint8_t *data;
	size_t size;
};

static bool is_in(const struct file *f, uint64_t offset, uint64_t n)
{
	return offset <= f->size && n <= f->size - offset;
}

static void add(struct tr_starts *s, uint64_t addr)
{
	TR_GROW(s->addr, s->n, s->cap);
	s->addr[s->n++] = addr;
}

/*
 * The sorted table of .eh_frame_hdr (LSB Core, "The .eh_frame_hdr section"):
 * version 1, encodings, the count, then pairs of (function start, FDE) as
 * 32-bit offsets from the section's own address, which is the only encoding
 * (0x3b, datarel | sdata4) that linkers write.
 */
static void read_unwind_table(const struct file *f, const Elf64_Phdr *ph,
			      struct tr_starts *s)
{
	const uint8_t *p = f->data + ph->p_offset;
	uint64_t count;

	if (!is_in(f, ph->p_offset, ph->p_filesz) || ph->p_filesz < 12 ||
	    p[0] != 1 || p[2] != 0x03 || p[3] != 0x3b)
		return;
	count = tr_get_le32(p + 8);
	if (count > (ph->p_filesz - 12) / 8)
		return;
	for (uint64_t i = 0; i < count; i++) {
		int32_t rel = (int32_t)tr_get_le32(p + 12 + 8 * i);

		add(s, ph->p_vaddr + (uint64_t)(int64_t)rel);
	}
}

/*
 * Without that table, its source: the entries of .eh_frame (LSB Core, "The
 * .eh_frame section").  A CIE (its id is 0) tells by the letter R of its
 * augmentation how its FDEs give the function's start; that is relative to the
 * place where it stands (0x1b, pcrel | sdata4) in what compilers make for x86-64.
 */
#define PCREL_SDATA4 0x1bu

static bool skip_text(struct tr_span *s)
{
	while (s->p < s->end && *s->p)
		s->p++;
	return s->p < s->end && s->p++;
}

static bool is_pcrel(const uint8_t *data, const uint8_t *end)
{
	struct tr_span s = {data, end};
	const char *letter = (const char *)data + 1;
	uint64_t skipped;

	/* Version, augmentation, alignments, return register. */
	if (!tr_span_left(&s) || *s.p++ != 1 || *letter != 'z' ||
	    !skip_text(&s) || !tr_span_varint(&s, &skipped) ||
	    !tr_span_varint(&s, &skipped) || !tr_span_varint(&s, &skipped) ||
	    !tr_span_varint(&s, &skipped))
		return false;
	/* A byte for each letter, but for the personality's address. */
	for (letter++; *letter && tr_span_left(&s) > 5; letter++) {
		if (*letter == 'R')
			return *s.p == PCREL_SDATA4;
		if (*letter == 'P' && (*s.p & 7) != 3)
			return false; /* not four bytes */
		if (*letter == 'P')
			s.p += 4;
		if (*letter == 'P' || *letter == 'L')
			s.p++;
	}
	return false;
}

static void read_frames(const struct file *f, const Elf64_Shdr *sh,
			struct tr_starts *s)
{
	const uint8_t *start = f->data + sh->sh_offset;
	uint64_t size, n = sh->sh_size;

	for (uint64_t at = 0; n - at >= 12; at += 4 + size) {
		const uint8_t *p = start + at;
		uint64_t back = tr_get_le32(p + 4);

		size = tr_get_le32(p);
		if (size < 8 || size > n - at - 4)
			return;
		/* An FDE has the distance back to its CIE. */
		if (back == 0 || back > at + 4 || at + 4 - back > n - 12 ||
		    !is_pcrel(start + (at + 4 - back) + 8, start + n))
			continue;
		add(s, sh->sh_addr + at + 8 +
		       (uint64_t)(int32_t)tr_get_le32(p + 8));
	}
}

static void read_symbols(const struct file *f, const Elf64_Shdr *sh,
			 struct tr_starts *s)
{
	const Elf64_Sym *sym = (const void *)(f->data + sh->sh_offset);

	if (sh->sh_offset % 8)
		return;
	for (size_t k = 0; k < sh->sh_size / sizeof *sym; k++)
		if (ELF64_ST_TYPE(sym[k].st_info) == STT_FUNC &&
		    sym[k].st_shndx != SHN_UNDEF)
			add(s, sym[k].st_value);
}

/*
 * Go's table of functions (the package debug/gosym reads it, too): a magic
 * number that names the layout, two zeros, the instruction quantum, the size
 * of a pointer, the number of functions.  Layout 1.2 goes on with pairs
 * (address, offset of data), 1.16 has four more words and then the offset of
 * these pairs, 1.18 and later have the address of the text, too, and pairs of
 * 32-bit numbers, the first relative to it.  In a position-independent file
 * that address is not relocated: 0.
 */
#define GO_1_2 0xfffffffbu
#define GO_1_16 0xfffffffau
#define GO_1_18 0xfffffff0u
#define GO_1_20 0xfffffff1u

static void read_go_pairs(const uint8_t *p, uint64_t left, uint64_t n,
			  uint64_t text, bool narrow, struct tr_starts *s)
{
	size_t size = narrow ? 8 : 16;

	if (n > left / size)
		return;
	for (uint64_t i = 0; i < n; i++, p += size)
		add(s, narrow ? text + tr_get_le32(p) : tr_get_le64(p));
}

static void read_go_table(const struct file *f, const Elf64_Shdr *sh,
			  uint64_t text, struct tr_starts *s)
{
	const uint8_t *p = f->data + sh->sh_offset;
	uint64_t n, at;

	if (sh->sh_size < 72 || tr_get_le32(p + 4) != 0x08010000)
		return; /* quantum 1, pointers of 8 bytes */
	n = tr_get_le64(p + 8);
	switch (tr_get_le32(p)) {
	case GO_1_2:
		at = 16;
		break;
	case GO_1_16:
		at = tr_get_le64(p + 56);
		break;
	case GO_1_18:
	case GO_1_20:
		at = tr_get_le64(p + 64);
		if (tr_get_le64(p + 24))
			text = tr_get_le64(p + 24);
		break;
	default:
		return;
	}
	if (at <= sh->sh_size)
		read_go_pairs(p + at, sh->sh_size - at, n, text,
			      tr_get_le32(p) == GO_1_18 ||
			      tr_get_le32(p) == GO_1_20, s);
}

/* Does the section's name end so? */
static bool is_named(const struct file *f, const Elf64_Shdr *names,
		     const Elf64_Shdr *sh, const char *end)
{
	const char *name = (const char *)f->data + names->sh_offset;
	size_t len, n = strlen(end);

	if (!is_in(f, names->sh_offset, names->sh_size) ||
	    sh->sh_name >= names->sh_size)
		return false;
	name += sh->sh_name;
	len = strnlen(name, names->sh_size - sh->sh_name);
	return len >= n && memcmp(name + len - n, end, n) == 0;
}

static void read_sections(const struct file *f, bool frames,
			  struct tr_starts *s)
{
	const Elf64_Ehdr *eh = (const void *)f->data;
	const Elf64_Shdr *sh = (const void *)(f->data + eh->e_shoff);
	uint64_t text = 0;

	if (eh->e_shentsize != sizeof *sh || eh->e_shoff % 8 ||
	    !is_in(f, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof *sh) ||
	    eh->e_shstrndx >= eh->e_shnum)
		return;
	for (size_t i = 0; i < eh->e_shnum; i++) {
		const Elf64_Shdr *names = &sh[eh->e_shstrndx];

		if (sh[i].sh_type == SHT_NOBITS ||
		    !is_in(f, sh[i].sh_offset, sh[i].sh_size))
			continue;
		if (sh[i].sh_type == SHT_SYMTAB || sh[i].sh_type == SHT_DYNSYM)
			read_symbols(f, &sh[i], s);
		else if (frames && is_named(f, names, &sh[i], ".eh_frame"))
			read_frames(f, &sh[i], s);
		else if (is_named(f, names, &sh[i], ".gopclntab"))
			read_go_table(f, &sh[i], text, s);
		else if (is_named(f, names, &sh[i], ".text"))
			text = sh[i].sh_addr;
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void tr_starts_read(const uint8_t *data, size_t size, struct tr_starts *s)
{
	const struct file f = {data, size};
	const Elf64_Ehdr *eh = (const void *)data;
	const Elf64_Phdr *ph = (const void *)(data + eh->e_phoff);
	bool has_table = false;

	for (size_t i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type != PT_GNU_EH_FRAME)
			continue;
		has_table = true;
		read_unwind_table(&f, &ph[i], s);
	}
	read_sections(&f, !has_table, s);
	if (s->n)
		qsort(s->addr, s->n, sizeof *s->addr, by_value);
}

uint64_t tr_starts_below(const struct tr_starts *s, uint64_t addr)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->addr[mid] <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? s->addr[lo - 1] : UINT64_MAX;
}

void tr_starts_release(struct tr_starts *s)
{
	free(s->addr);
	*s = (struct tr_starts){0};
}
