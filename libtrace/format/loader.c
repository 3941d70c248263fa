/* Reading single chunks: header, payload, checksums, inflating. */
#include "libtrace/format/loader.h"

#include <xxhash.h>

#include "libtrace/format/reader_impl.h"
#include "libtrace/format/scan.h"

void tr_loader_init(struct tr_loader *l, const struct tr_reader *reader)
{
	*l = (struct tr_loader){
		.reader = reader,
		.inflater = tr_inflater_new(),
		.part.fd = -1,
	};
}

void tr_loader_release(struct tr_loader *l)
{
	tr_part_close(&l->part);
	tr_inflater_free(l->inflater);
	tr_buf_release(&l->stored);
}

static int use_file(struct tr_loader *l, uint32_t file, struct tr_error *err)
{
	if (l->part.fd >= 0 && l->file == file)
		return 0;
	tr_part_close(&l->part);
	l->file = file;
	return tr_chunk_file_open(&l->reader->home, file, &l->part, err);
}

/* Header and payload into l->stored. */
static int read_chunk(struct tr_loader *l, const struct tr_chunk_ref *ref,
		      struct tr_error *err)
{
	size_t n = TR_CHUNK_HEADER + (size_t)ref->stored_size;
	ssize_t r;

	if (ref->stored_size > TR_MAX_CHUNK_RAW)
		return tr_fail(err, TR_ECORRUPT, "too large");
	if (use_file(l, ref->file, err) < 0)
		return -1;
	l->stored.len = 0;
	r = tr_part_read(&l->part, tr_buf_reserve(&l->stored, n), n,
			 ref->offset);
	if (r < 0)
		return tr_fail_errno(err, "cannot read");
	if ((size_t)r < n)
		return tr_fail(err, TR_ECORRUPT, "cut off");
	return 0;
}

int tr_loader_load(struct tr_loader *l, const struct tr_chunk_ref *ref,
		   struct tr_chunk_header *h, struct tr_buf *payload,
		   struct tr_error *err)
{
	struct tr_chunk_ref found;
	const uint8_t *bytes;

	if (read_chunk(l, ref, err) < 0 ||
	    tr_chunk_decode(l->stored.data, h, err) < 0)
		return -1;
	found = tr_chunk_ref(h, ref->file, ref->offset);
	if (!tr_chunk_ref_equal(&found, ref))
		return tr_fail(err, TR_ECORRUPT, "differs from the index");
	bytes = l->stored.data + TR_CHUNK_HEADER;
	if (XXH3_64bits(bytes, h->stored_size) != h->payload)
		return tr_fail(err, TR_ECORRUPT,
			       "payload checksum does not match");
	payload->len = 0;
	tr_buf_reserve(payload, h->raw_size + (size_t)1); /* never NULL */
	if (!(h->flags & TR_CHUNK_DEFLATE))
		tr_buf_put(payload, bytes, h->raw_size);
	else if (tr_inflate(l->inflater, bytes, h->stored_size, payload->data,
			    h->raw_size))
		payload->len = h->raw_size;
	else
		return tr_fail(err, TR_ECORRUPT, "cannot be inflated");
	return 0;
}
