/*
 * Make a trace that differs from another in a known way, and is as whole: all
 * checksums are right, the events are numbered anew.
 *
 *   alter FROM TO flip N BYTE     flip a bit of the memory event N wrote
 *   alter FROM TO result N VALUE  event N returned something else
 *   alter FROM TO rdi N VALUE     event N was called with another argument 1
 *   alter FROM TO signal N SIGNO  event N is another signal
 *   alter FROM TO drop N          event N did not happen
 *   alter FROM TO twice N         event N happened twice
 *   alter FROM TO copies N COUNT EVERY
 *                                 event N happened COUNT times; every EVERYth
 *                                 time it read something else (0: never)
 *
 * The stored files are not copied: cp -r FROM/files TO.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/event_copy.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/reader.h"
#include "libtrace/format/writer.h"

static struct tr_error err;
static const char *action;
static uint64_t where, value, every;
static uint64_t number; /* of the last event written */
static bool found;

static void must(bool ok)
{
	if (ok)
		return;
	fprintf(stderr, "alter: %s\n", err.text);
	exit(2);
}

static void put(struct tr_writer *w, struct tr_event *ev)
{
	if (ev->type != TR_EV_MORE)
		number++;
	ev->number = number;
	if (ev->type == TR_EV_END)
		tr_event_set(ev, TR_F_EVENTS, number);
	must(tr_writer_put(w, ev, &err) == 0);
}

static void flip(struct tr_event *ev, uint64_t byte)
{
	for (size_t i = 0; i < ev->nmem; byte -= ev->mem[i++].bytes.len) {
		if (byte >= ev->mem[i].bytes.len)
			continue;
		/* The event is a copy of ours. */
		((uint8_t *)(uintptr_t)ev->mem[i].bytes.data)[byte] ^= 1;
		return;
	}
	snprintf(err.text, sizeof err.text, "event %" PRIu64
		 " did not write so much", ev->number);
	must(false);
}

static void copies(struct tr_writer *w, struct tr_event *ev)
{
	for (uint64_t i = 1; i <= value; i++) {
		bool other = every && i % every == 0;

		if (other)
			flip(ev, 0);
		ev->time += 1000;
		put(w, ev);
		if (other)
			flip(ev, 0);
	}
}

/* The event asked for. */
static void alter(struct tr_writer *w, const struct tr_event *original)
{
	struct tr_event *ev = tr_event_copy(original);

	found = true;
	if (strcmp(action, "copies") == 0) {
		copies(w, ev);
	} else if (strcmp(action, "drop") != 0) {
		if (strcmp(action, "flip") == 0)
			flip(ev, value);
		else if (strcmp(action, "result") == 0)
			tr_event_set(ev, TR_F_RESULT, value);
		else if (strcmp(action, "rdi") == 0)
			ev->regs.rdi = value;
		else if (strcmp(action, "signal") == 0)
			tr_event_set(ev, TR_F_SIGNO, value);
		else if (strcmp(action, "twice") == 0)
			put(w, ev);
		put(w, ev);
	}
	tr_event_free(ev);
}

static void write_events(struct tr_reader *r, struct tr_writer *w)
{
	struct tr_cursor *cur = tr_cursor_all(r);
	const struct tr_event *ev;
	int n;

	while ((n = tr_cursor_next(cur, &ev, &err)) > 0) {
		struct tr_event copy = *ev;

		if (ev->number == where && ev->type != TR_EV_MORE)
			alter(w, ev);
		else if (ev->number != where || strcmp(action, "drop") != 0)
			put(w, &copy);
	}
	must(n == 0);
	tr_cursor_free(cur);
	if (!found)
		snprintf(err.text, sizeof err.text, "no event %" PRIu64, where);
	must(found);
	/* The catalogue ends last: formats/trace-format.md. */
	for (uint32_t i = 1; i < tr_reader_stream_count(r); i++)
		must(tr_writer_end_stream(w, i, &err) == 0);
	must(tr_writer_end_stream(w, 0, &err) == 0);
}

int main(int argc, char **argv)
{
	struct tr_reader *r;
	struct tr_writer *w;
	struct tr_manifest m;

	if (argc < 5) {
		fprintf(stderr, "usage: alter FROM TO ACTION N [VALUE [EVERY]]\n");
		return 2;
	}
	action = argv[3];
	where = strtoull(argv[4], NULL, 10);
	value = argc > 5 ? (uint64_t)strtoll(argv[5], NULL, 10) : 0;
	every = argc > 6 ? strtoull(argv[6], NULL, 10) : 0;
	r = tr_reader_open(argv[1], &err);
	must(r != NULL);
	if (mkdir(argv[2], 0700) < 0) {
		perror(argv[2]);
		return 2;
	}
	TR_AUTOCLOSE int dir = open(argv[2], O_RDONLY | O_DIRECTORY);

	w = tr_writer_open(dir, &err);
	must(w != NULL);
	write_events(r, w);
	must(tr_writer_close(w, NULL, &err) == 0);
	m = *tr_reader_manifest(r);
	m.events = number;
	must(tr_manifest_write(dir, &m, &err) == 0);
	tr_reader_close(r);
	return 0;
}
