/* Nondeterministic instructions in the text of ELF files. */
#include "libtrace/state/code.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <emmintrin.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/state/starts.h"

/* A file's bytes and what of its structure is needed. */
struct image {
	const uint8_t *data;
	size_t size;
	const Elf64_Phdr *phdr;
	size_t phnum;
	struct tr_starts starts;
	/* How far a function has been decoded: the next site of the same is
	 * behind that.  Offsets into a segment's bytes. */
	size_t function, decoded;
};

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

/* Two decoders: the minimal one, several times faster, for lengths alone. */
struct decoders {
	ZydisDecoder minimal, full;
};

static bool init_decoders(struct decoders *d)
{
	return ZYAN_SUCCESS(ZydisDecoderInit(&d->minimal,
					     ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64)) &&
	       ZYAN_SUCCESS(ZydisDecoderEnableMode(
		       &d->minimal, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE)) &&
	       ZYAN_SUCCESS(ZydisDecoderInit(&d->full,
					     ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64));
}

static enum tr_insn kind_of(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_RDTSC:
		return TR_INSN_RDTSC;
	case ZYDIS_MNEMONIC_RDTSCP:
		return TR_INSN_RDTSCP;
	case ZYDIS_MNEMONIC_CPUID:
		return TR_INSN_CPUID;
	case ZYDIS_MNEMONIC_RDRAND:
		return TR_INSN_RDRAND;
	case ZYDIS_MNEMONIC_RDSEED:
		return TR_INSN_RDSEED;
	case ZYDIS_MNEMONIC_RDPID:
		return TR_INSN_RDPID;
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEC64:
		return TR_INSN_XSAVEC;
	default:
		return 0;
	}
}

static enum tr_insn decode(const ZydisDecoder *decoder, const uint8_t *bytes,
			   size_t n, struct tr_site *site)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, bytes, n, &insn, op)))
		return 0;
	site->insn = kind_of(insn.mnemonic);
	site->length = insn.length;
	if (site->insn && insn.operand_count_visible == 1 &&
	    op[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		site->reg = (uint8_t)ZydisRegisterGetId(op[0].reg.value);
		site->width = (uint8_t)(op[0].size / 8);
	}
	return site->insn;
}

enum tr_insn tr_insn_decode(const uint8_t *bytes, size_t n, struct tr_site *site)
{
	struct decoders d;

	*site = (struct tr_site){0};
	return init_decoders(&d) ? decode(&d.full, bytes, n, site) : 0;
}

/*
 * The start of the instruction that covers `at`, decoding from a function's
 * start; SIZE_MAX when that meets bytes that are no code.  Offsets into a
 * segment's bytes; `at` never decreases within a segment.
 */
static size_t covering(struct image *im, const struct decoders *d,
		       const uint8_t *code, size_t start, size_t at,
		       size_t size)
{
	if (im->function != start)
		im->decoded = im->function = start;
	for (;;) {
		ZydisDecodedInstruction insn;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			&d->minimal, NULL, code + im->decoded,
			size - im->decoded, &insn)))
			return SIZE_MAX;
		if (im->decoded + insn.length > at)
			return im->decoded;
		im->decoded += insn.length;
	}
}

/* ModRM and SIB: /4, memory at rsp without an index. */
static bool is_xsavec(const uint8_t *p)
{
	return p[0] >> 6 != 3 && (p[0] & 0x3f) == 0x24 && p[1] == 0x24;
}

bool tr_xsavec_decode(const uint8_t *bytes, size_t n, int32_t *displacement)
{
	static const uint8_t sizes[] = {0, 1, 4};

	if (n && (*bytes & 0xf7) == 0x40) { /* REX, perhaps REX.W */
		bytes++;
		n--;
	}
	if (n < 4 || bytes[0] != 0x0f || bytes[1] != 0xc7 ||
	    !is_xsavec(bytes + 2) || n != 4u + sizes[bytes[2] >> 6])
		return false;
	*displacement = 0;
	if (n == 5)
		*displacement = (int8_t)bytes[4];
	if (n == 8)
		*displacement = (int32_t)tr_get_le32(bytes + 4);
	return true;
}

/* Opcode bytes of the instructions looked for; prefixes may precede them. */
static bool could_be(const uint8_t *p, size_t left)
{
	switch (p[1]) {
	case 0x31: /* RDTSC */
	case 0xa2: /* CPUID */
		return true;
	case 0x01: /* RDTSCP */
		return left > 2 && p[2] == 0xf9;
	case 0xc7: /* RDRAND /6, RDSEED and RDPID /7, of registers; XSAVEC */
		return left > 3 && (p[2] >= 0xf0 || is_xsavec(p + 2));
	default:
		return false;
	}
}

static void add_candidate(struct image *im, const Elf64_Phdr *ph,
			  const struct decoders *d, size_t at,
			  struct tr_sites *sites)
{
	const uint8_t *code = im->data + ph->p_offset;
	uint64_t start = tr_starts_below(&im->starts, ph->p_vaddr + at);
	struct tr_site site = {0};
	size_t insn = SIZE_MAX;
	int32_t displacement;

	if (start != UINT64_MAX && start >= ph->p_vaddr)
		insn = covering(im, d, code, start - ph->p_vaddr, at,
				ph->p_filesz);
	if (insn == SIZE_MAX) {
		sites->undecided++;
		sites->undecided_cpuid += code[at + 1] == 0xa2;
		return;
	}
	/* Mostly an immediate or a displacement of another instruction. */
	if (!decode(&d->full, code + insn, ph->p_filesz - insn, &site) ||
	    (site.insn == TR_INSN_XSAVEC &&
	     !tr_xsavec_decode(code + insn, site.length, &displacement)))
		return;
	site.offset = ph->p_offset + insn;
	site.first = code[insn];
	TR_GROW(sites->s, sites->n, sites->cap);
	sites->s[sites->n++] = site;
}

/* Where 0f is followed by one of the bytes that could_be knows, of the 16 bytes
 * at p. */
static unsigned pairs_at(const uint8_t *p)
{
	const __m128i first = _mm_loadu_si128((const void *)p);
	const __m128i second = _mm_loadu_si128((const void *)(p + 1));
	__m128i known = _mm_cmpeq_epi8(second, _mm_set1_epi8(0x31));

	known = _mm_or_si128(known, _mm_cmpeq_epi8(second,
						   _mm_set1_epi8((char)0xa2)));
	known = _mm_or_si128(known, _mm_cmpeq_epi8(second, _mm_set1_epi8(1)));
	known = _mm_or_si128(known, _mm_cmpeq_epi8(second,
						   _mm_set1_epi8((char)0xc7)));
	known = _mm_and_si128(known, _mm_cmpeq_epi8(first,
						    _mm_set1_epi8(0x0f)));
	return (unsigned)_mm_movemask_epi8(known);
}

static void scan_segment(struct image *im, const Elf64_Phdr *ph,
			 const struct decoders *d, struct tr_sites *sites)
{
	const uint8_t *code = im->data + ph->p_offset;
	size_t size = ph->p_filesz;

	im->function = SIZE_MAX;
	for (size_t i = 0; i + 17 <= size; i += 16) {
		unsigned hits = pairs_at(code + i);

		for (; hits; hits &= hits - 1) {
			size_t at = i + (unsigned)__builtin_ctz(hits);

			if (could_be(code + at, size - at))
				add_candidate(im, ph, d, at, sites);
		}
	}
}

static void scan_image(struct image *im, struct tr_sites *sites)
{
	struct decoders d;

	if (!parse_elf(im) || !init_decoders(&d))
		return;
	tr_starts_read(im->data, im->size, &im->starts);
	for (size_t i = 0; i < im->phnum; i++) {
		const Elf64_Phdr *ph = &im->phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X) &&
		    ph->p_offset <= im->size &&
		    ph->p_filesz <= im->size - ph->p_offset)
			scan_segment(im, ph, &d, sites);
	}
	tr_starts_release(&im->starts);
}

void tr_sites_scan(const void *data, size_t size, struct tr_sites *sites)
{
	struct image im = {.data = data, .size = size};

	if (size >= sizeof(Elf64_Ehdr))
		scan_image(&im, sites);
}

void tr_sites_find(int fd, struct tr_sites *sites)
{
	struct stat st;
	size_t size;
	void *data;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 64)
		return;
	size = (size_t)st.st_size;
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		return;
	tr_sites_scan(data, size, sites);
	munmap(data, size);
}

void tr_sites_release(struct tr_sites *sites)
{
	free(sites->s);
	*sites = (struct tr_sites){0};
}
