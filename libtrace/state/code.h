/*
 * Machine code of a mapped file: where are the instructions whose result the
 * program's state does not determine?  XSAVEC is one: what it writes depends on
 * what the processor takes for unused.
 *
 * A byte pattern that could be such an instruction is taken only when decoding
 * from the start of its function (starts.h) arrives exactly at it, so that
 * data and the inside of other instructions are never mistaken for one.
 */
#ifndef TR_STATE_CODE_H
#define TR_STATE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/format/event.h"

struct tr_site {
	uint64_t offset;    /* in the file */
	enum tr_insn insn;
	uint8_t length;
	uint8_t first;      /* byte */
	uint8_t reg, width; /* RDRAND, RDSEED, RDPID: destination register by
			       its encoding (rax 0, rcx 1, ...), in bytes */
};

struct tr_sites {
	struct tr_site *s; /* owned; in no particular order */
	size_t n, cap;
	/* Byte patterns outside any function, or behind bytes that are no
	 * code: left alone. */
	size_t undecided;
	size_t undecided_cpuid; /* those of them that may be CPUID */
};

/* The sites of an ELF file; none for a file that is not one. */
void tr_sites_find(int fd, struct tr_sites *sites);
/* The same, of a file's bytes. */
void tr_sites_scan(const void *data, size_t size, struct tr_sites *sites);
void tr_sites_release(struct tr_sites *sites);

/* Is this an XSAVEC to memory relative to rsp alone?  Others are no sites. */
bool tr_xsavec_decode(const uint8_t *bytes, size_t n, int32_t *displacement);

/* The instruction whose bytes these are, or 0; *site but for its offset. */
enum tr_insn tr_insn_decode(const uint8_t *bytes, size_t n,
			    struct tr_site *site);

#endif
