/* trace-diff: find where two executions part. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/event_text.h"
#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "libtrace/trace.h"

enum { SAME = 0, DIFFERENT = 1, TROUBLE = 2 };

static enum cli_format format;
static uint64_t context = 3;
static bool quiet;

static const struct cli_option options[] = {
	{"format", 'f', "FORMAT", "auto, text or json", CLI_FORMAT, &format},
	{"unified", 'U', "N", "show N common events before (3)", CLI_NUMBER,
	 &context},
	{"quiet", 'q', NULL, "print nothing: the exit status tells",
	 CLI_FLAG, &quiet},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-diff",
	.summary = "Find the first event in which two traces differ",
	.synopsis = "[-q] [-f FORMAT] [-U N] TRACE1 TRACE2",
	.operands = CLI_OPERAND_TRACE,
	.max_operands = 2,
	.trouble = TROUBLE,
	.options = options,
};

static struct tr_json *event_json(const struct tr_event *ev)
{
	return ev && ev->type ? tr_describe_json(ev, false) : tr_json_null();
}

static void print_json(const struct tr_difference *d)
{
	struct tr_json *j = tr_json_object();

	if (d->found) {
		struct tr_json *before = tr_json_array();

		for (size_t i = 0; i < d->nbefore; i++)
			tr_json_append(before, event_json(d->before[i]));
		tr_json_set(j, "type", tr_json_string("difference"));
		tr_json_set(j, "kind", tr_json_string(d->kind));
		tr_json_set(j, "what", tr_json_string(d->what));
		tr_json_set(j, "left", event_json(d->left));
		tr_json_set(j, "right", event_json(d->right));
		tr_json_set(j, "before", before);
		cli_json_line(j);
		j = tr_json_object();
	}
	tr_json_set(j, "type", tr_json_string("verdict"));
	tr_json_set(j, "identical", tr_json_bool(!d->found));
	tr_json_set(j, "compared", tr_json_int((int64_t)d->compared));
	cli_json_line(j);
}

static void print_side(char sign, const struct tr_event *ev)
{
	if (ev && ev->type)
		cli_event_text(ev, sign, false);
	else
		printf("%c(no more events)\n", sign);
}

static void print_text(const struct tr_difference *d, char *const *paths)
{
	if (!d->found)
		return;
	printf("--- %s\n+++ %s\n@@ after %" PRIu64 " common events: %s @@\n",
	       paths[0], paths[1], d->compared, d->what);
	for (size_t i = 0; i < d->nbefore; i++)
		cli_event_text(d->before[i], ' ', false);
	print_side('-', d->left);
	print_side('+', d->right);
}

static int compare(struct tr_reader *left, struct tr_reader *right, char **paths)
{
	struct tr_compare *c = tr_compare_new(left, right, (size_t)context);
	struct tr_difference d = {0};
	struct tr_error err = {0};
	int status;

	if (tr_compare_run(c, &d, &err) < 0) {
		tr_compare_free(c);
		return cli_trouble(&err);
	}
	if (!quiet && cli_is_json(format))
		print_json(&d);
	else if (!quiet)
		print_text(&d, paths);
	status = d.found ? DIFFERENT : SAME;
	tr_compare_free(c);
	return cli_finish(status);
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv), status;
	struct tr_reader *left = NULL, *right = NULL;
	struct tr_error err = {0};

	if (argc - first != 2)
		return cli_fail("two traces are needed (try trace-diff --help)");
	if (context > 1000000)
		return cli_fail("--unified: %" PRIu64 " is too many", context);
	left = tr_reader_open(argv[first], &err);
	if (left)
		right = tr_reader_open(argv[first + 1], &err);
	status = right ? compare(left, right, argv + first) : cli_trouble(&err);
	if (right)
		tr_reader_close(right);
	if (left)
		tr_reader_close(left);
	return status;
}
