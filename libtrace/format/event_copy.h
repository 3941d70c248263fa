/* Events that outlive the cursor they came from. */
#ifndef TR_FORMAT_EVENT_COPY_H
#define TR_FORMAT_EVENT_COPY_H

#include "libtrace/format/event.h"

/* A copy that owns everything it points to. */
struct tr_event *tr_event_copy(const struct tr_event *ev);
void tr_event_free(struct tr_event *ev); /* NULL is fine */

#endif
