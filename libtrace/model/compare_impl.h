/* The comparison's own structures, shared by compare*.c. */
#ifndef TR_MODEL_COMPARE_IMPL_H
#define TR_MODEL_COMPARE_IMPL_H

#include "libtrace/base/buf.h"
#include "libtrace/model/canon.h"
#include "libtrace/model/compare.h"

/* What is compared: an event, with the one that began its call. */
struct tr_compare_item {
	uint64_t hash;
	uint64_t number;
	uint64_t enter; /* number of the enter or clone event, or 0 */
};

/* A side of a difference, for its description. */
struct tr_compare_side {
	struct tr_reader *reader;
	const struct tr_canon *canon;
	struct tr_compare_item item;
	struct tr_event *event; /* a copy */
	struct tr_event *enter; /* a copy, or NULL */
};

/* Copy the events of s->item; 0 or -1. */
int tr_compare_load(struct tr_compare_side *s, struct tr_error *err)
	TR_MUST_CHECK;
/* Copy the event of that number. NULL on failure. */
struct tr_event *tr_compare_event(struct tr_reader *r, uint64_t number,
				  struct tr_error *err) TR_MUST_CHECK;
/* Fill d->kind and d->what from two loaded sides that differ. */
int tr_compare_describe(const struct tr_compare_side *left,
			const struct tr_compare_side *right,
			struct tr_difference *d, struct tr_error *err)
	TR_MUST_CHECK;
/* The same when only one side has an event. */
void tr_compare_describe_one(const struct tr_compare_side *s, bool missing,
			     struct tr_difference *d);

/* The bytes of directory entries that are compared, in place of d. */
struct tr_bytes tr_compare_dirents(struct tr_bytes d, struct tr_buf *names);

#endif
