/* Padding in code. */
#include "libtrace/state/padding.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <emmintrin.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"

struct tr_padding {
	const uint8_t *data; /* mapped */
	size_t size;
	const Elf64_Phdr *phdr;
	size_t phnum;
	const uint8_t *table; /* pairs of (function, FDE), see entry_* */
	uint64_t table_addr;  /* what the pairs are relative to */
	size_t n;
	ZydisDecoder decoder;
	/* A bit for each byte of one segment: could a branch lead there? */
	uint8_t *entered;
	const Elf64_Phdr *entered_of;
};

/* The file's bytes at an address, at least n of them, or NULL. */
static const uint8_t *at(const struct tr_padding *e, uint64_t addr, uint64_t n)
{
	for (size_t i = 0; i < e->phnum; i++) {
		const Elf64_Phdr *ph = &e->phdr[i];
		uint64_t from = addr - ph->p_vaddr;

		if (ph->p_type == PT_LOAD && addr >= ph->p_vaddr &&
		    from < ph->p_filesz && n <= ph->p_filesz - from &&
		    ph->p_offset <= e->size &&
		    ph->p_filesz <= e->size - ph->p_offset)
			return e->data + ph->p_offset + from;
	}
	return NULL;
}

/* The executable segment an offset is in. */
static const Elf64_Phdr *segment_of(const struct tr_padding *e, uint64_t offset)
{
	for (size_t i = 0; i < e->phnum; i++) {
		const Elf64_Phdr *ph = &e->phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) &&
		    ph->p_offset <= e->size &&
		    ph->p_filesz <= e->size - ph->p_offset &&
		    offset >= ph->p_offset &&
		    offset - ph->p_offset < ph->p_filesz)
			return ph;
	}
	return NULL;
}

/*
 * The sorted table of .eh_frame_hdr (LSB Core, "The .eh_frame_hdr section"),
 * in the only encoding that linkers write: datarel | sdata4.
 */
static bool find_table(struct tr_padding *e)
{
	for (size_t i = 0; i < e->phnum; i++) {
		const Elf64_Phdr *ph = &e->phdr[i];
		const uint8_t *p;

		if (ph->p_type != PT_GNU_EH_FRAME || ph->p_offset > e->size ||
		    ph->p_filesz < 12 || ph->p_filesz > e->size - ph->p_offset)
			continue;
		p = e->data + ph->p_offset;
		e->n = tr_get_le32(p + 8);
		e->table = p + 12;
		e->table_addr = ph->p_vaddr;
		return p[0] == 1 && p[2] == 0x03 && p[3] == 0x3b &&
		       e->n <= (ph->p_filesz - 12) / 8;
	}
	return false;
}

static bool init_decoder(struct tr_padding *e)
{
	return ZYAN_SUCCESS(ZydisDecoderInit(&e->decoder,
					     ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64));
}

static bool parse(struct tr_padding *e)
{
	const Elf64_Ehdr *eh = (const void *)e->data;

	if (e->size < sizeof *eh || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_machine != EM_X86_64 ||
	    eh->e_phentsize != sizeof(Elf64_Phdr) || eh->e_phoff % 8 ||
	    eh->e_phoff > e->size ||
	    eh->e_phnum > (e->size - eh->e_phoff) / sizeof(Elf64_Phdr))
		return false;
	e->phdr = (const void *)(e->data + eh->e_phoff);
	e->phnum = eh->e_phnum;
	return find_table(e) && init_decoder(e);
}

static uint64_t relative(const struct tr_padding *e, const uint8_t *p)
{
	return e->table_addr + (uint64_t)(int64_t)(int32_t)tr_get_le32(p);
}

static uint64_t entry_start(const struct tr_padding *e, size_t i)
{
	return relative(e, e->table + 8 * i);
}

/*
 * The end of function i, from its FDE (LSB Core, "The .eh_frame section"):
 * length, distance to the CIE, then start and size of the function.  The
 * encoding is not looked up but proved by the start: pcrel | sdata4.
 */
static bool entry_end(const struct tr_padding *e, size_t i, uint64_t *end)
{
	uint64_t fde = relative(e, e->table + 8 * i + 4);
	const uint8_t *p = at(e, fde, 16);

	if (!p || tr_get_le32(p) == 0xffffffff ||
	    fde + 8 + (uint64_t)(int64_t)(int32_t)tr_get_le32(p + 8) !=
		    entry_start(e, i))
		return false;
	*end = entry_start(e, i) + tr_get_le32(p + 12);
	return true;
}

static bool decode(const struct tr_padding *e, const uint8_t *p, size_t n,
		   ZydisDecodedInstruction *insn)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&e->decoder, NULL, p,
							  n, insn));
}

static bool is_filler(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_NOP ||
	       insn->mnemonic == ZYDIS_MNEMONIC_INT3;
}

static bool is_padding(const struct tr_padding *e, uint64_t start, uint64_t end)
{
	const uint8_t *p = at(e, start, end - start);
	ZydisDecodedInstruction insn;

	for (size_t n = end - start; p && n > 0;
	     p += insn.length, n -= insn.length)
		if (!decode(e, p, n, &insn) || !is_filler(&insn))
			return false;
	return p;
}

/* Nothing behind the instruction is reached from it. */
static bool is_end(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	       insn->meta.category == ZYDIS_CATEGORY_RET ||
	       insn->mnemonic == ZYDIS_MNEMONIC_UD2 ||
	       insn->mnemonic == ZYDIS_MNEMONIC_HLT;
}

/* The part of the code that is looked at, and what was found there. */
struct window {
	uint64_t lo, hi;
	uint64_t site;
	/* Plain instructions right before the site, in their order. */
	uint64_t before[TR_LEAD_MAX];
	unsigned nbefore;
	bool indirect; /* its function has branches that lead anywhere */
	struct tr_gap gap[TR_GAPS_MAX]; /* addresses */
	size_t n;
	uint64_t target[512]; /* of branches into the window */
	size_t ntargets;
};

static void add_gap(struct window *w, uint64_t start, uint64_t end)
{
	if (w->n < TR_GAPS_MAX && end > w->lo && start < w->hi)
		w->gap[w->n++] = (struct tr_gap){start, end};
}

static bool add_target(struct window *w, uint64_t target)
{
	if (target < w->lo - 64 || target > w->hi + 64)
		return true;
	if (w->ntargets == sizeof w->target / sizeof *w->target)
		return false;
	w->target[w->ntargets++] = target;
	return true;
}

/* Registers alone, and no fault; MOV to and from segment registers and absolute
 * addresses has other opcodes. */
static bool is_plain(const ZydisDecodedInstruction *insn)
{
	bool modrm = insn->attributes & ZYDIS_ATTRIB_HAS_MODRM;

	if (insn->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT ||
	    (modrm && insn->raw.modrm.mod != 3))
		return false;
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return (insn->opcode & 0xfc) == 0x88 ||
		       (insn->opcode & 0xf0) == 0xb0 ||
		       (insn->opcode & 0xfe) == 0xc6;
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		return true;
	default:
		return false;
	}
}

bool tr_lead_moves(const uint8_t *bytes, size_t n)
{
	ZydisDecodedInstruction insn;
	struct tr_padding e;

	if (n < TR_LEAD_MIN || n > TR_LEAD_MAX || !init_decoder(&e))
		return false;
	for (; n > 0; bytes += insn.length, n -= insn.length)
		if (!decode(&e, bytes, n, &insn) || !is_plain(&insn))
			return false;
	return true;
}

/* Remember the plain instructions that end where the site is. */
static void look_at(struct window *w, uint64_t a,
		    const ZydisDecodedInstruction *insn)
{
	if (a >= w->site || w->site - a > TR_LEAD_MAX)
		return;
	if (!is_plain(insn))
		w->nbefore = 0;
	else if (w->nbefore < TR_LEAD_MAX)
		w->before[w->nbefore++] = a;
}

static bool is_indirect(const ZydisDecodedInstruction *insn)
{
	return insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR &&
	       !insn->raw.imm[0].is_relative;
}

/*
 * Walk a function: the fillers behind its returns and jumps are padding.
 * Gives what the last instruction is; false when not all of it is code.
 */
static bool walk(const struct tr_padding *e, uint64_t start, uint64_t end,
		 struct window *w, ZydisDecodedInstruction *insn)
{
	const uint8_t *p = at(e, start, end - start);
	uint64_t gap = 0;
	bool ended = false, indirect = false;

	for (uint64_t a = start; p && a < end; a += insn->length) {
		if (!decode(e, p + (a - start), end - a, insn))
			return false;
		if (insn->raw.imm[0].is_relative &&
		    !add_target(w, a + insn->length +
				   (uint64_t)insn->raw.imm[0].value.s))
			return false;
		look_at(w, a, insn);
		indirect |= is_indirect(insn);
		if (ended && is_filler(insn)) {
			gap = gap ? gap : a;
			continue;
		}
		if (gap)
			add_gap(w, gap, a);
		gap = 0;
		ended = is_end(insn);
	}
	if (w->site >= start && w->site < end)
		w->indirect = indirect;
	return p && start < end;
}

static bool is_entered(const struct window *w, uint64_t lo, uint64_t hi)
{
	for (size_t k = 0; k < w->ntargets; k++)
		if (w->target[k] > lo && w->target[k] < hi)
			return true;
	return false;
}

/* As few instructions as make room. */
static uint8_t lead_of(const struct window *w, bool *one)
{
	for (unsigned i = w->nbefore; i-- > 0;) {
		uint64_t n = w->site - w->before[i];

		*one = i + 1 == w->nbefore;
		if (n >= TR_LEAD_MIN)
			return is_entered(w, w->before[i], w->site) ||
			       (w->indirect && !*one) ? 0 : (uint8_t)n;
	}
	return 0;
}

/* Bytes at i + 1 that look like the distance of a branch which ends behind
 * them. */
static void mark_target(const struct tr_padding *e, const Elf64_Phdr *ph,
			uint64_t i)
{
	int32_t distance = (int32_t)tr_get_le32(e->data + ph->p_offset + i + 1);
	uint64_t to = i + 5 + (uint64_t)(int64_t)distance;

	if (to < ph->p_filesz)
		e->entered[to / 8] |= (uint8_t)(1u << to % 8);
}

/* Which of the 16 bytes at p look like JMP or CALL rel32, or like the second one
 * of Jcc rel32? */
static unsigned branches_at(const uint8_t *p)
{
	const __m128i v = _mm_loadu_si128((const void *)p);
	const __m128i before = _mm_loadu_si128((const void *)(p - 1));
	const __m128i near = _mm_cmpeq_epi8(
		_mm_and_si128(v, _mm_set1_epi8((char)0xfe)),
		_mm_set1_epi8((char)0xe8));
	const __m128i jcc = _mm_and_si128(
		_mm_cmpeq_epi8(before, _mm_set1_epi8(0x0f)),
		_mm_cmpeq_epi8(_mm_and_si128(v, _mm_set1_epi8((char)0xf0)),
			       _mm_set1_epi8((char)0x80)));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(near, jcc));
}

static void find_targets(struct tr_padding *e, const Elf64_Phdr *ph)
{
	const uint8_t *p = e->data + ph->p_offset;
	uint64_t i = 1, n = ph->p_filesz;

	free(e->entered);
	e->entered = tr_alloc(n / 8 + 1);
	e->entered_of = ph;
	for (; i + 20 <= n; i += 16) {
		unsigned hits = branches_at(p + i);

		for (; hits; hits &= hits - 1)
			mark_target(e, ph, i + (unsigned)__builtin_ctz(hits));
	}
	for (; i + 5 <= n; i++)
		if ((p[i] & 0xfe) == 0xe8 ||
		    (p[i - 1] == 0x0f && (p[i] & 0xf0) == 0x80))
			mark_target(e, ph, i);
}

/*
 * Could a branch from elsewhere lead between lo and hi?  Unlikely parts of a
 * function are functions of their own, far away, and come back anywhere.
 * Bytes that look like JMP, CALL or Jcc rel32 count, be they one or not.
 */
static bool is_entered_from_afar(struct tr_padding *e, const Elf64_Phdr *ph,
				 uint64_t lo, uint64_t hi)
{
	if (e->entered_of != ph)
		find_targets(e, ph);
	for (uint64_t at = lo + 1; at < hi; at++) {
		uint64_t to = at - ph->p_vaddr;

		if (to >= ph->p_filesz || e->entered[to / 8] & 1u << to % 8)
			return true;
	}
	return false;
}

/* Padding that something jumps to is none. */
static void drop_targets(struct window *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++) {
		bool hit = false;

		for (size_t k = 0; k < w->ntargets; k++)
			hit |= w->target[k] >= w->gap[i].start &&
			       w->target[k] < w->gap[i].end;
		if (!hit)
			w->gap[kept++] = w->gap[i];
	}
	w->n = kept;
}

/* The first function that starts above addr. */
static size_t first_above(const struct tr_padding *e, uint64_t addr)
{
	size_t lo = 0, hi = e->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (entry_start(e, mid) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* A function's own padding, and that between it and the next one: a call that
 * a compiler put last does not return. */
static void take_function(const struct tr_padding *e, size_t i, struct window *w)
{
	uint64_t start = entry_start(e, i), end, next = UINT64_MAX;
	ZydisDecodedInstruction last;
	size_t before = w->n;

	if (i + 1 < e->n)
		next = entry_start(e, i + 1);
	if (!entry_end(e, i, &end) || end > next || end <= w->lo - 64)
		return;
	if (!walk(e, start, end, w, &last)) {
		w->n = before;
		if (w->site >= start && w->site < end)
			w->nbefore = 0;
		return;
	}
	if (next != UINT64_MAX && next > end && next - end <= 64 &&
	    (is_end(&last) || last.meta.category == ZYDIS_CATEGORY_CALL) &&
	    is_padding(e, end, next))
		add_gap(w, end, next);
}

static struct tr_gap tail_of(const Elf64_Phdr *ph)
{
	uint64_t end = ph->p_offset + ph->p_filesz;
	struct tr_gap tail = {end, (end + 4095) & ~UINT64_C(4095)};

	/* What is in memory alone is the program's. */
	if (ph->p_memsz != ph->p_filesz)
		tail.end = end;
	return tail;
}

/* Nobody needs padding who has a lead and room for the jump there. */
#define TAIL_AMPLE 512u

void tr_padding_near(struct tr_padding *e, uint64_t offset, uint64_t reach,
		     struct tr_room *room)
{
	const Elf64_Phdr *ph = segment_of(e, offset);
	struct window w = {0};
	uint64_t addr;
	size_t i, own;

	*room = (struct tr_room){0};
	if (!ph)
		return;
	addr = ph->p_vaddr + (offset - ph->p_offset);
	if (addr < reach + 64)
		return;
	w.site = addr;
	w.lo = addr - reach;
	w.hi = addr + reach;
	own = first_above(e, addr);
	own -= own > 0;
	if (own < e->n)
		take_function(e, own, &w);
	room->lead = lead_of(&w, &room->lead_is_one);
	if (room->lead && !room->lead_is_one &&
	    is_entered_from_afar(e, ph, addr - room->lead, addr))
		room->lead = 0;
	room->tail = tail_of(ph);
	if (room->lead && room->lead_is_one &&
	    room->tail.end - room->tail.start >= TAIL_AMPLE)
		return;
	i = first_above(e, w.lo);
	for (i -= i > 0; i < e->n && entry_start(e, i) < w.hi; i++)
		if (i != own)
			take_function(e, i, &w);
	drop_targets(&w);
	for (i = 0; i < w.n; i++)
		room->gap[room->n++] = (struct tr_gap){
			offset + (w.gap[i].start - addr),
			offset + (w.gap[i].end - addr)};
}

struct tr_padding *tr_padding_open(int fd)
{
	struct tr_padding *e;
	struct stat st;
	void *data;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 64)
		return NULL;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return NULL;
	e = tr_alloc(sizeof *e);
	e->data = data;
	e->size = (size_t)st.st_size;
	if (parse(e))
		return e;
	tr_padding_close(e);
	return NULL;
}

void tr_padding_close(struct tr_padding *e)
{
	if (!e)
		return;
	munmap((void *)(uintptr_t)e->data, e->size);
	free(e->entered);
	free(e);
}
