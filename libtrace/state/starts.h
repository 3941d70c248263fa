/*
 * Where the functions of an ELF file start: what its unwind table
 * (.eh_frame_hdr, PT_GNU_EH_FRAME), its function symbols and, in Go programs,
 * which have no unwind table and often no symbols, its function table say.
 */
#ifndef TR_STATE_STARTS_H
#define TR_STATE_STARTS_H

#include <stddef.h>
#include <stdint.h>

struct tr_starts {
	uint64_t *addr; /* owned; as the file's addresses, ascending */
	size_t n, cap;
};

/* The starts in a 64-bit little-endian ELF file of that contents, whose ELF
 * and program headers have been checked to lie in it. */
void tr_starts_read(const uint8_t *data, size_t size, struct tr_starts *s);
/* The last start at or below addr, or UINT64_MAX. */
uint64_t tr_starts_below(const struct tr_starts *s, uint64_t addr);
void tr_starts_release(struct tr_starts *s);

#endif
