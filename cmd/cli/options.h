/*
 * Option tables: one declarative table per tool, from which parsing, --help,
 * --version, the shell completions and the checks of the manual pages follow.
 *
 * Parsing has getopt_long(3) semantics.  -h/--help, --version and the hidden
 * --dump-options, which prints the table as JSON Lines, belong to every tool
 * and are not in its table.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_format { CLI_AUTO, CLI_TEXT, CLI_JSON, CLI_CHROME };

/* What an option's argument is, and so what `target` points to. */
enum cli_kind {
	CLI_FLAG,      /* bool: no argument */
	CLI_STRING,    /* const char * */
	CLI_FILE,      /* const char *: completed as a file */
	CLI_DIRECTORY, /* const char *: completed as a directory */
	CLI_NUMBER,    /* uint64_t */
	CLI_FORMAT,    /* enum cli_format: auto, text, json */
	CLI_FORMATS,   /* and chrome */
	CLI_RANGE,     /* struct cli_range: A..B, A.., ..B or A */
	CLI_LIST,      /* struct cli_list: every use adds one string */
	CLI_NUMBERS,   /* struct cli_set of numbers: N,... */
	CLI_TYPES,     /* struct cli_set of event types: NAME,... */
	CLI_SYSCALLS,  /* struct cli_set of syscall numbers: NAME,... */
	CLI_IGNORE,    /* struct cli_set of enum tr_ignore: NAME,... or none */
};

struct cli_range {
	uint64_t first, last; /* inclusive; zeroes: everything */
};

struct cli_list {
	const char **items; /* NULL-terminated once there is one, else NULL */
	size_t n;
};

struct cli_set {
	uint64_t *values;
	size_t n;
};
bool cli_set_has(const struct cli_set *set, uint64_t value);

struct cli_option {
	const char *name;  /* long name, without dashes */
	char letter;       /* short name, or 0 */
	const char *arg;   /* the argument's name in help, or NULL; "[NAME]"
			      for a CLI_STRING that may be left out */
	const char *help;  /* one line */
	enum cli_kind kind;
	void *target;
};

/* Whether the argument may be left out, which gives "". */
static inline bool cli_option_is_optional(const struct cli_option *o)
{
	return o->arg && o->arg[0] == '[';
}

/* What operands are, for completion. */
enum cli_operands { CLI_OPERAND_TRACE, CLI_OPERAND_COMMAND };

struct cli_tool {
	const char *name;
	const char *summary;       /* one line, no full stop */
	const char *synopsis;      /* after the tool's name; lines by \n */
	enum cli_operands operands;
	int max_operands;          /* -1: any number */
	bool stop_at_operand;      /* options end at the first operand */
	int trouble;               /* exit status of a failure */
	const struct cli_option *options; /* ends with a NULL name */
};

/*
 * Parse and return the index of the first operand (argv is permuted so that
 * operands come last).  Does not return on --help, --version, --dump-options
 * or an error: then it exits with the right status.
 */
int cli_parse(const struct cli_tool *tool, int argc, char **argv);

#endif
