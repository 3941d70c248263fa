/* State events from digests. */
#include "libtrace/tracee/state_event.h"

#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/state/xstate.h"
#include "libtrace/tracee/tracee.h"

/* What one event lists at most: what is beyond says little more, and a large
 * program must not pay for it at every digest. */
#define MAX_PAGES 1024u
#define MAX_MAPPINGS 2048u
#define MAX_NAMES (256u << 10)

void tr_state_room_release(struct tr_state_room *room)
{
	free(room->map);
	tr_buf_release(&room->digests);
	tr_buf_release(&room->pages);
}

/* The digest's mappings in the room; returns how many it does not list. */
static size_t list_mappings(const struct tr_digest *d,
			    struct tr_state_room *room, size_t *listed)
{
	size_t n, names = 0;
	const struct tr_digest_mapping *m = tr_digest_mappings(d, &n);

	*listed = 0;
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(m[i].name);

		names += length;
		if (i == MAX_MAPPINGS || names > MAX_NAMES ||
		    length > TR_MAX_TEXT)
			break;
		TR_GROW(room->map, *listed, room->map_cap);
		room->map[(*listed)++] = (struct tr_map){
			.start = m[i].start, .end = m[i].end,
			.prot = m[i].prot, .flags = m[i].flags,
			.name = {m[i].name, length}};
	}
	return n - *listed;
}

static void set_mappings(const struct tr_digest *d, const struct tr_map *map,
			 size_t n, struct tr_state_room *room,
			 struct tr_event *ev)
{
	room->digests.len = 0;
	for (size_t i = 0; i < n; i++) {
		tr_put_le64(tr_buf_reserve(&room->digests, 8),
			    tr_digest_range(d, map[i].start, map[i].end));
		room->digests.len += 8;
	}
	ev->map = (struct tr_map *)(uintptr_t)map;
	ev->nmap = n;
	ev->digests = (struct tr_bytes){room->digests.data, room->digests.len};
	if (n == 0)
		return;
	tr_event_mark(ev, TR_F_MAP);
	tr_event_mark(ev, TR_F_DIGESTS);
}

static void set_pages(struct tr_digest *d, struct tr_state_room *room,
		      struct tr_event *ev)
{
	size_t n;
	const struct tr_page_hash *p = tr_digest_changed(d, &n);
	uint64_t next = 0;

	room->pages.len = 0;
	for (size_t i = 0; i < n && i < MAX_PAGES; i++)
		tr_page_list_put(&room->pages, &next, &p[i]);
	tr_event_set(ev, TR_F_CHANGED, n);
	ev->page_hashes = (struct tr_bytes){room->pages.data, room->pages.len};
	if (n)
		tr_event_mark(ev, TR_F_PAGE_HASHES);
}

int tr_state_event(struct tr_digest *d, pid_t tid,
		   const struct tr_regs *regs, const struct tr_map *map,
		   size_t nmap, struct tr_state_room *room,
		   struct tr_event *ev)
{
	uint8_t xstate[TR_MAX_XSTATE];
	size_t n = sizeof xstate, unlisted = 0;

	if (tr_tracee_get_xstate(tid, xstate, &n) < 0)
		return -1;
	tr_event_set(ev, TR_F_ROOT, tr_digest_root(d));
	tr_event_set(ev, TR_F_REGISTERS, tr_digest_regs(regs));
	tr_event_set(ev, TR_F_VECTOR, tr_xstate_digest(xstate, n));
	if (!map) {
		unlisted = list_mappings(d, room, &nmap);
		map = room->map;
	}
	if (unlisted)
		tr_event_set(ev, TR_F_UNLISTED, unlisted);
	set_mappings(d, map, nmap, room, ev);
	set_pages(d, room, ev);
	tr_digest_mark(d);
	return 0;
}
