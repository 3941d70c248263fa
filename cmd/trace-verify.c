/* trace-verify: prove that a trace is whole and untampered. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "cmd/cli/trace_name.h"
#include "libtrace/trace.h"

enum { VALID = 0, INVALID = 1, TROUBLE = 2 };

static enum cli_format format;
static bool quiet;

static const struct cli_option options[] = {
	{"format", 'f', "FORMAT", "auto, text or json", CLI_FORMAT, &format},
	{"quiet", 'q', NULL, "print nothing: the exit status tells",
	 CLI_FLAG, &quiet},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-verify",
	.summary = "Check every byte, record and stored file of a trace",
	.synopsis = "[-q] [-f FORMAT] [TRACE]",
	.operands = CLI_OPERAND_TRACE,
	.max_operands = 1,
	.trouble = TROUBLE,
	.options = options,
};

static void print_problem_json(const struct tr_problem *p)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string("problem"));
	tr_json_set(j, "code", tr_json_string(tr_code_name(p->code)));
	tr_json_set(j, "where", tr_json_string(p->where));
	if (p->offset >= 0)
		tr_json_set(j, "offset", tr_json_int(p->offset));
	if (p->event)
		tr_json_set(j, "event", tr_json_int((int64_t)p->event));
	tr_json_set(j, "what", tr_json_string(p->what));
	cli_json_line(j);
}

static void print_problem_text(const struct tr_problem *p)
{
	printf("%s:", p->where);
	if (p->offset >= 0)
		printf("%" PRId64 ":", p->offset);
	if (p->event)
		printf(" event %" PRIu64 ":", p->event);
	printf(" %s\n", p->what);
}

static void on_problem(void *arg, const struct tr_problem *p)
{
	(void)arg;
	if (quiet)
		return;
	if (cli_is_json(format))
		print_problem_json(p);
	else
		print_problem_text(p);
}

static void print_verdict_json(const struct tr_check_stats *s)
{
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{"problems", s->problems}, {"chunks", s->chunks},
		{"events", s->events},     {"tasks", s->tasks},
		{"streams", s->streams},   {"files", s->files},
		{"bytes", s->bytes},
	};
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string("verdict"));
	tr_json_set(j, "valid", tr_json_bool(s->problems == 0));
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		tr_json_set(j, counts[i].key,
			    tr_json_int((int64_t)counts[i].value));
	cli_json_line(j);
}

static void print_verdict_text(const char *path, const struct tr_check_stats *s)
{
	if (s->problems)
		printf("%s: not valid: %" PRIu64 " problem%s\n", path,
		       s->problems, s->problems == 1 ? "" : "s");
	else
		printf("%s: valid: %" PRIu64 " events, %" PRIu64 " tasks, %"
		       PRIu64 " files, %" PRIu64 " bytes\n", path, s->events,
		       s->tasks, s->files, s->bytes);
}

/*
 * Check, and take what cannot even be opened as a trace for a problem as
 * well.  -1 is left for what could not be looked at.
 */
static int check(const char *path, struct tr_check_stats *stats,
		 struct tr_error *err)
{
	struct tr_problem p = {.where = path, .offset = -1, .what = err->text};

	if (tr_check(path, on_problem, NULL, stats, err) == 0)
		return 0;
	if (err->code == TR_ESYS)
		return -1;
	p.code = err->code;
	on_problem(NULL, &p);
	stats->problems++;
	return 0;
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv);
	struct tr_check_stats stats = {0};
	struct tr_error err = {0};
	char *path = cli_trace_name_pick(argv[first], &err);

	if (!path || check(path, &stats, &err) < 0) {
		free(path);
		return cli_trouble(&err);
	}
	if (!quiet && cli_is_json(format))
		print_verdict_json(&stats);
	else if (!quiet)
		print_verdict_text(path, &stats);
	free(path);
	return cli_finish(stats.problems ? INVALID : VALID);
}
