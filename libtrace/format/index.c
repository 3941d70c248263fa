/* Reading and writing the index file. */
#include "libtrace/format/index.h"

#include <string.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"
#include "libtrace/format/chunk.h"

#define FILE_NAME "index"
#define MAGIC "TRACEIDX"
#define VERSION 1u

#define HEAD_SIZE 24
#define ENTRY_SIZE 48
#define CHECK_SIZE 8

/* More chunks than 256 TiB of inflated events have. */
#define MAX_SIZE ((size_t)48 << 30)

static void put_entry(uint8_t *p, const struct tr_chunk_ref *r)
{
	tr_put_le32(p, r->file);
	tr_put_le32(p + 4, r->stream);
	tr_put_le64(p + 8, r->offset);
	tr_put_le32(p + 16, r->records);
	tr_put_le32(p + 20, r->flags);
	tr_put_le32(p + 24, r->raw_size);
	tr_put_le32(p + 28, r->stored_size);
	tr_put_le64(p + 32, r->first);
	tr_put_le64(p + 40, r->last);
}

static void get_entry(const uint8_t *p, struct tr_chunk_ref *r)
{
	r->file = tr_get_le32(p);
	r->stream = tr_get_le32(p + 4);
	r->offset = tr_get_le64(p + 8);
	r->records = tr_get_le32(p + 16);
	r->flags = tr_get_le32(p + 20);
	r->raw_size = tr_get_le32(p + 24);
	r->stored_size = tr_get_le32(p + 28);
	r->first = tr_get_le64(p + 32);
	r->last = tr_get_le64(p + 40);
}

int tr_index_write(int dirfd, const struct tr_chunk_ref *refs, size_t n,
		   struct tr_error *err)
{
	TR_AUTOBUF struct tr_buf b = {0};
	uint8_t *p = tr_buf_reserve(&b, HEAD_SIZE + n * ENTRY_SIZE +
					CHECK_SIZE);

	memcpy(p, MAGIC, 8);
	tr_put_le32(p + 8, VERSION);
	tr_put_le32(p + 12, ENTRY_SIZE);
	tr_put_le64(p + 16, n);
	b.len = HEAD_SIZE;
	for (size_t i = 0; i < n; i++, b.len += ENTRY_SIZE)
		put_entry(p + b.len, &refs[i]);
	tr_put_le64(p + b.len, XXH3_64bits(p, b.len));
	b.len += CHECK_SIZE;
	if (tr_fault("index-write"))
		return tr_fail_errno(err, FILE_NAME);
	return tr_replace_file(dirfd, FILE_NAME, b.data, b.len, false, err);
}

/* How many entries the file has, or -1. */
static int check_file(const struct tr_buf *b, size_t *n, struct tr_error *err)
{
	size_t body;

	if (b->len < HEAD_SIZE + CHECK_SIZE || memcmp(b->data, MAGIC, 8) != 0)
		return tr_fail(err, TR_ECORRUPT, FILE_NAME ": not an index");
	body = b->len - CHECK_SIZE;
	if (tr_get_le64(b->data + body) != XXH3_64bits(b->data, body))
		return tr_fail(err, TR_ECORRUPT,
			       FILE_NAME ": the checksum does not match");
	if (tr_get_le32(b->data + 8) != VERSION)
		return tr_fail(err, TR_EVERSION, FILE_NAME
			       ": version %u is not known",
			       tr_get_le32(b->data + 8));
	*n = (body - HEAD_SIZE) / ENTRY_SIZE;
	if (tr_get_le32(b->data + 12) != ENTRY_SIZE ||
	    tr_get_le64(b->data + 16) != *n ||
	    (body - HEAD_SIZE) % ENTRY_SIZE != 0)
		return tr_fail(err, TR_ECORRUPT,
			       FILE_NAME ": the number of entries is wrong");
	return 0;
}

/* Chunks lie back to back, files are numbered without gaps. */
static bool follows(const struct tr_chunk_ref *r,
		    const struct tr_chunk_ref *before)
{
	if (r->stream >= TR_MAX_STREAMS || r->file >= TR_MAX_CHUNK_FILES)
		return false;
	if (!before)
		return r->file == 0 && r->offset == 0;
	if (r->file == before->file)
		return r->offset == before->offset + TR_CHUNK_HEADER +
					    before->stored_size;
	return r->file == before->file + 1 && r->offset == 0;
}

int tr_index_read(int dirfd, struct tr_chunk_ref **refs, size_t *n,
		  struct tr_error *err)
{
	const struct tr_home home = TR_HOME_DIRECTORY(dirfd);

	return tr_index_read_at(&home, refs, n, err);
}

int tr_index_read_at(const struct tr_home *home, struct tr_chunk_ref **refs,
		     size_t *n, struct tr_error *err)
{
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_chunk_ref *r;

	if (tr_home_load(home, FILE_NAME, MAX_SIZE, &b, err) < 0 ||
	    check_file(&b, n, err) < 0)
		return -1;
	r = tr_alloc(*n * sizeof *r);
	for (size_t i = 0; i < *n; i++) {
		get_entry(b.data + HEAD_SIZE + i * ENTRY_SIZE, &r[i]);
		if (!follows(&r[i], i ? &r[i - 1] : NULL)) {
			free(r);
			return tr_fail(err, TR_ECORRUPT, FILE_NAME
				       ": entry %zu contradicts the one "
				       "before", i);
		}
	}
	*refs = r;
	return 0;
}
