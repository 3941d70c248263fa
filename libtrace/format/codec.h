/*
 * Events to record bytes and back.  Specified in formats/trace-format.md,
 * "Records".
 *
 * Within a chunk numbers and times are coded as differences to the record
 * before, and registers to those of the task's record before; both sides keep
 * that context in a struct tr_codec and start it anew with each chunk.
 */
#ifndef TR_FORMAT_CODEC_H
#define TR_FORMAT_CODEC_H

#include "libtrace/base/buf.h"
#include "libtrace/base/error.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/event.h"

/* Tasks with registers in one chunk, so that a reader's table is bounded. */
#define TR_MAX_CHUNK_TASKS 4096u

struct tr_codec_task {
	uint64_t key; /* task + 1; 0: free */
	uint64_t regs[TR_NREGS];
};

/* Zeroed memory is a valid empty one. */
struct tr_codec {
	uint64_t number, time; /* of the record before */
	struct tr_codec_task *tasks; /* hash table, power of two */
	size_t ntasks, cap;
};

void tr_codec_begin(struct tr_codec *c, uint64_t first);
void tr_codec_release(struct tr_codec *c);
/* True when the chunk must end before the next record. */
bool tr_codec_full(const struct tr_codec *c);

/*
 * Append the event's record to `out`.  TR_EINVAL when the event is outside
 * the format's limits; then neither c nor out has changed.
 */
int tr_encode(struct tr_codec *c, const struct tr_event *ev,
	      struct tr_buf *out, struct tr_error *err) TR_MUST_CHECK;

/* Decoder of one chunk after the other.  Zeroed memory is a valid one. */
struct tr_decoder {
	struct tr_codec codec;
	struct tr_span in;
	struct tr_chunk_header chunk;
	uint32_t records; /* met so far */
	struct tr_event ev;
	size_t mem_cap, map_cap, arg_cap; /* of ev's arrays, which it owns */
};

/* Start on the inflated payload, which must stay until the last event. */
void tr_decoder_begin(struct tr_decoder *d, const struct tr_chunk_header *h,
		      const void *payload);
/*
 * 1 with the next event in d->ev, whose pointers lead into the payload, 0 at
 * the end of the chunk, -1 when the bytes are not a chunk's.  Records of
 * unknown compatible types are passed over.
 */
int tr_decoder_next(struct tr_decoder *d, struct tr_error *err) TR_MUST_CHECK;
void tr_decoder_release(struct tr_decoder *d);

#endif
