/* Chunk headers: encoding, and decoding with every check a header allows. */
#include "libtrace/format/chunk.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "libtrace/base/buf.h"
#include "libtrace/format/event.h"

enum {
	AT_VERSION = 4,
	AT_FLAGS = 5,
	AT_INCOMPAT = 6,
	AT_STREAM = 8,
	AT_RECORDS = 12,
	AT_FIRST = 16,
	AT_LAST = 24,
	AT_RAW = 32,
	AT_STORED = 36,
	AT_PAYLOAD = 40,
	AT_PREVIOUS = 48,
	AT_CHECK = 56,
};

void tr_chunk_encode(struct tr_chunk_header *h, uint8_t *to)
{
	memcpy(to, TR_CHUNK_MAGIC, 4);
	to[AT_VERSION] = TR_CHUNK_VERSION;
	to[AT_FLAGS] = (uint8_t)h->flags;
	tr_put_le16(to + AT_INCOMPAT, (uint16_t)h->incompat);
	tr_put_le32(to + AT_STREAM, h->stream);
	tr_put_le32(to + AT_RECORDS, h->records);
	tr_put_le64(to + AT_FIRST, h->first);
	tr_put_le64(to + AT_LAST, h->last);
	tr_put_le32(to + AT_RAW, h->raw_size);
	tr_put_le32(to + AT_STORED, h->stored_size);
	tr_put_le64(to + AT_PAYLOAD, h->payload);
	tr_put_le64(to + AT_PREVIOUS, h->previous);
	h->check = XXH3_64bits(to, AT_CHECK);
	tr_put_le64(to + AT_CHECK, h->check);
}

/* Sizes and numbers that cannot be, however they came to be checksummed. */
static const char *contradiction(const struct tr_chunk_header *h)
{
	if (h->stream >= TR_MAX_STREAMS)
		return "stream id too large";
	if (h->raw_size > TR_MAX_CHUNK_RAW)
		return "inflated size too large";
	if (h->flags & TR_CHUNK_DEFLATE ? h->stored_size >= h->raw_size
					: h->stored_size != h->raw_size)
		return "stored size is not possible";
	if (h->first < 1 || h->last < h->first)
		return "event numbers are not possible";
	if (h->records == 0 ? h->raw_size != 0 || !(h->flags & TR_CHUNK_LAST)
			    : h->raw_size < h->records)
		return "record count is not possible";
	return NULL;
}

int tr_chunk_decode(const uint8_t *from, struct tr_chunk_header *h,
		    struct tr_error *err)
{
	const char *why;

	if (memcmp(from, TR_CHUNK_MAGIC, 4) != 0)
		return tr_fail(err, TR_ECORRUPT, "not a chunk header");
	h->check = tr_get_le64(from + AT_CHECK);
	if (h->check != XXH3_64bits(from, AT_CHECK))
		return tr_fail(err, TR_ECORRUPT,
			       "chunk header checksum does not match");
	if (from[AT_VERSION] != TR_CHUNK_VERSION)
		return tr_fail(err, TR_EFEATURE,
			       "chunk header version %d is not known",
			       from[AT_VERSION]);
	h->flags = from[AT_FLAGS];
	h->incompat = tr_get_le16(from + AT_INCOMPAT);
	if (h->incompat || h->flags & ~TR_CHUNK_FLAGS)
		return tr_fail(err, TR_EFEATURE,
			       "chunk needs features %#x (flags %#x) that "
			       "are not known", h->incompat, h->flags);
	h->stream = tr_get_le32(from + AT_STREAM);
	h->records = tr_get_le32(from + AT_RECORDS);
	h->first = tr_get_le64(from + AT_FIRST);
	h->last = tr_get_le64(from + AT_LAST);
	h->raw_size = tr_get_le32(from + AT_RAW);
	h->stored_size = tr_get_le32(from + AT_STORED);
	h->payload = tr_get_le64(from + AT_PAYLOAD);
	h->previous = tr_get_le64(from + AT_PREVIOUS);
	why = contradiction(h);
	if (why)
		return tr_fail(err, TR_ECORRUPT, "chunk header: %s", why);
	return 0;
}

void tr_chunk_name(char to[TR_CHUNK_NAME], uint32_t file)
{
	snprintf(to, TR_CHUNK_NAME, "chunks/%06u", file % TR_MAX_CHUNK_FILES);
}

struct tr_chunk_ref tr_chunk_ref(const struct tr_chunk_header *h, uint32_t file,
				 uint64_t offset)
{
	return (struct tr_chunk_ref){
		.file = file,
		.offset = offset,
		.stream = h->stream,
		.records = h->records,
		.flags = h->flags,
		.raw_size = h->raw_size,
		.stored_size = h->stored_size,
		.first = h->first,
		.last = h->last,
	};
}

bool tr_chunk_ref_equal(const struct tr_chunk_ref *a,
			const struct tr_chunk_ref *b)
{
	return a->file == b->file && a->offset == b->offset &&
	       a->stream == b->stream && a->records == b->records &&
	       a->flags == b->flags && a->raw_size == b->raw_size &&
	       a->stored_size == b->stored_size && a->first == b->first &&
	       a->last == b->last;
}
