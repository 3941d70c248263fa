/* Symbols of ELF files, for messages. */
#ifndef TR_STATE_SYMBOL_H
#define TR_STATE_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

/* "name+0x12" for the code at a file offset, or NULL; owned by the caller. */
char *tr_symbol_at(int fd, uint64_t offset);

/* The address at which the file's program headers place an offset; false when
 * they do not, or it is no ELF file. */
bool tr_elf_address(int fd, uint64_t offset, uint64_t *addr);
/* As tr_symbol_at for such an address, which may be of data that the file has
 * no bytes for. */
char *tr_symbol_of(int fd, uint64_t addr);

#endif
