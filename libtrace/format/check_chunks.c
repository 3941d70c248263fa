/*
 * Checking the chunk files: headers, payload checksums, the chain of each
 * stream, and that the index says the same.  Payloads are not inflated here.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/format/blocks.h"
#include "libtrace/format/checker.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/index.h"

/* What is known of a stream after its chunks so far. */
struct stream {
	uint64_t check; /* of its last chunk */
	uint64_t last;  /* event number */
	bool ended;
	size_t ref;     /* of its last chunk */
};

struct scan {
	struct tr_checker *c;
	struct tr_table streams;
	struct tr_chunk_ref *index; /* NULL: none, or not usable */
	size_t nindex;
	uint8_t *payload; /* TR_MAX_CHUNK_RAW bytes */
	/* The file being read. */
	struct tr_part part;
	uint32_t file;
	char name[TR_CHUNK_NAME];
	bool gap; /* chunks were skipped: chains may be broken */
};

static void damaged(struct scan *s, enum tr_code code, uint64_t offset,
		    uint64_t event, const char *what)
{
	s->c->chunks_whole = false;
	tr_checker_report(s->c, code, s->name, (int64_t)offset, event, "%s",
			  what);
}

static void check_chain(struct scan *s, const struct tr_chunk_header *h,
			uint64_t offset)
{
	struct stream *st = tr_table_get(&s->streams, (uint64_t)h->stream);
	const char *what = NULL;

	if (!st) {
		st = tr_alloc(sizeof *st);
		tr_table_set(&s->streams, h->stream, st);
	}
	if (st->ended)
		what = "a chunk of a stream that has ended";
	else if (h->previous != st->check && !s->gap)
		what = "does not follow the stream's chunk before it: a chunk "
		       "was removed or replaced";
	else if (h->first < st->last)
		what = "event numbers go back";
	if (what)
		damaged(s, TR_ECORRUPT, offset, h->first, what);
	st->check = h->check;
	st->last = h->last;
	st->ended = h->flags & TR_CHUNK_LAST;
	st->ref = s->c->nrefs;
}

static void note_chunk(struct scan *s, const struct tr_chunk_header *h,
		       uint64_t offset)
{
	struct tr_checker *c = s->c;

	TR_GROW(c->refs, c->nrefs, c->refs_cap);
	c->refs[c->nrefs++] = tr_chunk_ref(h, s->file, offset);
	c->stats->chunks++;
	c->stats->bytes += TR_CHUNK_HEADER + h->stored_size;
}

static bool header_at(const struct scan *s, uint64_t offset)
{
	uint8_t head[TR_CHUNK_HEADER];
	struct tr_chunk_header h;
	struct tr_error err;

	return tr_part_read(&s->part, head, sizeof head, offset) ==
		       (ssize_t)sizeof head &&
	       tr_chunk_decode(head, &h, &err) == 0;
}

/*
 * After bytes that are no chunk: the next place where one begins, or the end
 * of the file.  Windows overlap so that no magic is cut in two.
 */
static uint64_t skip_damage(struct scan *s, uint64_t offset)
{
	const size_t magic = strlen(TR_CHUNK_MAGIC);
	uint64_t at = offset + 1;
	ssize_t n;

	s->gap = true;
	while ((n = tr_part_read(&s->part, s->payload, TR_MAX_CHUNK_RAW,
				  at)) >= (ssize_t)magic) {
		const uint8_t *p = s->payload, *end = s->payload + n;

		while ((p = memmem(p, (size_t)(end - p), TR_CHUNK_MAGIC,
				   magic)) != NULL) {
			uint64_t found = at + (uint64_t)(p - s->payload);

			if (header_at(s, found))
				return found;
			p++;
		}
		at += (uint64_t)n - magic + 1;
	}
	return s->part.size;
}

/* The tail of the last file may be a chunk whose writing was cut short. */
static void lost_tail(struct scan *s, uint64_t offset)
{
	s->c->chunks_whole = false;
	tr_checker_report(s->c, TR_EINCOMPLETE, s->name, (int64_t)offset, 0,
			  "%" PRIu64 " bytes after the last whole chunk",
			  s->part.size - offset);
}

/* The chunk at offset; returns where the next one is. */
static uint64_t check_chunk(struct scan *s, uint64_t offset)
{
	uint8_t head[TR_CHUNK_HEADER];
	struct tr_chunk_header h;
	struct tr_error err;
	uint64_t end;
	ssize_t n;

	n = tr_part_read(&s->part, head, sizeof head, offset);
	if (n < 0) {
		damaged(s, TR_ESYS, offset, 0, strerror(errno));
		return s->part.size;
	}
	if ((size_t)n < sizeof head) {
		lost_tail(s, offset);
		return s->part.size;
	}
	if (tr_chunk_decode(head, &h, &err) < 0) {
		damaged(s, err.code, offset, 0, err.text);
		return skip_damage(s, offset);
	}
	end = offset + TR_CHUNK_HEADER + h.stored_size;
	if (end > s->part.size) {
		lost_tail(s, offset);
		return s->part.size;
	}
	n = tr_part_read(&s->part, s->payload, h.stored_size,
			  offset + TR_CHUNK_HEADER);
	if (n != (ssize_t)h.stored_size)
		damaged(s, TR_ESYS, offset, h.first, "cannot read the chunk");
	else if (XXH3_64bits(s->payload, h.stored_size) != h.payload)
		damaged(s, TR_ECORRUPT, offset, h.first,
			"chunk payload checksum does not match");
	check_chain(s, &h, offset);
	note_chunk(s, &h, offset);
	return end;
}

/* False when there is no such file. */
static bool check_file(struct scan *s, uint32_t file)
{
	struct tr_error err;

	s->file = file;
	tr_chunk_name(s->name, file);
	if (tr_home_open(s->c->home, s->name, &s->part, &err) < 0) {
		if (err.code == TR_ESYS && err.sys_errno == ENOENT)
			return false;
		damaged(s, TR_ESYS, 0, 0, err.text);
		return true;
	}
	for (uint64_t at = 0; at < s->part.size;)
		at = check_chunk(s, at);
	tr_part_close(&s->part);
	return true;
}

/* Streams end with a marked chunk, unless the recording was cut short. */
static void check_ends(struct scan *s)
{
	size_t open = 0;

	TR_TABLE_EACH(&s->streams, slot) {
		const struct stream *st = slot->value;
		const struct tr_chunk_ref *r = &s->c->refs[st->ref];

		if (st->ended)
			continue;
		open++;
		tr_chunk_name(s->name, r->file);
		if (s->c->complete)
			damaged(s, TR_ECORRUPT, r->offset, st->last,
				"the stream's last chunk is missing after this "
				"one");
	}
	if (open == 0 || s->c->complete)
		return;
	s->c->chunks_whole = false;
	tr_checker_report(s->c, TR_EINCOMPLETE, "chunks", -1, 0,
			  "%zu of %zu streams are cut short", open,
			  s->streams.n);
}

static void compare_index(struct scan *s)
{
	const struct tr_checker *c = s->c;
	size_t i = 0;

	while (i < s->nindex && i < c->nrefs &&
	       tr_chunk_ref_equal(&s->index[i], &c->refs[i]))
		i++;
	if (i == s->nindex && i == c->nrefs)
		return;
	tr_checker_report(s->c, TR_ECORRUPT, "index", -1, 0, "disagrees with "
			  "the chunk files at chunk %zu (%zu in the index, %zu "
			  "in the files)", i, s->nindex, c->nrefs);
}

static void read_index(struct scan *s)
{
	struct tr_error err;

	if (tr_index_read_at(s->c->home, &s->index, &s->nindex, &err) == 0)
		return;
	s->index = NULL;
	s->nindex = 0;
	if (err.code == TR_ESYS && err.sys_errno == ENOENT && !s->c->complete)
		return; /* it is written last */
	tr_checker_report(s->c, err.code == TR_ESYS ? TR_ECORRUPT : err.code,
			  "index", -1, 0, "%s", err.text);
}

void tr_check_chunks(struct tr_checker *c)
{
	struct scan s = {.c = c, .payload = tr_alloc(TR_MAX_CHUNK_RAW)};
	uint32_t file = 0;

	c->chunks_whole = true;
	read_index(&s);
	while (file < TR_MAX_CHUNK_FILES && check_file(&s, file))
		file++;
	if (file == 0) {
		tr_chunk_name(s.name, 0);
		damaged(&s, tr_checker_missing(c), 0, 0, "missing");
	}
	check_ends(&s);
	if (s.index)
		compare_index(&s);
	c->stats->streams = s.streams.n -
		(tr_table_get(&s.streams, TR_BLOCK_STREAM) != NULL);
	TR_TABLE_EACH(&s.streams, slot)
		free(slot->value);
	tr_table_release(&s.streams);
	free(s.index);
	free(s.payload);
}
