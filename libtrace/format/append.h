/*
 * The writer's background half: one thread that compresses sealed chunks,
 * chains them and appends them to the chunk files, each by one write(2), so
 * that whatever kills the recorder leaves one torn chunk at most.
 */
#ifndef TR_FORMAT_APPEND_H
#define TR_FORMAT_APPEND_H

#include "libtrace/base/buf.h"
#include "libtrace/base/error.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/clone.h"
#include "libtrace/format/writer.h"

struct tr_appender;

/* Creates chunks/ and its first file, and starts the thread. */
struct tr_appender *tr_appender_open(int dirfd,
				     const struct tr_writer_options *o,
				     struct tr_error *err) TR_MUST_CHECK;

/*
 * A buffer for one chunk, empty but for TR_CHUNK_HEADER bytes kept free for
 * the header; used ones come back this way.
 */
void tr_appender_buffer(struct tr_appender *a, struct tr_buf *b);

/*
 * Queue a chunk; takes over b, which is empty afterwards.  The header's
 * stream, records, first, last and TR_CHUNK_LAST are the caller's part.
 * Blocks while the queue is full.  The chunk is dropped when the thread has
 * failed.  With `clone`, or NULL, it is one record, and may share the bytes with
 * the file they are from.
 */
void tr_appender_put(struct tr_appender *a, const struct tr_chunk_header *h,
		     struct tr_buf *b, const struct tr_clone *clone);

/* 0 while all is well, -1 with the reason once the thread has failed. */
int tr_appender_check(struct tr_appender *a, struct tr_error *err)
	TR_MUST_CHECK;

/*
 * Wait for what is queued and end the thread; with `finish` also write the
 * index and make everything durable.  Frees a in any case.
 */
int tr_appender_close(struct tr_appender *a, bool finish,
		      struct tr_writer_stats *stats, struct tr_error *err)
	TR_MUST_CHECK;

#endif
