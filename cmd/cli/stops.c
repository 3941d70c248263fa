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
	const struct file *file;
};

struct stream {
	struct text *text;
	size_t n, cap;
};

struct file {
	uint32_t number;
	char *path; /* NULL: not known */
	size_t path_len;
	bool mapped; /* as code */
	size_t undecided; /* byte patterns that were left alone */
};

struct stop {
	uint64_t offset, count;
	const struct file *file;
	bool changed; /* calls that the recorder wants to see stop there, too */
	const char *what;
};

struct cli_stops {
	struct tr_table streams; /* struct stream, by number */
	struct stop **stop;
	size_t n, cap;
	struct tr_table by_place; /* elements of `stop` */
	struct file **file;       /* in the order in which they are stored */
	size_t nfiles, file_cap;
	struct tr_table by_number; /* elements of `file` */
};

struct cli_stops *cli_stops_new(void)
{
	return tr_alloc(sizeof(struct cli_stops));
}

void cli_stops_free(struct cli_stops *s)
{
	TR_TABLE_EACH(&s->streams, slot) {
		free(((struct stream *)slot->value)->text);
		free(slot->value);
	}
	for (size_t i = 0; i < s->nfiles; i++) {
		free(s->file[i]->path);
		free(s->file[i]);
	}
	for (size_t i = 0; i < s->n; i++)
		free(s->stop[i]);
	tr_table_release(&s->streams);
	tr_table_release(&s->by_place);
	tr_table_release(&s->by_number);
	free(s->file);
	free(s->stop);
	free(s);
}

static struct stream *stream_of(struct cli_stops *s, uint64_t number)
{
	struct stream *st = tr_table_get(&s->streams, number);

	if (!st) {
		st = tr_alloc(sizeof *st);
		tr_table_set(&s->streams, number, st);
	}
	return st;
}

static struct file *file_of(struct cli_stops *s, uint32_t number)
{
	struct file *f = tr_table_get(&s->by_number, number);

	if (!f) {
		f = tr_alloc(sizeof *f);
		f->number = number;
		TR_GROW(s->file, s->nfiles, s->file_cap);
		s->file[s->nfiles++] = f;
		tr_table_set(&s->by_number, number, f);
	}
	return f;
}

static void add_file(struct cli_stops *s, const struct tr_event *ev)
{
	struct file *f = file_of(s, (uint32_t)tr_event_get(ev, TR_F_FILE));

	if (f->path)
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
	f = file_of(s, m->file);
	f->mapped = true;
	TR_GROW(st->text, st->n, st->cap);
	st->text[st->n++] = (struct text){m->start, m->end, m->offset, f};
}

/* A new address space has what its parent's had. */
static void add_child(struct cli_stops *s, const struct tr_event *ev)
{
	uint64_t number = tr_event_get(ev, TR_F_CHILD_STREAM);
	struct stream *to = stream_of(s, number);
	const struct stream *from = stream_of(s, ev->stream);

	if (to == from)
		return;
	free(to->text);
	to->text = tr_memdup(from->text, from->n * sizeof *from->text);
	to->n = to->cap = from->n;
}

static void count(struct cli_stops *s, const struct text *t, uint64_t addr,
		  const char *what, bool changed)
{
	uint64_t offset = addr - t->start + t->offset;
	uint64_t key = offset ^ (uint64_t)t->file->number << 40;
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

	if (tr_event_get(ev, TR_F_ORIGIN) != TR_ORIGIN_KERNEL)
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
	struct stream *st = stream_of(s, ev->stream);

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
	if (ev->type == TR_EV_IMAGE)
		st->n = 0;
	for (size_t i = 0; i < ev->nmap && ev->type != TR_EV_STATE; i++)
		add_text(s, st, &ev->map[i]);
}

static int by_count(const void *a, const void *b)
{
	const struct stop *x = *(struct stop *const *)a;
	const struct stop *y = *(struct stop *const *)b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->file != y->file)
		return x->file->number < y->file->number ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Byte patterns of the file that could be instructions, and were left alone. */
static size_t undecided_in(const struct tr_reader *reader, const struct file *f)
{
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_sites sites = {0};
	struct tr_error ignored;
	size_t n;

	if (tr_reader_stored(reader, f->number, FILE_MAX, &b, &ignored) < 0)
		return 0;
	tr_sites_scan(b.data, b.len, &sites);
	n = sites.undecided;
	tr_sites_release(&sites);
	return n;
}

/* Leave those that could not be changed, most frequent first; look into the
 * files. */
static void finish(struct cli_stops *s, const struct tr_reader *reader)
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
	for (size_t i = 0; i < s->nfiles; i++)
		if (s->file[i]->mapped)
			s->file[i]->undecided = undecided_in(reader,
							     s->file[i]);
}

static void set_file(struct tr_json *j, const struct file *f)
{
	tr_json_set(j, "file", tr_json_int(f->number));
	if (f->path)
		tr_json_set(j, "path", tr_json_bytes(f->path, f->path_len));
}

static struct tr_json *stop_json(const struct stop *p)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "at", tr_json_string(p->what));
	tr_json_set(j, "count", tr_json_int((int64_t)p->count));
	set_file(j, p->file);
	tr_json_set(j, "offset", tr_json_int((int64_t)p->offset));
	return j;
}

static struct tr_json *undecided_json(const struct file *f)
{
	struct tr_json *j = tr_json_object();

	set_file(j, f);
	tr_json_set(j, "count", tr_json_int((int64_t)f->undecided));
	return j;
}

void cli_stops_json(struct cli_stops *s, const struct tr_reader *reader,
		    struct tr_json *j)
{
	struct tr_json *stops = tr_json_array(), *undecided = tr_json_array();

	finish(s, reader);
	for (size_t i = 0; i < s->n; i++)
		tr_json_append(stops, stop_json(s->stop[i]));
	for (size_t i = 0; i < s->nfiles; i++)
		if (s->file[i]->undecided)
			tr_json_append(undecided, undecided_json(s->file[i]));
	tr_json_set(j, "stops", stops);
	tr_json_set(j, "undecided", undecided);
}

static void print_path(const struct file *f)
{
	if (f->path)
		cli_put_escaped(f->path, f->path_len);
	else
		printf("file %" PRIu32, f->number);
	putchar('\n');
}

void cli_stops_print(struct cli_stops *s, const struct tr_reader *reader)
{
	finish(s, reader);
	if (s->n)
		printf("\n%-20s %10s %12s  %s\n", "stopped at", "times", "offset",
		       "file");
	for (size_t i = 0; i < s->n && i < SHOWN_MAX; i++) {
		printf("%-20s %10" PRIu64 " %#12" PRIx64 "  ", s->stop[i]->what,
		       s->stop[i]->count, s->stop[i]->offset);
		print_path(s->stop[i]->file);
	}
	if (s->n > SHOWN_MAX)
		printf("and %zu more places\n", s->n - SHOWN_MAX);
	for (size_t i = 0; i < s->nfiles; i++) {
		size_t n = s->file[i]->undecided;

		if (n == 0)
			continue;
		printf("%zu byte pattern%s of RDTSC, CPUID and the like could "
		       "not be told from data in ", n, n == 1 ? "" : "s");
		print_path(s->file[i]);
	}
}
