/*
 * Padding: bytes of an ELF file's code that no instruction leads to, where a
 * jump can be put.
 */
#ifndef TR_STATE_PADDING_H
#define TR_STATE_PADDING_H

#include <stddef.h>
#include <stdint.h>

#define TR_GAPS_MAX 16

struct tr_gaps {
	struct tr_gap {
		uint64_t start, end; /* offsets in the file */
	} gap[TR_GAPS_MAX];
	size_t n;
};

/*
 * The padding within `reach` bytes of a file offset: fillers (NOP, INT3) behind
 * the returns and jumps of functions, to which no branch of theirs leads, and
 * between the end of one function and the start of the next.  The unwind table
 * (.eh_frame_hdr) tells where functions are.
 */
void tr_padding_near(int fd, uint64_t offset, uint64_t reach,
		     struct tr_gaps *gaps);

#endif
