/*
 * Digests of a task's whole state: computed where the recording has them, and
 * compared.  Where they differ, the evidence names mappings and pages.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/page_list.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/tracee/digest.h"
#include "libtrace/tracee/pagemap.h"
#include "libtrace/tracee/state_event.h"

/* Tracking writes pays when states follow each other: not for those at the
 * begin and the end of a program. */
#define STATES_UNTRACKED 2
/* Lines of evidence for one kind of thing. */
#define LINES 16u

static void show_program(void *as, uint64_t addr, uint8_t *page)
{
	struct rspace *a = as;

	tr_patches_show(&a->patches, addr, page, TR_PAGE);
	tr_calls_show(&a->calls, addr, page, TR_PAGE);
}

static void put(struct tr_buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct tr_buf *b, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof line - 1)
		n = sizeof line - 1;
	tr_buf_put(b, line, n < 0 ? 0 : (size_t)n);
}

static const struct tr_map *map_of(const struct tr_event *ev, uint64_t addr)
{
	for (size_t i = 0; i < ev->nmap; i++)
		if (addr >= ev->map[i].start && addr < ev->map[i].end)
			return &ev->map[i];
	return NULL;
}

static void put_name(struct tr_buf *b, const struct tr_map *m)
{
	if (!m)
		put(b, "no mapping");
	else if (m->name.len)
		put(b, "%.*s", (int)(m->name.len < 200 ? m->name.len : 200),
		    (const char *)m->name.data);
	else
		put(b, "anonymous memory");
}

/* Mappings whose digests differ; returns how many. */
static size_t put_mappings(struct tr_buf *b, const struct tr_event *recorded,
			   const struct tr_event *own)
{
	size_t n = 0;

	for (size_t i = 0; i < recorded->nmap; i++) {
		const struct tr_map *m = &recorded->map[i];

		if (tr_map_digest(recorded, i) == tr_map_digest(own, i) ||
		    n++ >= LINES)
			continue;
		put(b, "mapping 0x%" PRIx64 "-0x%" PRIx64 " ", m->start, m->end);
		put_name(b, m);
		put(b, ": recorded 0x%" PRIx64 ", replayed 0x%" PRIx64 "\n",
		    tr_map_digest(recorded, i), tr_map_digest(own, i));
	}
	if (n > LINES)
		put(b, "and %zu more mappings\n", n - LINES);
	return n;
}

struct pages {
	struct tr_buf *out;
	const struct tr_event *recorded;
	uint64_t first; /* address of the first page that differs */
	size_t n;
};

static void add_page(struct pages *p, uint64_t addr, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add_page(struct pages *p, uint64_t addr, const char *fmt, ...)
{
	char what[128];
	va_list ap;

	if (p->n == 0 || addr < p->first)
		p->first = addr;
	if (p->n++ >= LINES)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	put(p->out, "page 0x%" PRIx64 " of ", addr);
	put_name(p->out, map_of(p->recorded, addr));
	put(p->out, ": %s\n", what);
}

/* Pages that changed when recorded and hold something else here. */
static uint64_t put_recorded(struct pages *p, const struct tr_digest *d)
{
	struct tr_span s = tr_span_of(&p->recorded->page_hashes);
	struct tr_page_hash page;
	uint64_t next = 0;

	while (tr_page_list_get(&s, &next, &page)) {
		uint64_t own = tr_digest_page(d, page.addr);

		if (own != page.hash)
			add_page(p, page.addr, "recorded 0x%" PRIx64
				 ", replayed 0x%" PRIx64, page.hash, own);
	}
	return next;
}

static bool is_listed(const struct tr_event *ev, uint64_t addr)
{
	struct tr_span s = tr_span_of(&ev->page_hashes);
	struct tr_page_hash page;
	uint64_t next = 0;

	while (tr_page_list_get(&s, &next, &page))
		if (page.addr == addr)
			return true;
	return false;
}

/* Pages that changed here alone, as far as the recorded list goes. */
static void put_own(struct pages *p, const struct tr_event *own, uint64_t end)
{
	struct tr_span s = tr_span_of(&own->page_hashes);
	uint64_t next = 0, listed = p->recorded->page_hashes.len;
	struct tr_page_hash page;

	while (tr_page_list_get(&s, &next, &page))
		if ((page.addr < end || !listed) &&
		    !is_listed(p->recorded, page.addr))
			add_page(p, page.addr, "changed in the replay alone, "
				 "to 0x%" PRIx64, page.hash);
}

/* Pages of stored files that were changed since. */
static void put_files(struct pages *p, const struct rtask *t,
		      const struct tr_event *own)
{
	struct tr_page_hash page[LINES];

	for (size_t i = 0; i < p->recorded->nmap; i++) {
		uint64_t was = tr_map_digest(p->recorded, i);
		uint64_t is = tr_map_digest(own, i);
		size_t n = was == is ? 0 :
			   rep_changed_pages(t, &p->recorded->map[i], was, is,
					     page, LINES);

		for (size_t k = 0; k < n && k < LINES; k++)
			add_page(p, page[k].addr, "recorded 0x%" PRIx64
				 ", replayed 0x%" PRIx64 ": the stored file "
				 "was changed", page[k].hash,
				 tr_digest_page(t->as->digest, page[k].addr));
		if (n > LINES)
			p->n += n - LINES;
	}
}

static enum applied memory_differs(struct tr_replay *r, struct rtask *t,
				   const struct tr_event *own)
{
	TR_AUTOBUF struct tr_buf b = {0}, place = {0};
	struct pages p = {.out = &b, .recorded = &r->ev};
	size_t maps = put_mappings(&b, &r->ev, own);

	put_own(&p, own, put_recorded(&p, t->as->digest));
	put_files(&p, t, own);
	if (p.n > LINES)
		put(&b, "and %zu more pages\n", p.n - LINES);
	tr_buf_put_u8(&b, '\0');
	free(r->divergence.detail);
	r->divergence.detail = tr_strdup((char *)b.data);
	if (p.n) {
		put(&place, ": page 0x%" PRIx64 " of ", p.first);
		put_name(&place, map_of(&r->ev, p.first));
	}
	tr_buf_put_u8(&place, '\0');
	return rep_diverged(r, t, "the digest of the memory differs in %zu "
			    "mapping%s%s", maps, maps == 1 ? "" : "s",
			    (char *)place.data);
}

static enum applied compare(struct tr_replay *r, struct rtask *t)
{
	const struct tr_event *own = &r->state;

	if (tr_event_get(own, TR_F_REGISTERS) !=
	    tr_event_get(&r->ev, TR_F_REGISTERS))
		return rep_diverged(r, t, "the digest of the registers differs");
	if (tr_event_has(&r->ev, TR_F_ROOT) &&
	    tr_event_get(own, TR_F_ROOT) != tr_event_get(&r->ev, TR_F_ROOT))
		return memory_differs(r, t, own);
	if (tr_event_has(&r->ev, TR_F_VECTOR) &&
	    tr_event_get(own, TR_F_VECTOR) != tr_event_get(&r->ev, TR_F_VECTOR))
		return rep_diverged(r, t, "the digest of the vector registers "
				    "differs");
	return AGREED;
}

/* Points and states share it: see record/state.c. */
static struct tr_digest *digest_of(const struct tr_replay *r, struct rspace *as)
{
	if (!as->digest)
		as->digest = tr_digest_new(r->digester);
	return as->digest;
}

int rep_point_digest(struct tr_replay *r, struct rtask *t,
		     const struct tr_probe *p, uint64_t *root,
		     struct tr_error *err)
{
	struct tr_digest_task at = {
		.tid = t->tid, .may_call = true,
		.unpatch = show_program, .ctx = t->as,
	};
	struct tr_digest *d = digest_of(r, t->as);

	tr_probe_region(p, &at.hide_start, &at.hide_end);
	if (tr_digest_update(d, &at, tr_digest_is_large(d), err) < 0)
		return -1;
	*root = tr_digest_root(d);
	return 0;
}

/* The task stands where its last event left it. */
enum applied rep_apply_state(struct tr_replay *r, struct rtask *t,
			     struct tr_error *err)
{
	struct tr_digest_task at = {
		.tid = t->tid, .may_call = true,
		.unpatch = show_program, .ctx = t->as,
	};
	bool track = t->as->states++ >= STATES_UNTRACKED;

	if (tr_digest_update(digest_of(r, t->as), &at, track, err) < 0)
		return TROUBLE;
	r->state = (struct tr_event){
		.type = TR_EV_STATE, .number = r->ev.number,
		.stream = r->ev.stream, .task = r->ev.task, .time = r->ev.time,
	};
	tr_event_set(&r->state, TR_F_PARENT, tr_event_get(&r->ev, TR_F_PARENT));
	if (tr_state_event(t->as->digest, t->tid, &t->regs, r->ev.map,
			   r->ev.nmap, &r->state_room, &r->state) < 0) {
		tr_fail_errno(err, "task %u: reading its state", t->id);
		return TROUBLE;
	}
	r->resume_after = !t->at_entry;
	return compare(r, t);
}
