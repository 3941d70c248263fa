/* Numbering and writing events. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/tracee/memory.h"

/* Effect data one record carries; the rest goes to `more` records. */
#define RECORD_DATA (1u << 20)

struct tr_event rec_event(enum tr_event_type type, const struct task *t)
{
	struct tr_event ev = {.type = type};

	if (t) {
		ev.stream = t->as->stream;
		ev.task = t->id;
	}
	return ev;
}

/* Trouble with the trace never stops the program: remember and go on. */
static void put(struct recorder *r, const struct tr_event *ev)
{
	struct tr_error err;

	if (!r->writer || tr_writer_put(r->writer, ev, &err) == 0)
		return;
	r->lost = true;
	snprintf(r->stopped, sizeof r->stopped, "events lost: %.230s", err.text);
	r->stopped_at = ev->number;
	tr_writer_abandon(r->writer);
	r->writer = NULL;
}

/* How many of the memory pieces from `first` on fit one record. */
static size_t fitting(const struct tr_event *ev, size_t first)
{
	size_t bytes = 0, n = first;

	while (n < ev->nmem && bytes + ev->mem[n].bytes.len <= RECORD_DATA)
		bytes += ev->mem[n++].bytes.len;
	return n - first;
}

void rec_emit(struct recorder *r, struct tr_event *ev)
{
	rec_emit_at(r, ev, tr_now_ns());
}

void rec_emit_at(struct recorder *r, struct tr_event *ev, uint64_t now)
{
	struct tr_mem *mem = ev->mem;
	size_t total = ev->nmem, done = fitting(ev, 0), parts = 0;

	ev->number = ++r->number;
	/* Times of calls that were not seen are guesses: keep the order. */
	if (now - r->start_ns > r->latest)
		r->latest = now - r->start_ns;
	ev->time = r->latest;
	for (size_t i = done; i < total; parts++)
		i += fitting(ev, i);
	if (parts)
		tr_event_set(ev, TR_F_PARTS, parts);
	if (total)
		tr_event_mark(ev, TR_F_MEM);
	ev->nmem = done;
	put(r, ev);
	while (done < total) {
		struct tr_event more = {
			.type = TR_EV_MORE, .number = ev->number,
			.stream = ev->stream, .task = ev->task,
			.time = ev->time,
		};

		ev->nmem = total;
		more.mem = mem + done;
		more.nmem = fitting(ev, done);
		tr_event_mark(&more, TR_F_MEM);
		put(r, &more);
		done += more.nmem;
	}
}

void rec_note(struct recorder *r, uint32_t stream, uint32_t task,
	      enum tr_note code, const char *text)
{
	struct tr_event ev = {.type = TR_EV_NOTE, .stream = stream,
			      .task = task, .text = {text, strlen(text)}};

	tr_event_set(&ev, TR_F_CODE, code);
	tr_event_mark(&ev, TR_F_TEXT);
	rec_emit(r, &ev);
}

void rec_stop_replay(struct recorder *r, struct task *t, enum tr_note code,
		     const char *fmt, ...)
{
	char text[200];
	va_list ap;

	if (t->as->stopped)
		return;
	t->as->stopped = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	rec_note(r, t->as->stream, t->id, code, text);
	if (r->stopped[0])
		return;
	snprintf(r->stopped, sizeof r->stopped, "process %d: %s", (int)t->pid,
		 text);
	r->stopped_at = r->number;
}

void rec_read_ranges(struct recorder *r, const struct task *t,
		     const struct tr_ranges *ranges, struct tr_event *ev)
{
	size_t total = 0, n = 0;

	for (size_t i = 0; i < ranges->n; i++)
		total += ranges->r[i].len;
	r->scratch.len = 0;
	tr_buf_reserve(&r->scratch, total);
	for (size_t i = 0; i < ranges->n; i++) {
		uint64_t addr = ranges->r[i].addr, left = ranges->r[i].len;

		while (left) {
			size_t want = left < TR_MEM_PIECE ? left : TR_MEM_PIECE;
			uint8_t *data = r->scratch.data + r->scratch.len;
			size_t got = tr_memory_read_some(t->tid, addr, data,
							 want);

			if (got) {
				TR_GROW(r->pieces, n, r->pieces_cap);
				r->pieces[n++] =
					(struct tr_mem){addr, {data, got}};
				r->scratch.len += got;
			}
			if (got < want)
				break;
			addr += got;
			left -= got;
		}
	}
	ev->mem = r->pieces;
	ev->nmem = n;
}

void rec_digests(struct recorder *r, bool wait)
{
	struct tr_store_digest d;

	while (tr_store_take_digest(r->store, wait, &d)) {
		struct tr_event ev = {.type = TR_EV_DIGEST,
				      .sha256 = {d.sha256, sizeof d.sha256}};
		char text[64];

		tr_event_set(&ev, TR_F_FILE, d.id);
		if (d.pages)
			tr_event_set(&ev, TR_F_PAGES, 1);
		tr_event_mark(&ev, TR_F_SHA256);
		rec_emit(r, &ev);
		if (!d.changed)
			continue;
		snprintf(text, sizeof text,
			 "files/%u changed while it was recorded", d.id);
		rec_note(r, 0, 0, TR_NOTE_FILE_CHANGED, text);
	}
}
