/* Where programs stopped: sites by file and offset. */
#include "cmd/cli/stops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cmd/cli/output.h"
#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/table.h"
#include "libtrace/state/code.h"

/* Lines of a table. */
#define SHOWN_MAX 20
/* The largest file that is looked into. */
#define FILE_MAX ((size_t)1 << 30)

struct text { /* an executable mapping */
	uint64_t start, end, offset;
	uint32_t file;
};

struct stream {
	struct text *text;
	size_t n, cap;
};

struct stop {
	uint64_t offset, count;
	uint32_t file;
	bool changed; /* calls that the recorder wants to see stop there, too */
	const char *what;
};

struct file {
	char *path; /* NULL: none of that number */
	size_t path_len;
	bool mapped; /* as code */
};

struct cli_stops {
	struct stream *streams;
	size_t nstreams;
	struct stop **stop;
	size_t n, cap;
	struct tr_table by_place; /* elements of `stop` */
	struct file *files;
	size_t nfiles;
};

struct cli_stops *cli_stops_new(void)
{
	return tr_alloc(sizeof(struct cli_stops));
}

void cli_stops_free(struct cli_stops *s)
{
	for (size_t i = 0; i < s->nstreams; i++)
		free(s->streams[i].text);
	for (size_t i = 0; i < s->nfiles; i++)
		free(s->files[i].path);
	for (size_t i = 0; i < s->n; i++)
		free(s->stop[i]);
	tr_table_release(&s->by_place);
	free(s->streams);
	free(s->files);
	free(s->stop);
	free(s);
}

/* The numbers are the trace's: no memory for those that cannot be. */
#define NUMBER_MAX (1u << 20)

static struct stream *stream_of(struct cli_stops *s, uint64_t number)
{
	if (number >= NUMBER_MAX)
		return NULL;
	if (number >= s->nstreams) {
		size_t n = (size_t)number + 16;

		s->streams = tr_realloc(s->streams, n * sizeof *s->streams);
		memset(s->streams + s->nstreams, 0,
		       (n - s->nstreams) * sizeof *s->streams);
		s->nstreams = n;
	}
	return &s->streams[number];
}

static struct file *file_of(struct cli_stops *s, uint64_t number)
{
	if (number >= NUMBER_MAX)
		return NULL;
	if (number >= s->nfiles) {
		size_t n = (size_t)number + 16;

		s->files = tr_realloc(s->files, n * sizeof *s->files);
		memset(s->files + s->nfiles, 0,
		       (n - s->nfiles) * sizeof *s->files);
		s->nfiles = n;
	}
	return &s->files[number];
}

static void add_file(struct cli_stops *s, const struct tr_event *ev)
{
	struct file *f = file_of(s, tr_event_get(ev, TR_F_FILE));

	if (!f || f->path)
		return;
	f->path = tr_memdup(ev->text.data, ev->text.len);
	f->path_len = ev->text.len;
}

static void add_text(struct cli_stops *s, struct stream *st,
		     const struct tr_map *m)
{
	size_t kept = 0;
	struct file *f;

	for (size_t i = 0; i < st->n; i++)
		if (st->text[i].end <= m->start || st->text[i].start >= m->end)
			st->text[kept++] = st->text[i];
	st->n = kept;
	if (!m->file || !(m->prot & PROT_EXEC))
		return;
	TR_GROW(st->text, st->n, st->cap);
	st->text[st->n++] = (struct text){m->start, m->end, m->offset, m->file};
	f = file_of(s, m->file);
	if (f)
		f->mapped = true;
}

/* A new address space has what its parent's had. */
static void add_child(struct cli_stops *s, const struct tr_event *ev)
{
	uint64_t number = tr_event_get(ev, TR_F_CHILD_STREAM);
	struct stream *to = stream_of(s, number);
	const struct stream *from = stream_of(s, ev->stream);

	if (!to || !from || number == ev->stream)
		return;
	to = stream_of(s, number); /* the array may have moved */
	free(to->text);
	to->text = tr_memdup(from->text, from->n * sizeof *from->text);
	to->n = to->cap = from->n;
}

static void count(struct cli_stops *s, const struct text *t, uint64_t addr,
		  const char *what, bool changed)
{
	uint64_t offset = addr - t->start + t->offset;
	uint64_t key = offset ^ (uint64_t)t->file << 40;
	struct stop *stop = tr_table_get(&s->by_place, key);

	if (offset >> 40)
		return;
	if (!stop) {
		stop = tr_alloc(sizeof *stop);
		*stop = (struct stop){.offset = offset, .file = t->file,
				      .what = what};
		TR_GROW(s->stop, s->n, s->cap);
		s->stop[s->n++] = stop;
		tr_table_set(&s->by_place, key, stop);
	}
	stop->count++;
	stop->changed |= changed;
	if (strcmp(stop->what, what) != 0)
		stop->what = "syscall"; /* of several kinds */
}

static void add_stop(struct cli_stops *s, const struct tr_event *ev,
		     uint64_t addr, const char *what)
{
	const struct stream *st = stream_of(s, ev->stream);

	if (!st || tr_event_get(ev, TR_F_ORIGIN) != TR_ORIGIN_KERNEL)
		return;
	for (size_t i = 0; i < st->n; i++)
		if (addr >= st->text[i].start && addr < st->text[i].end) {
			count(s, &st->text[i], addr, what,
			      tr_event_has(ev, TR_F_VALUE));
			return;
		}
}

void cli_stops_add(struct cli_stops *s, const struct tr_event *ev)
{
	const struct tr_sys *sys;
	struct stream *st;

	switch (ev->type) {
	case TR_EV_FILE:
		add_file(s, ev);
		break;
	case TR_EV_CLONE:
		add_child(s, ev);
		break;
	case TR_EV_INSN:
		add_stop(s, ev, ev->regs.rip,
			 tr_insn_name(tr_event_get(ev, TR_F_INSN)));
		break;
	case TR_EV_SYSCALL:
		sys = tr_sys_lookup(tr_event_get(ev, TR_F_NR));
		if (sys && sys->quick)
			add_stop(s, ev, ev->regs.rip - 2, sys->name);
		break;
	default:
		break;
	}
	st = ev->nmap ? stream_of(s, ev->stream) : NULL;
	if (st && ev->type == TR_EV_IMAGE)
		st->n = 0;
	if (st && ev->type != TR_EV_STATE)
		for (size_t i = 0; i < ev->nmap; i++)
			add_text(s, st, &ev->map[i]);
}

static int by_count(const void *a, const void *b)
{
	const struct stop *x = *(struct stop *const *)a;
	const struct stop *y = *(struct stop *const *)b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Leave those that could not be changed, most frequent first. */
static void finish(struct cli_stops *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (s->stop[i]->changed)
			free(s->stop[i]);
		else
			s->stop[kept++] = s->stop[i];
	}
	s->n = kept;
	if (s->n)
		qsort(s->stop, s->n, sizeof *s->stop, by_count);
}

/* Byte patterns of the file that could be instructions, and were left alone. */
static size_t undecided_in(const struct tr_reader *reader, size_t file)
{
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_sites sites = {0};
	struct tr_error ignored;
	size_t n;

	if (tr_reader_stored(reader, (uint32_t)file, FILE_MAX, &b,
			     &ignored) < 0)
		return 0;
	tr_sites_scan(b.data, b.len, &sites);
	n = sites.undecided;
	tr_sites_release(&sites);
	return n;
}

static void set_file(const struct cli_stops *s, size_t file, struct tr_json *j)
{
	const struct file *f = file < s->nfiles ? &s->files[file] : NULL;

	tr_json_set(j, "file", tr_json_int((int64_t)file));
	if (f && f->path)
		tr_json_set(j, "path", tr_json_bytes(f->path, f->path_len));
}

static struct tr_json *stops_json(const struct cli_stops *s)
{
	struct tr_json *list = tr_json_array();

	for (size_t i = 0; i < s->n; i++) {
		struct tr_json *e = tr_json_object();

		tr_json_set(e, "at", tr_json_string(s->stop[i]->what));
		tr_json_set(e, "count",
			    tr_json_int((int64_t)s->stop[i]->count));
		set_file(s, s->stop[i]->file, e);
		tr_json_set(e, "offset",
			    tr_json_int((int64_t)s->stop[i]->offset));
		tr_json_append(list, e);
	}
	return list;
}

void cli_stops_json(struct cli_stops *s, const struct tr_reader *reader,
		    struct tr_json *j)
{
	struct tr_json *list = tr_json_array();

	finish(s);
	tr_json_set(j, "stops", stops_json(s));
	for (size_t i = 0; i < s->nfiles; i++) {
		size_t n = s->files[i].mapped ? undecided_in(reader, i) : 0;
		struct tr_json *e;

		if (n == 0)
			continue;
		e = tr_json_object();
		set_file(s, i, e);
		tr_json_set(e, "count", tr_json_int((int64_t)n));
		tr_json_append(list, e);
	}
	tr_json_set(j, "undecided", list);
}

static void print_path(const struct cli_stops *s, size_t file)
{
	const struct file *f = file < s->nfiles ? &s->files[file] : NULL;

	if (f && f->path)
		cli_put_escaped(f->path, f->path_len);
	else
		printf("file %zu", file);
}

void cli_stops_print(struct cli_stops *s, const struct tr_reader *reader)
{
	finish(s);
	if (s->n)
		printf("\n%-20s %10s %12s  %s\n", "stopped at", "times", "offset",
		       "file");
	for (size_t i = 0; i < s->n && i < SHOWN_MAX; i++) {
		printf("%-20s %10" PRIu64 " %#12" PRIx64 "  ", s->stop[i]->what,
		       s->stop[i]->count, s->stop[i]->offset);
		print_path(s, s->stop[i]->file);
		putchar('\n');
	}
	if (s->n > SHOWN_MAX)
		printf("and %zu more places\n", s->n - SHOWN_MAX);
	for (size_t i = 0; i < s->nfiles; i++) {
		size_t n = s->files[i].mapped ? undecided_in(reader, i) : 0;

		if (n == 0)
			continue;
		printf("%zu byte pattern%s of RDTSC, CPUID and the like could "
		       "not be told from data in ", n, n == 1 ? "" : "s");
		print_path(s, i);
		putchar('\n');
	}
}
