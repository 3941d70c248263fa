/*
 * Views of a trace: what trace-dump shows besides the events themselves.
 * Each is fed every selected event in order and prints at the end or, where
 * it can, as it goes; memory grows with tasks or files, never with events.
 */
#ifndef CLI_VIEWS_H
#define CLI_VIEWS_H

#include <stdbool.h>

#include "libtrace/trace.h"

struct cli_view {
	void *(*open)(bool json);
	void (*add)(void *state, const struct tr_event *ev);
	/* Print what is left to print and free the state. */
	void (*close)(void *state, const struct tr_reader *reader);
};

extern const struct cli_view cli_view_tasks, cli_view_files, cli_view_maps,
	cli_view_stats, cli_view_chrome;

/* The manifest; `verbose` adds the environment and the CPU's flags. */
void cli_print_header(const struct tr_reader *reader, bool json, bool verbose);

#endif
