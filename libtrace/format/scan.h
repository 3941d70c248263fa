/* Finding the chunks of a trace without its index. */
#ifndef TR_FORMAT_SCAN_H
#define TR_FORMAT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/format/home.h"
#include "libtrace/format/reader.h"

struct tr_scan {
	struct tr_chunk_ref *refs; /* in file order; the caller's to free */
	size_t n, cap;
	uint64_t lost;  /* bytes that belong to no whole chunk */
	bool missing;   /* a chunk file is not there */
};

/*
 * Scan all chunk files.  Damage is no failure: it adds to `lost`.  Fails when
 * a file cannot be read (TR_ESYS) or a chunk is from the future (TR_EFEATURE).
 */
int tr_scan(const struct tr_home *p, struct tr_scan *s, struct tr_error *err)
	TR_MUST_CHECK;

/* Open chunk file `file`.  -1 with TR_ESYS, ENOENT when there is none. */
int tr_chunk_file_open(const struct tr_home *p, uint32_t file,
		       struct tr_part *part, struct tr_error *err)
	TR_MUST_CHECK;
/* How many chunk files there are, counted up to the highest number. */
int tr_chunk_file_count(const struct tr_home *p, uint32_t *n,
			struct tr_error *err) TR_MUST_CHECK;

#endif
