/* View: what a trace consists of, counted. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/cli/output.h"
#include "cmd/cli/stops.h"
#include "cmd/cli/views.h"
#include "libtrace/base/alloc.h"

struct call {
	uint64_t count, errors, denied, emulated, captured, exposed, duration;
};

struct stream {
	uint64_t chunks, records, raw, stored;
};

#define MAX_NOTE 64 /* note codes are below it; others count as the last */

struct state {
	bool json;
	uint64_t events, types[256], notes[MAX_NOTE];
	struct call *calls; /* by number; the last one is for unknown numbers */
	size_t ncalls;
	struct cli_stops *stops;
};

static void *stats_open(bool json)
{
	struct state *s = tr_alloc(sizeof *s);

	s->json = json;
	s->ncalls = tr_sys_count() + 1;
	s->calls = tr_alloc(s->ncalls * sizeof *s->calls);
	s->stops = cli_stops_new();
	return s;
}

static void add_call(struct state *s, const struct tr_event *ev)
{
	uint64_t nr = tr_event_get(ev, TR_F_NR);
	struct call *c = &s->calls[nr < s->ncalls - 1 ? nr : s->ncalls - 1];
	int64_t result = (int64_t)tr_event_get(ev, TR_F_RESULT);

	c->count++;
	c->exposed += tr_event_get(ev, TR_F_EXPOSED) == 1;
	c->duration += tr_event_get(ev, TR_F_DURATION);
	/* Results from -4095 to -1 are errors: syscall(2). */
	c->errors += result < 0 && result >= -4095;
	switch (tr_event_get(ev, TR_F_ORIGIN)) {
	case TR_ORIGIN_DENIED:
		c->denied++;
		break;
	case TR_ORIGIN_EMULATED:
		c->emulated++;
		break;
	case TR_ORIGIN_CAPTURED:
		c->captured++;
		break;
	}
}

static void stats_add(void *state, const struct tr_event *ev)
{
	struct state *s = state;

	s->events += ev->type != TR_EV_MORE;
	s->types[ev->type & 0xff]++;
	cli_stops_add(s->stops, ev);
	if (ev->type == TR_EV_SYSCALL)
		add_call(s, ev);
	if (ev->type == TR_EV_NOTE) {
		uint64_t code = tr_event_get(ev, TR_F_CODE);

		s->notes[code < MAX_NOTE ? code : MAX_NOTE - 1]++;
	}
}

static const char *call_name(const struct state *s, size_t i)
{
	const struct tr_sys *sys = i + 1 < s->ncalls ? tr_sys_lookup(i) : NULL;

	return sys ? sys->name : "?";
}

/* Chunks by stream; returns an array of tr_reader_stream_count elements, and
 * one more, of the blocks. */
static struct stream *count_chunks(const struct tr_reader *reader,
				   struct stream *total)
{
	uint32_t n = tr_reader_stream_count(reader);
	struct stream *streams = tr_alloc((n + (size_t)1) * sizeof *streams);
	const struct tr_chunk_ref *chunks;
	size_t nchunks = tr_reader_chunks(reader, &chunks);

	for (size_t i = 0; i < nchunks; i++) {
		uint32_t s = chunks[i].stream;
		struct stream *both[2] = {total, &streams[s < n ? s : n]};

		for (int k = 0; k < 2; k++) {
			both[k]->chunks++;
			both[k]->records += chunks[i].records;
			both[k]->raw += chunks[i].raw_size;
			both[k]->stored += chunks[i].stored_size;
		}
	}
	return streams;
}

static void set(struct tr_json *j, const char *key, uint64_t v)
{
	tr_json_set(j, key, tr_json_int((int64_t)v));
}

static struct tr_json *stream_json(const struct stream *s)
{
	struct tr_json *j = tr_json_object();

	set(j, "chunks", s->chunks);
	set(j, "records", s->records);
	set(j, "raw_bytes", s->raw);
	set(j, "stored_bytes", s->stored);
	return j;
}

static struct tr_json *streams_json(const struct stream *streams, uint32_t n)
{
	struct tr_json *list = tr_json_array();

	for (uint32_t i = 0; i < n; i++) {
		struct tr_json *j;

		if (streams[i].chunks == 0)
			continue;
		j = stream_json(&streams[i]);
		set(j, "stream", i);
		tr_json_append(list, j);
	}
	return list;
}

static struct tr_json *types_json(const struct state *s)
{
	struct tr_json *j = tr_json_object();

	for (unsigned i = 0; i < 256; i++)
		if (s->types[i] && tr_event_type_name(i))
			set(j, tr_event_type_name(i), s->types[i]);
	return j;
}

static struct tr_json *notes_json(const struct state *s)
{
	struct tr_json *j = tr_json_object();

	for (unsigned i = 0; i < MAX_NOTE; i++)
		if (s->notes[i])
			set(j, tr_note_name(i), s->notes[i]);
	return j;
}

static struct tr_json *calls_json(const struct state *s)
{
	struct tr_json *list = tr_json_array();

	for (size_t i = 0; i < s->ncalls; i++) {
		const struct call *c = &s->calls[i];
		struct tr_json *j;

		if (c->count == 0)
			continue;
		j = tr_json_object();
		tr_json_set(j, "name", tr_json_string(call_name(s, i)));
		set(j, "count", c->count);
		set(j, "errors", c->errors);
		set(j, "denied", c->denied);
		set(j, "emulated", c->emulated);
		set(j, "captured", c->captured);
		set(j, "exposed", c->exposed);
		set(j, "duration", c->duration);
		tr_json_append(list, j);
	}
	return list;
}

static void print_json(const struct state *s, const struct tr_reader *reader,
		       const struct stream *total, const struct stream *streams)
{
	uint32_t n = tr_reader_stream_count(reader);
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string("stats"));
	set(j, "events", s->events);
	tr_json_set(j, "types", types_json(s));
	tr_json_set(j, "notes", notes_json(s));
	tr_json_set(j, "total", stream_json(total));
	tr_json_set(j, "streams", streams_json(streams, n));
	tr_json_set(j, "blocks", stream_json(&streams[n]));
	tr_json_set(j, "syscalls", calls_json(s));
	cli_stops_json(s->stops, reader, j);
	cli_json_line(j);
}

static void print_counts(const struct state *s)
{
	printf("%12" PRIu64 "  events\n", s->events);
	for (unsigned i = 0; i < 256; i++)
		if (s->types[i] && tr_event_type_name(i))
			printf("%12" PRIu64 "  %s\n", s->types[i],
			       tr_event_type_name(i));
	for (unsigned i = 0; i < MAX_NOTE; i++)
		if (s->notes[i])
			printf("%12" PRIu64 "  note: %s\n", s->notes[i],
			       tr_note_name(i));
}

static void print_calls(const struct state *s)
{
	printf("\n%-20s %10s %8s %8s %8s %8s %12s\n", "syscall", "calls",
	       "errors", "denied", "captured", "exposed", "seconds");
	for (size_t i = 0; i < s->ncalls; i++) {
		const struct call *c = &s->calls[i];

		if (c->count)
			printf("%-20s %10" PRIu64 " %8" PRIu64 " %8" PRIu64
			       " %8" PRIu64 " %8" PRIu64 " %12.6f\n",
			       call_name(s, i), c->count, c->errors, c->denied,
			       c->captured, c->exposed,
			       (double)c->duration / 1e9);
	}
}

static void print_stream(const char *name, const struct stream *s)
{
	printf("%-10s %8" PRIu64 " %10" PRIu64 " %14" PRIu64 " %14" PRIu64 "\n",
	       name, s->chunks, s->records, s->raw, s->stored);
}

static void print_streams(const struct stream *total,
			  const struct stream *streams, uint32_t n)
{
	printf("\n%-10s %8s %10s %14s %14s\n", "stream", "chunks", "records",
	       "raw bytes", "stored bytes");
	for (uint32_t i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof name, "%" PRIu32, i);
		if (streams[i].chunks)
			print_stream(i ? name : "catalogue", &streams[i]);
	}
	if (streams[n].chunks)
		print_stream("blocks", &streams[n]);
	print_stream("all", total);
}

static void stats_close(void *state, const struct tr_reader *reader)
{
	struct state *s = state;
	struct stream total = {0};
	struct stream *streams = count_chunks(reader, &total);
	uint32_t n = tr_reader_stream_count(reader);

	if (s->json) {
		print_json(s, reader, &total, streams);
	} else {
		print_counts(s);
		print_streams(&total, streams, n);
		print_calls(s);
		cli_stops_print(s->stops, reader);
	}
	free(streams);
	cli_stops_free(s->stops);
	free(s->calls);
	free(s);
}

const struct cli_view cli_view_stats = {stats_open, stats_add, stats_close};
