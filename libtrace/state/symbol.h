/* Symbols of ELF files, for messages. */
#ifndef TR_STATE_SYMBOL_H
#define TR_STATE_SYMBOL_H

#include <stdint.h>

/* "name+0x12" for the code at a file offset, or NULL; owned by the caller. */
char *tr_symbol_at(int fd, uint64_t offset);

#endif
