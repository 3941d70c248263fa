/* trace-replay: execute a trace again and say whether it agreed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/goto.h"
#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "cmd/cli/replay_team.h"
#include "cmd/cli/state.h"
#include "cmd/cli/status.h"
#include "cmd/cli/trace_dir.h"
#include "cmd/cli/trace_name.h"
#include "libtrace/trace.h"

enum { IDENTICAL = 0, DIVERGED = 1, TROUBLE = 2 };

static enum cli_format format;
static bool quiet, no_output, state, contents, digests;
static const char *destination;
static uint64_t last_event; /* to stop after; 0: none */
static uint64_t jobs = 1;

static const struct cli_option options[] = {
	{"contents", 0, NULL, "as --state, with the bytes of the pages",
	 CLI_FLAG, &contents},
	{"digests", 0, NULL, "write the states found here, in the place of "
	 "the recorded ones, as JSON Lines, and no output of the program",
	 CLI_FLAG, &digests},
	{"format", 'f', "FORMAT",
	 "auto, text or json; auto is text: stdout is the program's",
	 CLI_FORMAT, &format},
	{"goto", 'g', "EVENT",
	 "stop after that event; -: the one that trace-diff tells",
	 CLI_STRING, &destination},
	{"jobs", 'j', "N", "with --no-output: replay programs that are "
	 "independent of each other on up to N cores (1)", CLI_NUMBER, &jobs},
	{"no-output", 'n', NULL, "leave out what the program writes",
	 CLI_FLAG, &no_output},
	{"quiet", 'q', NULL, "print no verdict: the exit status tells",
	 CLI_FLAG, &quiet},
	{"state", 0, NULL,
	 "print registers, mappings and pages there, and no output",
	 CLI_FLAG, &state},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-replay",
	.summary = "Execute a recorded program again, exactly as it ran",
	.synopsis = "[-nq] [-j N] [--digests] [-f FORMAT] "
		    "[-g EVENT [--state] [--contents]] [TRACE]",
	.operands = CLI_OPERAND_TRACE,
	.max_operands = 1,
	.trouble = TROUBLE,
	.options = options,
};

static void put_output(const struct tr_replay_step *step)
{
	struct tr_json *j;

	if (no_output || state || digests)
		return;
	if (format != CLI_JSON) {
		FILE *f = step->output == 2 ? stderr : stdout;

		if (f == stderr)
			cli_flush();
		fwrite(step->data.data, 1, step->data.len, f);
		return;
	}
	j = tr_json_object();
	tr_json_set(j, "type", tr_json_string("output"));
	tr_json_set(j, "event", tr_json_int((int64_t)step->event->number));
	tr_json_set(j, "task", tr_json_int(step->event->task));
	tr_json_set(j, "fd", tr_json_int(step->output));
	tr_json_set(j, "data", tr_json_bytes(step->data.data, step->data.len));
	cli_json_line(j);
}

static void set_text(struct tr_json *j, const char *key, const char *s)
{
	tr_json_set(j, key, s ? tr_json_bytes(s, strlen(s)) : tr_json_null());
}

static void divergence_json(const struct tr_divergence *d)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string("divergence"));
	tr_json_set(j, "event", tr_json_int((int64_t)d->event));
	tr_json_set(j, "task", tr_json_int(d->task));
	set_text(j, "what", d->what);
	set_text(j, "detail", d->detail);
	set_text(j, "symbol", d->symbol);
	set_text(j, "previous", d->previous);
	cli_json_line(j);
}

/* Several lines on stderr, indented, under a heading. */
static void print_block(const char *heading, const char *text)
{
	if (!text || !*text)
		return;
	fprintf(stderr, "%s\n", heading);
	while (*text) {
		int n = (int)strcspn(text, "\n");

		fprintf(stderr, "  %.*s\n", n, text);
		text += n + (text[n] == '\n');
	}
}

static void divergence_text(const struct tr_divergence *d)
{
	cli_error("diverged at event %" PRIu64 ", task %" PRIu32 ": %s",
		  d->event, d->task, d->what);
	print_block("evidence (recorded, replayed):", d->detail);
	print_block("at:", d->symbol);
	print_block("events before:", d->previous);
}

static void divergence(const struct tr_divergence *d)
{
	if (quiet || !d)
		return;
	if (format == CLI_JSON)
		divergence_json(d);
	else
		divergence_text(d);
}

static void verdict_json(const char *result, const struct cli_replay_progress *p,
			 const char *note)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string("verdict"));
	tr_json_set(j, "identical",
		    tr_json_bool(strcmp(result, "identical") == 0 ||
				 strcmp(result, "reached") == 0));
	tr_json_set(j, "result", tr_json_string(result));
	tr_json_set(j, "events", tr_json_int((int64_t)p->last));
	tr_json_set(j, "tasks", tr_json_int(p->tasks));
	if (p->processes)
		tr_json_set(j, "processes", tr_json_int(p->processes));
	if (p->have_status)
		cli_status_json(j, p->status);
	if (note)
		set_text(j, "note", note);
	cli_json_line(j);
}

static void verdict(const char *result, const struct cli_replay_progress *p,
		    const char *note)
{
	char how[64] = "";

	if (quiet)
		return;
	if (format == CLI_JSON) {
		verdict_json(result, p, note);
		return;
	}
	if (p->have_status)
		cli_status_text(p->status, how, sizeof how);
	cli_error("%s: %" PRIu64 " events, %" PRIu32 " tasks%s%s%s%s", result,
		  p->last, p->tasks, *how ? ", " : "", how, note ? ": " : "",
		  note ? note : "");
}

/* What a finished replay means; `note` says why it is only a part. */
static int conclude(const struct tr_reader *reader, enum tr_replay_what what,
		    const struct cli_replay_progress *p, const char *note)
{
	if (last_event && what == TR_REPLAY_END)
		return cli_fail("there is no event %" PRIu64 ": the last is "
				"%" PRIu64, last_event, p->last);
	if (what == TR_REPLAY_END && !tr_reader_complete(reader)) {
		what = TR_REPLAY_STOPPED;
		note = "the recording ends here: the trace is incomplete";
	}
	if (what == TR_REPLAY_END) {
		verdict("identical", p, NULL);
		return IDENTICAL;
	}
	verdict(what == TR_REPLAY_DIVERGED ? "diverged" : "stopped", p, note);
	return DIVERGED;
}

/* The event asked for has been replayed. */
static int arrived(struct tr_replay *r, const struct tr_event *ev,
		   const struct cli_replay_progress *p)
{
	struct tr_error err = {0};

	if (state && cli_state_print(r, ev, contents, &err) < 0)
		return cli_trouble(&err);
	verdict("reached", p, NULL);
	return IDENTICAL;
}

static void lacks(const char *missing)
{
	if (missing && !quiet)
		cli_error("this processor lacks what the recording's had: %s",
			  missing);
}

static int replay(struct tr_reader *reader, struct tr_replay *r)
{
	struct tr_replay_step step = {0};
	struct cli_replay_progress p = {0};
	struct tr_error err = {0};

	while (cli_output_ok()) {
		if (tr_replay_step(r, &step, &err) < 0)
			return cli_trouble(&err);
		if (digests && step.state)
			cli_json_line(tr_describe_json(step.state, false));
		if (step.what == TR_REPLAY_DIVERGED)
			divergence(step.divergence);
		if (step.what != TR_REPLAY_EVENT &&
		    step.what != TR_REPLAY_OUTPUT)
			return conclude(reader, step.what, &p, step.note);
		cli_replay_note(&p, step.event);
		if (step.event)
			cli_state_learn(step.event);
		if (step.what == TR_REPLAY_OUTPUT)
			put_output(&step);
		if (last_event && step.event->number >= last_event)
			return arrived(r, step.event, &p);
	}
	return TROUBLE;
}

/* By several processes, which gives a verdict when it is a good one. */
static bool replay_apart(struct tr_reader *reader, const char *path)
{
	struct cli_replay_progress p;
	char missing[512];

	if (jobs < 2 || !cli_replay_team(reader, path, jobs, &p, missing,
					 sizeof missing))
		return false;
	lacks(*missing ? missing : NULL);
	verdict("identical", &p, NULL);
	return true;
}

static int replay_trace(struct tr_reader *reader, const char *path)
{
	struct tr_error err = {0};
	struct tr_replay *r;
	int status;

	if (replay_apart(reader, path))
		return IDENTICAL;
	r = tr_replay_new(reader, &err);
	if (!r)
		return cli_trouble(&err);
	lacks(tr_replay_cpu_missing(r));
	status = replay(reader, r);
	tr_replay_free(r);
	return status;
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv), status;
	struct tr_reader *reader = NULL;
	struct cli_trace_dir dir = {0};
	struct tr_error err = {0};
	char *path = NULL;

	state |= contents;
	if (state && !destination)
		return cli_fail("--state: of which event? (--goto)");
	if (jobs > 1 && (!no_output || digests || destination))
		return cli_fail("--jobs: only with --no-output, and neither "
				"--digests nor --goto");
	if (!destination || cli_goto_parse(destination, &last_event, &err) == 0)
		path = cli_trace_name_pick(argv[first], &err);
	if (path && cli_trace_dir_open(&dir, path, &err) == 0)
		reader = tr_reader_open(dir.path, &err);
	status = reader ? replay_trace(reader, dir.path) : cli_trouble(&err);
	if (reader)
		tr_reader_close(reader);
	cli_trace_dir_release(&dir);
	free(path);
	return cli_finish(status);
}
