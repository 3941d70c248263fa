/*
 * The trace reader: events of a trace directory, in global order or by
 * stream, in memory bounded by the number of streams open at one time.
 *
 * The index is used when it is there and right; otherwise the chunk files are
 * scanned, and what follows the last whole chunk is reported as lost, not as
 * an error.
 */
#ifndef TR_FORMAT_READER_H
#define TR_FORMAT_READER_H

#include "libtrace/base/buf.h"
#include "libtrace/base/error.h"
#include "libtrace/format/event.h"

struct tr_reader;

/* One chunk as the index or the scan found it. */
struct tr_chunk_ref {
	uint32_t file;   /* chunk file number, from 0 */
	uint64_t offset; /* of the chunk header in it */
	uint32_t stream, records, flags; /* flags: TR_CHUNK_* of chunk.h */
	uint32_t raw_size, stored_size;
	uint64_t first, last; /* event numbers */
};

/*
 * Open a trace directory (path may be a symbolic link to one).  Reads and
 * checks the manifest's version and features and finds the chunks.  An
 * incomplete trace opens; damage inside chunks shows when they are read.
 */
struct tr_reader *tr_reader_open(const char *path, struct tr_error *err)
	TR_MUST_CHECK;
/* The same for a trace in another place, which is taken over in any case. */
struct tr_home;
struct tr_reader *tr_reader_open_home(struct tr_home *home,
				       const char *path, struct tr_error *err)
	TR_MUST_CHECK;
void tr_reader_close(struct tr_reader *r);

int tr_reader_dirfd(const struct tr_reader *r); /* owned by r; -1: none */
const char *tr_reader_path(const struct tr_reader *r);
/* The manifest; owned by r. */
const struct tr_manifest *tr_reader_manifest(const struct tr_reader *r);
/* True when the manifest says complete and nothing was found missing. */
bool tr_reader_complete(const struct tr_reader *r);
/* Bytes after the last whole chunk, and where; 0 when none. */
uint64_t tr_reader_lost_bytes(const struct tr_reader *r);
/* Why the index was not used ("index: ..."), or NULL when it was. */
const char *tr_reader_note(const struct tr_reader *r);
/* Ids of streams of events are below it. */
uint32_t tr_reader_stream_count(const struct tr_reader *r);
/* All chunks, those with blocks (blocks.h) among them. */
size_t tr_reader_chunks(const struct tr_reader *r,
			const struct tr_chunk_ref **chunks);

/* Append all of a stored file, at most `max` bytes, to b.  TR_ESYS with ENOENT
 * when it is not there. */
int tr_reader_stored(const struct tr_reader *r, uint32_t file, size_t max,
		     struct tr_buf *b, struct tr_error *err) TR_MUST_CHECK;

/*
 * Cursors.  next returns 1 with *ev set (valid until the next call on the
 * same cursor), 0 at the end, -1 on damage.  After damage the cursor is at
 * its end.
 */
struct tr_cursor;
struct tr_cursor *tr_cursor_all(struct tr_reader *r); /* global order */
struct tr_cursor *tr_cursor_stream(struct tr_reader *r, uint32_t stream);
/* Start at the first event numbered `number` or later, skipping whole chunks. */
struct tr_cursor *tr_cursor_from(struct tr_reader *r, uint64_t number);
int tr_cursor_next(struct tr_cursor *c, const struct tr_event **ev,
		   struct tr_error *err) TR_MUST_CHECK;
void tr_cursor_free(struct tr_cursor *c);

#endif
