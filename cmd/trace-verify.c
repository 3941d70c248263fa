/* trace-verify: prove that a trace is whole, untampered and replayable. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "cmd/cli/replay_run.h"
#include "cmd/cli/trace_name.h"
#include "libtrace/trace.h"

enum { VALID = 0, INVALID = 1, TROUBLE = 2 };

static enum cli_format format;
static bool quiet, replay;
static uint64_t jobs; /* 0: as many as there are cores */

static const struct cli_option options[] = {
	{"format", 'f', "FORMAT", "auto, text or json", CLI_FORMAT, &format},
	{"jobs", 'j', "N", "replay on up to N cores (all)", CLI_NUMBER, &jobs},
	{"quiet", 'q', NULL, "print nothing: the exit status tells",
	 CLI_FLAG, &quiet},
	{"replay", 0, NULL, "also execute it again, and compare every event "
	 "and every digest of the state", CLI_FLAG, &replay},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-verify",
	.summary = "Check every byte, record and stored file of a trace",
	.synopsis = "[-q] [--replay [-j N]] [-f FORMAT] [TRACE]",
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

/* What the replay came to. */
struct replayed {
	char result[16]; /* "identical", "diverged", "stopped"; "": none */
	char note[512];  /* why it stopped, or where it parted */
};

static void get_text(const struct tr_json *j, const char *key, char *to,
		     size_t room)
{
	const char *s;

	if (tr_json_get_string(tr_json_get(j, key), &s))
		snprintf(to, room, "%s", s);
}

static void print_divergence(const struct tr_json *j, struct replayed *r)
{
	char what[512] = "";
	const char *detail;
	int64_t event = 0, task = 0;

	get_text(j, "what", what, sizeof what);
	tr_json_get_int(tr_json_get(j, "event"), &event);
	tr_json_get_int(tr_json_get(j, "task"), &task);
	snprintf(r->note, sizeof r->note, "event %" PRId64 ", task %" PRId64
		 ": %.400s", event, task, what);
	if (quiet)
		return;
	if (cli_is_json(format)) {
		char *line = tr_json_dump(j);

		puts(line);
		free(line);
	} else if (tr_json_get_string(tr_json_get(j, "detail"), &detail)) {
		fputs(detail, stdout);
	}
}

static void on_replay_object(void *arg, const struct tr_json *j)
{
	struct replayed *r = arg;
	char type[16] = "";

	get_text(j, "type", type, sizeof type);
	if (strcmp(type, "divergence") == 0) {
		print_divergence(j, r);
	} else if (strcmp(type, "verdict") == 0) {
		get_text(j, "result", r->result, sizeof r->result);
		get_text(j, "note", r->note, sizeof r->note);
	}
}

static void print_verdict_json(const struct tr_check_stats *s,
			       const struct replayed *r)
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
	if (*r->result)
		tr_json_set(j, "replay", tr_json_string(r->result));
	if (*r->note)
		tr_json_set(j, "note", tr_json_bytes(r->note, strlen(r->note)));
	cli_json_line(j);
}

static void print_verdict_text(const char *path, const struct tr_check_stats *s,
			       const struct replayed *r)
{
	if (s->problems)
		printf("%s: not valid: %" PRIu64 " problem%s\n", path,
		       s->problems, s->problems == 1 ? "" : "s");
	else
		printf("%s: valid: %" PRIu64 " events, %" PRIu64 " tasks, %"
		       PRIu64 " files, %" PRIu64 " bytes\n", path, s->events,
		       s->tasks, s->files, s->bytes);
	if (*r->result)
		printf("%s: replay %s%s%s\n", path, r->result,
		       *r->note ? ": " : "", r->note);
}

/*
 * Check, and take what cannot even be opened as a trace for a problem as
 * well.  -1 is left for what could not be looked at.
 */
static int check(const char *path, struct tr_check_stats *stats,
		 struct tr_error *err)
{
	struct tr_problem p = {.where = path, .offset = -1, .what = err->text};

	if (tr_trace_check(path, on_problem, NULL, stats, err) == 0)
		return 0;
	if (err->code == TR_ESYS)
		return -1;
	p.code = err->code;
	on_problem(NULL, &p);
	stats->problems++;
	return 0;
}

static uint64_t cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return 1;
	return (uint64_t)CPU_COUNT(&set);
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv);
	struct tr_check_stats stats = {0};
	struct replayed replayed = {0};
	struct tr_error err = {0};
	char *path;
	int status;

	if (jobs && !replay)
		return cli_fail("--jobs: of what? (--replay)");
	path = cli_trace_name_pick(argv[first], &err);
	if (!path || check(path, &stats, &err) < 0) {
		free(path);
		return cli_trouble(&err);
	}
	status = stats.problems ? INVALID : VALID;
	/* A trace with damage is not worth executing. */
	if (replay && status == VALID)
		status = cli_replay_run(path, jobs ? jobs : cores(),
					on_replay_object, &replayed, &err);
	if (status < 0) {
		free(path);
		return cli_trouble(&err);
	}
	if (status != TROUBLE && !quiet && cli_is_json(format))
		print_verdict_json(&stats, &replayed);
	else if (status != TROUBLE && !quiet)
		print_verdict_text(path, &stats, &replayed);
	free(path);
	return cli_finish(status);
}
