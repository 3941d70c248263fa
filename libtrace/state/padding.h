/*
 * Padding: bytes of an ELF file's code that no instruction leads to, where a
 * jump can be put; and other room for jumps.
 */
#ifndef TR_STATE_PADDING_H
#define TR_STATE_PADDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TR_GAPS_MAX 16

/* Offsets in the file. */
struct tr_gap {
	uint64_t start, end;
};

struct tr_room {
	/* The instruction follows MOV r32, imm32 of its function: five bytes
	 * with nothing in them to jump to. */
	bool led;
	/* What its segment's last page holds behind the segment's end: mapped
	 * with the code, but no part of it. */
	struct tr_gap tail;
	struct tr_gap gap[TR_GAPS_MAX];
	size_t n;
};

/*
 * The room around the instruction at a file offset.  Gaps are the padding
 * within `reach` bytes of it: fillers (NOP, INT3) behind the returns and jumps
 * of functions, to which no branch of theirs leads, and between the end of one
 * function and the start of the next.  The unwind table (.eh_frame_hdr) tells
 * where functions are.
 */
void tr_padding_near(int fd, uint64_t offset, uint64_t reach,
		     struct tr_room *room);

#endif
