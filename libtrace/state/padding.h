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

#define TR_LEAD_MIN 5u /* room for a near jump */
#define TR_LEAD_MAX 15u

struct tr_room {
	/* The instruction follows others, of so many bytes together, that do
	 * the same elsewhere, and into which no branch leads; 0: it does not.
	 * One alone where that will do. */
	uint8_t lead;
	bool lead_is_one;
	/* What its segment's last page holds behind the segment's end: mapped
	 * with the code, but no part of it. */
	struct tr_gap tail;
	struct tr_gap gap[TR_GAPS_MAX];
	size_t n;
};

/* The code of one file; NULL when it is none, or does not tell where its
 * functions are.  The file stays mapped: it must not shrink. */
struct tr_padding;
struct tr_padding *tr_padding_open(int fd);
void tr_padding_close(struct tr_padding *p);

/* Are the n bytes whole instructions that work on registers alone, and so do
 * the same at any address? */
bool tr_lead_moves(const uint8_t *bytes, size_t n);

/*
 * The room around the instruction at a file offset.  Gaps are the padding
 * within `reach` bytes of it: fillers (NOP, INT3) behind the returns and jumps
 * of functions, to which no branch of theirs leads, and between the end of one
 * function and the start of the next; they are not looked for where a lead and
 * the tail will do.  The unwind table (.eh_frame_hdr) tells where functions are.
 */
void tr_padding_near(struct tr_padding *p, uint64_t offset, uint64_t reach,
		     struct tr_room *room);

#endif
