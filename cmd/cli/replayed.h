/*
 * The state of a trace at an event, as another program tells it: trace-replay,
 * found beside this tool or in PATH, so that the tool itself has no engine.
 */
#ifndef CLI_REPLAYED_H
#define CLI_REPLAYED_H

#include <stdio.h>
#include <sys/types.h>

#include "libtrace/trace.h"

struct cli_mapping {
	uint64_t start, end, offset;
	uint32_t file; /* store id, or 0 */
	char permissions[5];
	char *name;
};

struct cli_replayed {
	const char *trace;        /* its path */
	struct tr_reader *reader; /* borrowed */
	uint64_t event;
	uint32_t task;
	struct tr_regs regs;
	struct cli_mapping *map;  /* ascending */
	size_t nmaps, maps_cap;
	/* The page read last. */
	bool at_page;             /* false: there are no more */
	uint64_t addr, hash;
	uint8_t bytes[4096];
	/* Where it comes from. */
	pid_t pid;
	FILE *from;
	char *line;
	size_t line_size;
};

/* Start the replay of r->trace to r->event. */
int cli_replayed_start(struct cli_replayed *r, struct tr_error *err)
	TR_MUST_CHECK;
/* Read registers, mappings, and the first page. */
int cli_replayed_begin(struct cli_replayed *r, struct tr_error *err)
	TR_MUST_CHECK;
/* The next page. */
int cli_replayed_page(struct cli_replayed *r, struct tr_error *err)
	TR_MUST_CHECK;
/* Wait for the replay's end. */
int cli_replayed_finish(struct cli_replayed *r, struct tr_error *err)
	TR_MUST_CHECK;
void cli_replayed_release(struct cli_replayed *r);

/* What is at an address. Strings are owned, or NULL. */
struct cli_location {
	char *mapping; /* file or "[stack]", ... */
	char *symbol;  /* "name+0x12" */
	char *source;  /* "prog.c:12": asked for code only */
};
struct cli_location cli_replayed_locate(const struct cli_replayed *r,
					uint64_t addr, bool code);
void cli_location_release(struct cli_location *l);

#endif
