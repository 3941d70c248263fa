/*
 * State events: the digest of an address space and of a task's registers in
 * the form that traces hold.
 */
#ifndef TR_TRACEE_STATE_EVENT_H
#define TR_TRACEE_STATE_EVENT_H

#include "libtrace/base/buf.h"
#include "libtrace/format/event.h"
#include "libtrace/tracee/digest.h"

/* What an event's fields point to. */
struct tr_state_room {
	struct tr_map *map;
	size_t map_cap;
	struct tr_buf digests, pages;
};
void tr_state_room_release(struct tr_state_room *room);

/*
 * Fill an event of type `state` from the digest as of its last update and the
 * stopped task's registers; -1 with errno set when the task is gone.  Changed
 * pages are those since the last event from this digest.  `map` is what the
 * event lists; NULL: the mappings of the digest.  The event is good until the
 * room or the digest is used again.
 */
int tr_state_event(struct tr_digest *d, pid_t tid,
		   const struct tr_regs *regs, const struct tr_map *map,
		   size_t nmap, struct tr_state_room *room,
		   struct tr_event *ev) TR_MUST_CHECK;

#endif
