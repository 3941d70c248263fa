/*
 * The event feed of a replay: all streams in global order, with one event of
 * lookahead in each, because what a task does next decides how it is resumed.
 */
#ifndef TR_REPLAY_FEED_H
#define TR_REPLAY_FEED_H

#include <stdbool.h>

#include "libtrace/base/error.h"
#include "libtrace/format/reader.h"

struct tr_feed;

struct tr_feed *tr_feed_new(struct tr_reader *r);
void tr_feed_free(struct tr_feed *f);

/* The next event in global order, valid until its stream is advanced.
 * 1, 0 at the end, -1. */
int tr_feed_next(struct tr_feed *f, const struct tr_event **ev,
		 struct tr_error *err) TR_MUST_CHECK;
/* Go on in a stream whose current event has been used up; gives the event
 * that is current now (NULL at the stream's end). */
int tr_feed_advance(struct tr_feed *f, uint32_t stream,
		    const struct tr_event **ev, struct tr_error *err)
	TR_MUST_CHECK;

/* The event `n` places after the stream's current one, NULL when there is none;
 * valid until the stream is advanced to it and beyond.  What was known of the
 * current event before is not valid any more: ask again. */
int tr_feed_peek(struct tr_feed *f, uint32_t stream, size_t n,
		 const struct tr_event **ev, struct tr_error *err)
	TR_MUST_CHECK;

#endif
