/* trace-dump: show what a trace holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/event_text.h"
#include "cmd/cli/filter.h"
#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "cmd/cli/trace_name.h"
#include "cmd/cli/views.h"
#include "libtrace/trace.h"

enum { DONE = 0, TROUBLE = 2 };

static enum cli_format format;
static struct cli_filter filter;
static bool header, tasks, files, maps, stats, verbose;

static const struct cli_option options[] = {
	{"events", 'e', "A..B", "only the events with these numbers",
	 CLI_RANGE, &filter.events},
	{"task", 't', "N,...", "only the events of these tasks",
	 CLI_NUMBERS, &filter.tasks},
	{"type", 'T', "TYPE,...", "only the events of these types",
	 CLI_TYPES, &filter.types},
	{"syscall", 's', "NAME,...", "only these system calls",
	 CLI_SYSCALLS, &filter.syscalls},
	{"header", 0, NULL, "show what was recorded, where and by what",
	 CLI_FLAG, &header},
	{"tasks", 0, NULL, "show the tasks", CLI_FLAG, &tasks},
	{"files", 0, NULL, "show the stored files", CLI_FLAG, &files},
	{"maps", 0, NULL, "show the mappings made", CLI_FLAG, &maps},
	{"stats", 0, NULL, "show counts, sizes and times", CLI_FLAG, &stats},
	{"format", 'f', "FORMAT",
	 "auto, text, json, or chrome: a timeline for a browser", CLI_FORMATS,
	 &format},
	{"verbose", 'v', NULL, "add registers, memory, mappings, environment",
	 CLI_FLAG, &verbose},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-dump",
	.summary = "Show what a trace holds: its header and every event",
	.synopsis = "[-v] [-f FORMAT] [-e A..B] [-t N,...] [-T TYPE,...] "
		    "[-s NAME,...] [TRACE]\n"
		    "[-v] [-f FORMAT] [--header] [--tasks] [--files] [--maps] "
		    "[--stats] [TRACE]",
	.operands = CLI_OPERAND_TRACE,
	.max_operands = 1,
	.trouble = TROUBLE,
	.options = options,
};

static struct tr_paths *paths;
static const char *path; /* of what the event under way is about */

/* The events themselves, as they come. */
static void *events_open(bool json)
{
	static bool is_json;

	is_json = json;
	return &is_json;
}

static void event_json(const struct tr_event *ev)
{
	struct tr_json *j = tr_describe_json(ev, verbose);

	if (path)
		tr_json_set(j, "path", tr_json_bytes(path, strlen(path)));
	cli_json_line(j);
}

static void events_add(void *state, const struct tr_event *ev)
{
	/* `more` events hold only what --verbose shows. */
	if (ev->type == TR_EV_MORE && !verbose && !filter.types.n)
		return;
	if (*(bool *)state)
		event_json(ev);
	else
		cli_event_text(ev, 0, verbose);
}

static void events_close(void *state, const struct tr_reader *reader)
{
	(void)state;
	(void)reader;
}

static const struct cli_view view_events = {events_open, events_add,
					    events_close};

#define MAX_VIEWS 5

/* The views asked for; the events when none is. */
static size_t choose(const struct cli_view **chosen)
{
	const struct {
		bool wanted;
		const struct cli_view *view;
	} all[] = {
		{tasks, &cli_view_tasks}, {files, &cli_view_files},
		{maps, &cli_view_maps},   {stats, &cli_view_stats},
		{!(header || tasks || files || maps || stats), &view_events},
	};
	size_t n = 0;

	if (format == CLI_CHROME) {
		chosen[0] = &cli_view_chrome;
		return 1;
	}
	for (size_t i = 0; i < MAX_VIEWS; i++)
		if (all[i].wanted)
			chosen[n++] = all[i].view;
	if (n == 1 && chosen[0] == &view_events)
		header = true;
	return n;
}

/* A timeline needs to know of every task. */
static bool wanted(const struct tr_event *ev)
{
	bool selected = ev->number >= filter.events.first &&
			cli_filter_match(&filter, ev);

	return selected || (format == CLI_CHROME &&
			    (ev->type == TR_EV_IMAGE || ev->type == TR_EV_START ||
			     ev->type == TR_EV_EXIT));
}

/* Feed the selected events to the views; damage is said after the rest. */
static int feed(struct tr_reader *reader, const struct cli_view **views,
		void **states, size_t n, struct tr_error *err)
{
	struct tr_cursor *c = filter.events.first > 1 && format != CLI_CHROME
			      ? tr_cursor_from(reader, filter.events.first)
			      : tr_cursor_all(reader);
	const struct tr_event *ev;
	int r;

	while ((r = tr_cursor_next(c, &ev, err)) == 1 && cli_output_ok()) {
		if (filter.events.last && ev->number > filter.events.last)
			break;
		path = paths ? tr_paths_event(paths, ev) : NULL;
		if (!wanted(ev))
			continue;
		for (size_t i = 0; i < n; i++)
			views[i]->add(states[i], ev);
	}
	tr_cursor_free(c);
	return r < 0 ? -1 : 0;
}

static bool chosen_events(const struct cli_view **views, size_t n)
{
	return n == 1 && views[0] == &view_events;
}

static int dump(struct tr_reader *reader)
{
	const struct cli_view *views[MAX_VIEWS];
	void *states[MAX_VIEWS];
	size_t n = choose(views);
	bool json = cli_is_json(format);
	struct tr_error err = {0};
	int r = 0;

	if (header)
		cli_print_header(reader, json, verbose);
	if (header && !json && n)
		putchar('\n');
	for (size_t i = 0; i < n; i++)
		states[i] = views[i]->open(json);
	if (json && chosen_events(views, n))
		paths = tr_paths_new(tr_reader_manifest(reader)->cwd);
	if (n)
		r = feed(reader, views, states, n, &err);
	tr_paths_free(paths);
	for (size_t i = 0; i < n; i++)
		views[i]->close(states[i], reader);
	if (r < 0)
		return cli_trouble(&err);
	return DONE;
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv), status;
	struct tr_reader *reader = NULL;
	struct tr_error err = {0};
	char *trace;

	if (format == CLI_CHROME && (header || tasks || files || maps || stats))
		return cli_fail("--format=chrome shows events only");
	trace = cli_trace_name_pick(argv[first], &err);
	if (trace)
		reader = tr_trace_open(trace, &err);
	status = reader ? dump(reader) : cli_trouble(&err);
	if (reader)
		tr_reader_close(reader);
	free(trace);
	return cli_finish(status);
}
