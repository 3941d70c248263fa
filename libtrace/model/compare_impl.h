/* The comparison's own structures, shared by compare*.c. */
#ifndef TR_MODEL_COMPARE_IMPL_H
#define TR_MODEL_COMPARE_IMPL_H

#include "libtrace/base/buf.h"
#include "libtrace/base/table.h"
#include "libtrace/model/compare.h"

/* What is compared: an event, with the one that began its call. */
struct tr_compare_item {
	uint64_t hash;
	uint64_t number : 40;
	uint64_t key : 24; /* equal for events that may be one, changed */
	uint64_t enter;    /* number of the enter or clone event, or 0 */
	char *line;        /* JSON: the event's, behind that of the one that
			      began the call; owned by whoever has the item */
};

/* ---- compare_side.c: from events to items ---- */

/* An item of a task, by its name; `last` of that task. */
typedef void tr_compare_take(void *ctx, uint64_t task,
			     struct tr_compare_item *item, bool last);

struct tr_compare_side;
struct tr_compare_side *tr_compare_side_new(const struct tr_compare_input *in,
					    unsigned ignore,
					    tr_compare_take *take, void *ctx);
void tr_compare_side_free(struct tr_compare_side *s);
/* Read so far that it is known what kind the first event is; *state: the
 * state of a task. */
int tr_compare_side_begin(struct tr_compare_side *s, bool *state,
			  struct tr_error *err) TR_MUST_CHECK;
/* To be called before the first tr_compare_side_next. */
void tr_compare_side_set(struct tr_compare_side *s, bool described,
			 bool states);
/* The same: what names the tasks, which has to stay. */
void tr_compare_side_kin(struct tr_compare_side *s,
			 const struct tr_table *ordinals);
/* One event more: 1, or 0 at the end. */
int tr_compare_side_next(struct tr_compare_side *s, struct tr_error *err)
	TR_MUST_CHECK;
uint64_t tr_compare_side_read(const struct tr_compare_side *s);
const struct tr_canon *tr_compare_side_canon(const struct tr_compare_side *s);

/* The bytes of directory entries that are compared, in place of d. */
struct tr_bytes tr_compare_dirents(struct tr_bytes d, struct tr_buf *names);

/* ---- compare_detail.c: saying what differs ---- */

/* One event of a difference, for its description. */
struct tr_compare_view {
	const struct tr_compare_input *in;
	const struct tr_canon *canon;
	const struct tr_event *event;
	const struct tr_event *enter; /* or NULL */
	/* Of a described call: as it began, and with what it read. */
	const struct tr_json *args, *data;
	/* What the above may point to: of the event and of `enter`. */
	struct tr_json *json[2];
	struct tr_event parsed[2];
	char *text[2];
};

/* From an item, and the events of a trace with its numbers. */
int tr_compare_view_init(struct tr_compare_view *v,
			 const struct tr_compare_item *item,
			 const struct tr_event *event,
			 const struct tr_event *enter, struct tr_error *err)
	TR_MUST_CHECK;
void tr_compare_view_release(struct tr_compare_view *v);
/* Fill d->kind and d->what from two views that differ. */
int tr_compare_describe(const struct tr_compare_view *left,
			const struct tr_compare_view *right,
			struct tr_difference *d, struct tr_error *err)
	TR_MUST_CHECK;
/* The same when only one side has an event. */
void tr_compare_describe_one(const struct tr_compare_view *v, bool missing,
			     struct tr_difference *d);

/* ---- compare_state.c ---- */

/* Append to d->what, of two states, the first mapping and page that differ. */
void tr_compare_name_memory(const struct tr_compare_view *left,
			    const struct tr_compare_view *right,
			    struct tr_difference *d);

/* ---- compare_load.c: reading again ---- */

/* Events of a trace by number. */
struct tr_compare_wanted {
	uint64_t *number; /* sorted and unique after loading */
	struct tr_event **event;
	size_t n, cap;
};
void tr_compare_want(struct tr_compare_wanted *w, uint64_t number);
int tr_compare_load(struct tr_compare_wanted *w, struct tr_reader *r,
		    struct tr_error *err) TR_MUST_CHECK;
const struct tr_event *tr_compare_wanted_get(const struct tr_compare_wanted *w,
					     uint64_t number);
void tr_compare_wanted_release(struct tr_compare_wanted *w);

#endif
