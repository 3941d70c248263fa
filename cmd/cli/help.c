/* Help, version and the option table as JSON Lines. */
#include "cmd/cli/help.h"

#include <stdio.h>
#include <string.h>

#include "cmd/cli/output.h"
#include "libtrace/trace.h"

static const struct cli_option common[] = {
	{"help", 'h', NULL, "show this help", CLI_FLAG, NULL},
	{"version", 0, NULL, "show the version", CLI_FLAG, NULL},
	{0},
};

static void print_synopsis(const struct cli_tool *tool)
{
	const char *s = tool->synopsis;
	const char *intro = "Usage:";

	for (;;) {
		int n = (int)strcspn(s, "\n");

		printf("%-6s %s %.*s\n", intro, tool->name, n, s);
		if (!s[n])
			break;
		s += n + 1;
		intro = "";
	}
}

static void print_options(const struct cli_option *o)
{
	for (; o->name; o++) {
		char left[64], letter[8] = "    ";

		if (o->letter)
			snprintf(letter, sizeof letter, "-%c, ", o->letter);
		snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name,
			 !o->arg ? "" : cli_option_is_optional(o) ? "[=" : "=",
			 !o->arg ? "" : o->arg + cli_option_is_optional(o));
		printf("%-28s %s%s\n", left,
		       strlen(left) > 28 ? "\n                             " : "",
		       o->help);
	}
}

int cli_print_help(const struct cli_tool *tool)
{
	print_synopsis(tool);
	printf("\n%s.\n\nOptions:\n", tool->summary);
	print_options(tool->options);
	print_options(common);
	printf("\nThe manual: man %s; an overview: man 7 trace.\n", tool->name);
	return cli_finish(0);
}

int cli_print_version(const struct cli_tool *tool)
{
	printf("%s %s\n", tool->name, TR_VERSION);
	return cli_finish(0);
}

static const char *kind_name(enum cli_kind kind)
{
	static const char *const names[] = {
		[CLI_FLAG] = "flag",       [CLI_STRING] = "string",
		[CLI_FILE] = "file",       [CLI_DIRECTORY] = "directory",
		[CLI_NUMBER] = "number",   [CLI_FORMAT] = "words",
		[CLI_RANGE] = "range",     [CLI_LIST] = "string",
		[CLI_NUMBERS] = "numbers", [CLI_TYPES] = "words",
		[CLI_SYSCALLS] = "words",  [CLI_IGNORE] = "words",
		[CLI_FORMATS] = "words",
	};

	return names[kind];
}

/* The words an argument can be, when they are known. */
static struct tr_json *words(enum cli_kind kind)
{
	struct tr_json *list = tr_json_array();

	if (kind == CLI_FORMAT || kind == CLI_FORMATS) {
		tr_json_append(list, tr_json_string("auto"));
		tr_json_append(list, tr_json_string("text"));
		tr_json_append(list, tr_json_string("json"));
		if (kind == CLI_FORMATS)
			tr_json_append(list, tr_json_string("chrome"));
	} else if (kind == CLI_TYPES) {
#define X(NAME, code, name, meaning) tr_json_append(list, tr_json_string(name));
		TR_EVENT_TYPES(X)
#undef X
	} else if (kind == CLI_IGNORE) {
#define X(NAME, bit, name) tr_json_append(list, tr_json_string(name));
		TR_IGNORABLE(X)
#undef X
		tr_json_append(list, tr_json_string("none"));
	} else if (kind == CLI_SYSCALLS) {
		for (size_t nr = 0; nr < tr_sys_count(); nr++)
			if (tr_sys_lookup(nr))
				tr_json_append(list, tr_json_string(
						tr_sys_lookup(nr)->name));
	}
	return list;
}

static void dump_options(const struct cli_option *o)
{
	for (; o->name; o++) {
		struct tr_json *j = tr_json_object();
		char letter[2] = {o->letter, '\0'};

		tr_json_set(j, "type", tr_json_string("option"));
		tr_json_set(j, "long", tr_json_string(o->name));
		tr_json_set(j, "short", tr_json_string(letter));
		tr_json_set(j, "arg", tr_json_string(
			o->arg && !cli_option_is_optional(o) ? o->arg : ""));
		tr_json_set(j, "help", tr_json_string(o->help));
		tr_json_set(j, "kind", tr_json_string(kind_name(o->kind)));
		tr_json_set(j, "words", words(o->kind));
		cli_json_line(j);
	}
}

int cli_print_table(const struct cli_tool *tool)
{
	struct tr_json *j = tr_json_object();
	bool command = tool->operands == CLI_OPERAND_COMMAND;

	tr_json_set(j, "type", tr_json_string("tool"));
	tr_json_set(j, "name", tr_json_string(tool->name));
	tr_json_set(j, "summary", tr_json_string(tool->summary));
	tr_json_set(j, "synopsis", tr_json_string(tool->synopsis));
	tr_json_set(j, "operands", tr_json_string(command ? "command" : "trace"));
	cli_json_line(j);
	dump_options(tool->options);
	dump_options(common);
	return cli_finish(0);
}
