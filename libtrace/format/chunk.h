/*
 * Chunk headers: 64 little-endian bytes before each chunk's payload.  The
 * layout is specified in formats/trace-format.md, "Chunk header".
 */
#ifndef TR_FORMAT_CHUNK_H
#define TR_FORMAT_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/format/reader.h"

#define TR_CHUNK_HEADER 64
#define TR_CHUNK_MAGIC "TRCK"
#define TR_CHUNK_VERSION 1

#define TR_CHUNK_DEFLATE 1u /* the payload is a raw deflate stream */
#define TR_CHUNK_LAST 2u    /* the stream ends with this chunk */
#define TR_CHUNK_FLAGS 3u   /* all that are known */

/* Stream ids and chunk file numbers are below these. */
#define TR_MAX_STREAMS (1u << 24)
#define TR_MAX_CHUNK_FILES 1000000u

/* "chunks/000000" and its NUL. */
#define TR_CHUNK_NAME 14
/* A chunk file reaches this size by its last chunk at most. */
#define TR_MAX_CHUNK_FILE (1ull << 30)

struct tr_chunk_header {
	uint32_t flags, incompat;
	uint32_t stream, records;
	uint64_t first, last; /* event numbers */
	uint32_t raw_size, stored_size;
	uint64_t payload; /* XXH3-64 of the stored bytes */
	uint64_t previous; /* `check` of the stream's chunk before, or 0 */
	uint64_t check;   /* XXH3-64 of the header's bytes before it */
};

/* Fills h->check too. */
void tr_chunk_encode(struct tr_chunk_header *h, uint8_t *to);

/*
 * TR_ECORRUPT when the bytes are not a header that says something possible,
 * TR_EFEATURE when they are one from the future.
 */
int tr_chunk_decode(const uint8_t *from, struct tr_chunk_header *h,
		    struct tr_error *err) TR_MUST_CHECK;

void tr_chunk_name(char to[TR_CHUNK_NAME], uint32_t file);

/* How the index lists a chunk with this header at this place. */
struct tr_chunk_ref tr_chunk_ref(const struct tr_chunk_header *h, uint32_t file,
				 uint64_t offset);
bool tr_chunk_ref_equal(const struct tr_chunk_ref *a,
			const struct tr_chunk_ref *b);

#endif
