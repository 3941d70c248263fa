/* Source lines of code in ELF files, from debug information (DWARF). The only
 * user of libdw. */
#ifndef TR_STATE_SOURCE_H
#define TR_STATE_SOURCE_H

#include <stdint.h>

/*
 * "prog.c:12" for the code at an ELF address (as its program headers count) of
 * the file, or NULL when there is no debug information, in the file or under
 * /usr/lib/debug, that tells; owned by the caller.
 */
char *tr_source_at(int fd, uint64_t addr);

#endif
