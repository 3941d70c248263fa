/* trace-diff: find where two executions part. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/cli/event_text.h"
#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "cmd/cli/state_diff.h"
#include "cmd/cli/trace_dir.h"
#include "libtrace/trace.h"

enum { SAME = 0, DIFFERENT = 1, TROUBLE = 2 };

static enum cli_format format;
static uint64_t context = 3, most = 100;
static struct cli_set ignored;
static bool quiet, digests, memory;

static const struct cli_option options[] = {
	{"digests", 0, NULL, "compare recorded states instead of events",
	 CLI_FLAG, &digests},
	{"format", 'f', "FORMAT", "auto, text or json", CLI_FORMAT, &format},
	{"ignore", 'i', "WHAT,...",
	 "what may differ (pids,addresses,times,files); none: nothing",
	 CLI_IGNORE, &ignored},
	{"max", 'n', "N", "show the first N differences (100); 0: all",
	 CLI_NUMBER, &most},
	{"memory", 'm', NULL,
	 "replay both to the first difference; show how the states differ",
	 CLI_FLAG, &memory},
	{"unified", 'U', "N", "show N common events around (3)", CLI_NUMBER,
	 &context},
	{"quiet", 'q', NULL, "print nothing: the exit status tells",
	 CLI_FLAG, &quiet},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-diff",
	.summary = "Find where two executions part",
	.synopsis = "[-mq] [-f FORMAT] [-i WHAT,...] [-n N] [-U N] [--digests] "
		    "TRACE1 TRACE2",
	.operands = CLI_OPERAND_TRACE,
	.max_operands = 2,
	.trouble = TROUBLE,
	.options = options,
};

/* ---- JSON ---- */

static struct tr_json *event_json(const struct tr_compare_event *e)
{
	struct tr_error ignore;
	struct tr_json *j = NULL;

	if (e->line)
		j = tr_json_parse(e->line, strlen(e->line), "event", &ignore);
	else if (e->event)
		j = tr_describe_json(e->event, false);
	return j ? j : tr_json_null();
}

static struct tr_json *number_json(uint64_t number)
{
	return number ? tr_json_int((int64_t)number) : tr_json_null();
}

static struct tr_json *difference_json(const struct tr_difference *d)
{
	struct tr_json *j = tr_json_object(), *after = tr_json_object();

	tr_json_set(after, "left", number_json(d->after[0]));
	tr_json_set(after, "right", number_json(d->after[1]));
	tr_json_set(j, "type", tr_json_string("difference"));
	tr_json_set(j, "kind", tr_json_string(d->kind));
	tr_json_set(j, "what", tr_json_string(d->what));
	tr_json_set(j, "left", event_json(&d->left));
	tr_json_set(j, "right", event_json(&d->right));
	tr_json_set(j, "after", after);
	return j;
}

static void hunk_json(const struct tr_hunk *h, size_t number)
{
	for (size_t i = 0; i < h->n; i++) {
		struct tr_json *j = difference_json(&h->d[i]);
		struct tr_json *before = tr_json_array();

		for (size_t k = 0; i == 0 && k < h->nbefore; k++)
			tr_json_append(before, event_json(&h->before[k]));
		tr_json_set(j, "hunk", tr_json_int((int64_t)number));
		tr_json_set(j, "before", before);
		cli_json_line(j);
	}
}

static struct tr_json *first_json(const struct tr_comparison *c)
{
	const struct tr_difference *d = c->n ? &c->hunk[0].d[0] : NULL;
	struct tr_json *j = d ? tr_json_object() : tr_json_null();

	if (!d)
		return j;
	tr_json_set(j, "kind", tr_json_string(d->kind));
	tr_json_set(j, "what", tr_json_string(d->what));
	tr_json_set(j, "left", number_json(d->left.number));
	tr_json_set(j, "right", number_json(d->right.number));
	return j;
}

static void print_verdict(const struct tr_comparison *c)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string("verdict"));
	tr_json_set(j, "identical", tr_json_bool(c->n == 0));
	tr_json_set(j, "compared", tr_json_int((int64_t)c->compared));
	tr_json_set(j, "changed", tr_json_int((int64_t)c->changed));
	tr_json_set(j, "missing", tr_json_int((int64_t)c->missing));
	tr_json_set(j, "extra", tr_json_int((int64_t)c->extra));
	tr_json_set(j, "first", first_json(c));
	cli_json_line(j);
}

/* ---- text ---- */

static void print_event(char sign, const struct tr_compare_event *e)
{
	if (e->event)
		cli_event_text(e->event, sign, false);
	else if (e->line)
		cli_event_line_text(e->line, sign);
}

static void print_hunk(const struct tr_hunk *h)
{
	printf("@@ %s @@\n", h->d[0].what);
	for (size_t i = 0; i < h->nbefore; i++)
		print_event(' ', &h->before[i]);
	for (size_t i = 0; i < h->n; i++) {
		const struct tr_difference *d = &h->d[i];

		print_event('-', &d->left);
		print_event('+', &d->right);
		if (i > 0 && d->left.number && d->right.number)
			printf("?%s\n", d->what);
	}
	if (h->omitted)
		printf("?%" PRIu64 " more differences (--max)\n", h->omitted);
	for (size_t i = 0; i < h->nbehind; i++)
		print_event(' ', &h->behind[i]);
}

static void print_place(const char *path, const struct tr_compare_event *e,
			uint64_t after)
{
	printf("%s: ", path);
	if (e->number)
		printf("event %" PRIu64, e->number);
	else
		printf("after event %" PRIu64, after);
}

static void print_text(const struct tr_comparison *c,
		       const struct tr_compare_input *side)
{
	const struct tr_difference *d = c->n ? &c->hunk[0].d[0] : NULL;

	if (!d)
		return;
	printf("--- %s\n+++ %s\n%" PRIu64 " events agree, %" PRIu64
	       " changed, %" PRIu64 " missing, %" PRIu64 " extra; they part at ",
	       side[0].name, side[1].name, c->compared, c->changed, c->missing,
	       c->extra);
	print_place(side[0].name, &d->left, d->after[0]);
	printf(", ");
	print_place(side[1].name, &d->right, d->after[1]);
	printf(" (%s)\n", d->kind);
	for (size_t i = 0; i < c->n && cli_output_ok(); i++)
		print_hunk(&c->hunk[i]);
}

/* ---- the states at the first difference ---- */

/* The event itself; where there is none, the last one before it. */
static uint64_t place_of(const struct tr_compare_event *e, uint64_t after)
{
	return e->number ? e->number : after;
}

/* A task that has ended has no state: go to its last event before that. */
static uint64_t before_end(const struct tr_compare_event *e, uint64_t after)
{
	return e->event && e->event->type == TR_EV_EXIT ? after :
	       place_of(e, after);
}

static int print_states(const struct tr_comparison *c,
			const struct tr_compare_input *side,
			struct tr_error *err)
{
	const struct tr_difference *d = &c->hunk[0].d[0];
	struct cli_replayed r[2] = {{0}};

	if (c->n == 0)
		return 0;
	r[0].event = before_end(&d->left, d->after[0]);
	r[1].event = before_end(&d->right, d->after[1]);
	for (int i = 0; i < 2; i++) {
		r[i].trace = tr_reader_path(side[i].reader);
		r[i].reader = side[i].reader;
		if (r[i].event == 0)
			return tr_fail(err, TR_EINVAL, "%s: the difference is "
				       "before any state of the task",
				       side[i].name);
	}
	cli_flush();
	return cli_state_diff(r, cli_is_json(format), most, err);
}

static int print(const struct tr_comparison *c,
		 const struct tr_compare_input *side, struct tr_error *err)
{
	bool json = cli_is_json(format);
	int failed;

	for (size_t i = 0; json && i < c->n; i++)
		hunk_json(&c->hunk[i], i + 1);
	if (!json)
		print_text(c, side);
	failed = memory ? print_states(c, side, err) : 0;
	if (json)
		print_verdict(c);
	return failed;
}

/* ---- the two sides ---- */

static unsigned ignore_bits(void)
{
	unsigned bits = 0;

	for (size_t i = 0; i < ignored.n; i++)
		bits |= (unsigned)ignored.values[i];
	return ignored.n ? bits : TR_IGNORE_USUAL;
}

/* One side's trace, when it is an archive and its files are needed. */
static struct cli_trace_dir dirs[2];

/* The files of a trace are needed for its replay. */
static int open_trace(struct tr_compare_input *in, struct cli_trace_dir *dir,
		      const char *path, struct tr_error *err)
{
	if (memory && cli_trace_dir_open(dir, path, err) < 0)
		return -1;
	in->reader = tr_trace_open(memory ? dir->path : path, err);
	return in->reader ? 0 : -1;
}

/* Neither a directory nor an archive: an object opens with a brace. */
static bool is_lines(const char *path, FILE **f)
{
	struct stat st;
	int c;

	if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
		return false;
	*f = fopen(path, "re");
	if (!*f || !S_ISREG(st.st_mode))
		return true;
	c = getc(*f);
	rewind(*f);
	if (c == '{' || c == EOF || isspace(c))
		return true;
	fclose(*f);
	return false;
}

/* A trace, as a directory or an archive, or JSON Lines, as - is. */
static int open_side(struct tr_compare_input *in, struct cli_trace_dir *dir,
		     const char *path, struct tr_error *err)
{
	in->name = path;
	if (strcmp(path, "-") == 0) {
		in->name = "standard input";
		in->lines = stdin;
	} else if (!is_lines(path, &in->lines)) {
		return open_trace(in, dir, path, err);
	}
	return in->lines ? 0 : tr_fail_errno(err, "%s", path);
}

static void close_side(struct tr_compare_input *in)
{
	if (in->reader)
		tr_reader_close(in->reader);
	else if (in->lines && in->lines != stdin)
		fclose(in->lines);
}

static int compare(const struct tr_compare_input *side)
{
	const struct tr_compare_options o = {
		.ignore = ignore_bits(), .context = context, .max = most,
		.any = quiet, .states = digests,
	};
	struct tr_compare *c = tr_compare_new(&side[0], &side[1], &o);
	struct tr_comparison result = {0};
	struct tr_error err = {0};
	int status;

	if (tr_compare_run(c, &result, &err) < 0) {
		tr_compare_free(c);
		return cli_trouble(&err);
	}
	if (!quiet && print(&result, side, &err) < 0) {
		tr_compare_free(c);
		return cli_trouble(&err);
	}
	status = result.changed + result.missing + result.extra ? DIFFERENT
								: SAME;
	tr_compare_free(c);
	return cli_finish(status);
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv), status;
	struct tr_compare_input side[2] = {0};
	struct tr_error err = {0};

	if (argc - first != 2)
		return cli_fail("two traces are needed (try trace-diff --help)");
	if (context > 1000000)
		return cli_fail("--unified: %" PRIu64 " is too many", context);
	if (strcmp(argv[first], "-") == 0 && strcmp(argv[first + 1], "-") == 0)
		return cli_fail("standard input can be one side only");
	if (memory && quiet)
		return cli_fail("--memory shows something, --quiet nothing");
	if (open_side(&side[0], &dirs[0], argv[first], &err) < 0 ||
	    open_side(&side[1], &dirs[1], argv[first + 1], &err) < 0)
		status = cli_trouble(&err);
	else if (memory && !(side[0].reader && side[1].reader))
		status = cli_fail("--memory needs two traces");
	else
		status = compare(side);
	close_side(&side[0]);
	close_side(&side[1]);
	cli_trace_dir_release(&dirs[0]);
	cli_trace_dir_release(&dirs[1]);
	return status;
}
