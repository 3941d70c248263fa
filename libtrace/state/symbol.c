/* Symbols of ELF files, read with libelf. */
#include "libtrace/state/symbol.h"

#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>

#include "libtrace/base/alloc.h"

/* The address at which the file's program headers place an offset. */
static bool offset_to_address(Elf *elf, uint64_t offset, uint64_t *addr)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (offset >= ph.p_offset && offset - ph.p_offset < ph.p_filesz) {
			*addr = ph.p_vaddr + (offset - ph.p_offset);
			return true;
		}
	}
	return false;
}

struct best {
	uint64_t value;
	const char *name;
};

static void search_table(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh,
			 uint64_t addr, struct best *best)
{
	Elf_Data *data = elf_getdata(scn, NULL);

	if (!data || !sh->sh_entsize)
		return;
	for (size_t i = 0; i < sh->sh_size / sh->sh_entsize; i++) {
		GElf_Sym sym;
		const char *name;

		if (!gelf_getsym(data, (int)i, &sym))
			return;
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS ||
		    sym.st_value > addr ||
		    GELF_ST_TYPE(sym.st_info) > STT_FUNC ||
		    (best->name && sym.st_value <= best->value) ||
		    (sym.st_size && addr >= sym.st_value + sym.st_size))
			continue;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (name && *name)
			*best = (struct best){sym.st_value, name};
	}
}

/* NULL when it is no ELF file. */
static Elf *open_elf(int fd)
{
	Elf *elf;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return NULL;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		return elf;
	elf_end(elf);
	return NULL;
}

static char *symbol_of(Elf *elf, uint64_t addr)
{
	struct best best = {0};

	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn;
	     scn = elf_nextscn(elf, scn)) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			search_table(elf, scn, &sh, addr, &best);
	}
	return best.name ? tr_printf("%s+0x%" PRIx64, best.name,
				     addr - best.value) : NULL;
}

char *tr_symbol_at(int fd, uint64_t offset)
{
	Elf *elf = open_elf(fd);
	char *text = NULL;
	uint64_t addr;

	if (elf && offset_to_address(elf, offset, &addr))
		text = symbol_of(elf, addr);
	elf_end(elf);
	return text;
}

bool tr_elf_address(int fd, uint64_t offset, uint64_t *addr)
{
	Elf *elf = open_elf(fd);
	bool known = elf && offset_to_address(elf, offset, addr);

	elf_end(elf);
	return known;
}

char *tr_symbol_of(int fd, uint64_t addr)
{
	Elf *elf = open_elf(fd);
	char *text = elf ? symbol_of(elf, addr) : NULL;

	elf_end(elf);
	return text;
}
