/* Events as JSON in the shape that tests/decoder/tracedecode.py prints. */
#ifndef TR_TESTS_EVENT_JSON_H
#define TR_TESTS_EVENT_JSON_H

#include <inttypes.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/json.h"
#include "libtrace/format/event.h"
#include "libtrace/format/page_list.h"
#include "libtrace/format/site_list.h"

static inline struct tr_json *ej_hash(uint64_t hash)
{
	char s[17];

	snprintf(s, sizeof s, "%016" PRIx64, hash);
	return tr_json_string(s);
}

static inline void ej_digest(struct tr_json *j, const struct tr_bytes *b)
{
	tr_json_set(j, "len", tr_json_int((int64_t)b->len));
	tr_json_set(j, "xxh3", ej_hash(XXH3_64bits(b->data, b->len)));
}

static inline void ej_scalars(struct tr_json *j, const struct tr_event *ev)
{
	enum { D, H };
#define X(NAME, tag, name, sign, form)                                     \
	if (tr_event_has(ev, TR_F_##NAME))                                 \
		tr_json_set(j, name, form == H                             \
			? tr_json_hex(tr_event_get(ev, TR_F_##NAME))       \
			: tr_json_int((int64_t)tr_event_get(               \
				ev, TR_F_##NAME)));
	TR_SCALAR_FIELDS(X)
#undef X
}

static inline struct tr_json *ej_regs(const struct tr_regs *r)
{
	struct tr_json *j = tr_json_object();

#define X(name) tr_json_set(j, #name, tr_json_hex(r->name));
	TR_REGS(X)
#undef X
	return j;
}

static inline struct tr_json *ej_mem(const struct tr_mem *m)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "addr", tr_json_hex(m->addr));
	ej_digest(j, &m->bytes);
	return j;
}

static inline struct tr_json *ej_map(const struct tr_map *m)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "start", tr_json_hex(m->start));
	tr_json_set(j, "end", tr_json_hex(m->end));
	tr_json_set(j, "prot", tr_json_int(m->prot));
	tr_json_set(j, "flags", tr_json_int(m->flags));
	tr_json_set(j, "file", tr_json_int(m->file));
	tr_json_set(j, "offset", tr_json_hex(m->offset));
	tr_json_set(j, "name", tr_json_bytes(m->name.data, m->name.len));
	return j;
}

static inline struct tr_json *ej_arg(const struct tr_arg *a)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "index", tr_json_int(a->index));
	tr_json_set(j, "string", tr_json_bool(a->is_string));
	tr_json_set(j, "addr", tr_json_hex(a->addr));
	tr_json_set(j, "len", tr_json_hex(a->len));
	tr_json_set(j, "xxh3", ej_hash(a->hash));
	tr_json_set(j, "bytes", tr_json_bytes(a->bytes.data, a->bytes.len));
	return j;
}

static inline void ej_structs(struct tr_json *j, const struct tr_event *ev)
{
	if (tr_event_has(ev, TR_F_REGS))
		tr_json_set(j, "regs", ej_regs(&ev->regs));
	if (tr_event_has(ev, TR_F_REGS_AFTER))
		tr_json_set(j, "regs_after", ej_regs(&ev->regs_after));
	if (tr_event_has(ev, TR_F_XSTATE)) {
		struct tr_json *x = tr_json_object();

		ej_digest(x, &ev->xstate);
		tr_json_set(j, "xstate", x);
	}
	if (tr_event_has(ev, TR_F_SIGINFO))
		tr_json_set(j, "siginfo", tr_json_hex_bytes(ev->siginfo.data,
							    ev->siginfo.len));
	if (tr_event_has(ev, TR_F_TEXT))
		tr_json_set(j, "text", tr_json_bytes(ev->text.data,
						     ev->text.len));
	if (tr_event_has(ev, TR_F_SHA256))
		tr_json_set(j, "sha256", tr_json_hex_bytes(ev->sha256.data,
							   ev->sha256.len));
}

static inline void ej_pages(struct tr_json *a, const struct tr_event *ev)
{
	struct tr_span s = tr_span_of(&ev->page_hashes);
	struct tr_page_hash page;
	uint64_t next = 0;

	while (tr_page_list_get(&s, &next, &page)) {
		struct tr_json *j = tr_json_object();

		tr_json_set(j, "addr", tr_json_hex(page.addr));
		tr_json_set(j, "xxh3", ej_hash(page.hash));
		tr_json_append(a, j);
	}
}

static inline void ej_known(struct tr_json *a, const struct tr_event *ev)
{
	struct tr_span s = tr_span_of(&ev->known);
	struct tr_listed_site site;
	uint64_t next = 0;

	while (tr_site_list_get(&s, &next, &site)) {
		struct tr_json *j = tr_json_object();

		tr_json_set(j, "at", tr_json_int((int64_t)site.at));
		tr_json_set(j, "insn", tr_json_int(site.insn));
		tr_json_set(j, "length", tr_json_int(site.length));
		tr_json_set(j, "via", tr_json_int((int64_t)site.via));
		tr_json_set(j, "hole", tr_json_int((int64_t)site.hole));
		tr_json_append(a, j);
	}
}

static inline void ej_state(struct tr_json *j, const struct tr_event *ev)
{
	struct tr_json *a;

	if (tr_event_has(ev, TR_F_DIGESTS)) {
		a = tr_json_array();
		for (size_t i = 0; i < ev->digests.len / 8; i++)
			tr_json_append(a, ej_hash(tr_map_digest(ev, i)));
		tr_json_set(j, "digests", a);
	}
	if (tr_event_has(ev, TR_F_PAGE_HASHES)) {
		a = tr_json_array();
		ej_pages(a, ev);
		tr_json_set(j, "page_hashes", a);
	}
	if (tr_event_has(ev, TR_F_KNOWN)) {
		a = tr_json_array();
		ej_known(a, ev);
		tr_json_set(j, "known", a);
	}
}

static inline void ej_lists(struct tr_json *j, const struct tr_event *ev)
{
	struct tr_json *a;

	if (ev->nmem) {
		a = tr_json_array();
		for (size_t i = 0; i < ev->nmem; i++)
			tr_json_append(a, ej_mem(&ev->mem[i]));
		tr_json_set(j, "mem", a);
	}
	if (ev->nmap) {
		a = tr_json_array();
		for (size_t i = 0; i < ev->nmap; i++)
			tr_json_append(a, ej_map(&ev->map[i]));
		tr_json_set(j, "map", a);
	}
	if (ev->narg) {
		a = tr_json_array();
		for (size_t i = 0; i < ev->narg; i++)
			tr_json_append(a, ej_arg(&ev->arg[i]));
		tr_json_set(j, "arg", a);
	}
}

static inline struct tr_json *event_json(const struct tr_event *ev)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string(tr_event_type_name(ev->type)));
	tr_json_set(j, "event", tr_json_int((int64_t)ev->number));
	tr_json_set(j, "stream", tr_json_int(ev->stream));
	tr_json_set(j, "task", tr_json_int(ev->task));
	tr_json_set(j, "time", tr_json_int((int64_t)ev->time));
	ej_scalars(j, ev);
	ej_structs(j, ev);
	ej_lists(j, ev);
	ej_state(j, ev);
	return j;
}

#endif
