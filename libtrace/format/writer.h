/*
 * The trace writer: turns events into sealed chunks of a trace directory.
 *
 * Events are encoded on the caller's thread into one open chunk per stream;
 * full chunks are compressed and appended to the chunk file by one background
 * thread, in the order they were sealed, so that recording never waits for
 * deflate.  One thread at a time may call these functions.
 */
#ifndef TR_FORMAT_WRITER_H
#define TR_FORMAT_WRITER_H

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"

struct tr_writer;

/*
 * Start writing into the existing trace directory dirfd (kept by the caller,
 * who leaves it open).  Creates chunks/ and its first file.
 */
struct tr_writer *tr_writer_open(int dirfd, struct tr_error *err) TR_MUST_CHECK;

/* Zero members mean the default. */
struct tr_writer_options {
	bool stored;         /* do not compress */
	uint32_t chunk_size; /* inflated bytes at which a chunk is sealed */
	uint64_t file_size;  /* bytes a chunk file does not exceed */
	/* Memory of so many bytes and more goes to blocks (blocks.h), which
	 * the manifest must then name; 0: none does. */
	uint32_t block_size;
};
struct tr_writer *tr_writer_open_with(int dirfd,
				      const struct tr_writer_options *o,
				      struct tr_error *err) TR_MUST_CHECK;

/*
 * Append one event to ev->stream.  The caller numbers events: `number` must
 * not decrease within a stream.  The event's memory is not kept.  Fails when
 * the background thread failed before (disk full, ...): the caller then stops
 * recording events; what was sealed stays readable.
 */
int tr_writer_put(struct tr_writer *w, const struct tr_event *ev,
		  struct tr_error *err) TR_MUST_CHECK;

/*
 * The len bytes at addr that the next events have were read from a file at
 * offset, or so it seems: their blocks may be clones of the file's.  Until it is
 * called with NULL; does not hold the source.
 */
struct tr_source; /* clone.h */
struct tr_read_from {
	struct tr_source *source;
	uint64_t addr, len, offset;
};
void tr_writer_read_from(struct tr_writer *w, const struct tr_read_from *from);

/* Seal the stream's open chunk as its last one and forget the stream. */
int tr_writer_end_stream(struct tr_writer *w, uint32_t stream,
			 struct tr_error *err) TR_MUST_CHECK;

/* Seal every open chunk whose first event is older than max_age_ns. Returns
 * the number of streams that still have an open chunk, or -1. */
int tr_writer_flush(struct tr_writer *w, uint64_t max_age_ns,
		    struct tr_error *err) TR_MUST_CHECK;

struct tr_writer_stats {
	uint64_t chunks, raw_bytes, stored_bytes;
};

/*
 * Seal everything, wait for the background thread, write the index.  Nothing
 * is synced: a kill of this process loses nothing that was written, and what
 * a power failure leaves undone shows in the checksums.  Frees w whether or not
 * it succeeds.
 */
int tr_writer_close(struct tr_writer *w, struct tr_writer_stats *stats,
		    struct tr_error *err) TR_MUST_CHECK;

/* Stop without sealing or index, as after a failure. */
void tr_writer_abandon(struct tr_writer *w);

#endif
