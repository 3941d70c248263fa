/* Parsing by option table. */
#include "cmd/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/help.h"
#include "cmd/cli/output.h"
#include "libtrace/base/alloc.h"
#include "libtrace/trace.h"

#define MAX_OPTIONS 32

/* getopt values of the common options; letters are below 256. */
enum { OPT_TABLE = 256, OPT_VERSION = 512, OPT_DUMP };

bool cli_set_has(const struct cli_set *set, uint64_t value)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->values[i] == value)
			return true;
	return false;
}

__attribute__((noreturn, format(printf, 2, 3)))
static void usage_error(const struct cli_tool *tool, const char *fmt, ...)
{
	TR_AUTOFREE char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	cli_error("%s (try %s --help)", text ? text : "bad usage", tool->name);
	exit(tool->trouble);
}

/* A decimal number that fills s up to (not including) end. */
static bool parse_number(const char *s, const char *end, uint64_t *v)
{
	uint64_t r = 0;

	if (s == end)
		return false;
	for (; s < end; s++) {
		if (!isdigit((unsigned char)*s) ||
		    __builtin_mul_overflow(r, (uint64_t)10, &r) ||
		    __builtin_add_overflow(r, (uint64_t)(*s - '0'), &r))
			return false;
	}
	*v = r;
	return true;
}

static bool parse_range(const char *s, struct cli_range *r)
{
	const char *end = s + strlen(s), *dots = strstr(s, "..");

	r->first = 1;
	r->last = UINT64_MAX;
	if (!dots) {
		if (!parse_number(s, end, &r->first))
			return false;
		r->last = r->first;
	} else if ((dots > s && !parse_number(s, dots, &r->first)) ||
		   (dots + 2 < end && !parse_number(dots + 2, end, &r->last)) ||
		   end - s == 2) {
		return false;
	}
	return r->first >= 1 && r->first <= r->last;
}

static bool parse_format(const char *s, bool chrome, enum cli_format *f)
{
	static const struct {
		const char *name;
		enum cli_format value;
	} table[] = {{"auto", CLI_AUTO}, {"text", CLI_TEXT}, {"json", CLI_JSON},
		     {"chrome", CLI_CHROME}};

	for (size_t i = 0; i < 3u + chrome; i++) {
		if (strcmp(s, table[i].name) == 0) {
			*f = table[i].value;
			return true;
		}
	}
	return false;
}

/* One element of a comma-separated set. */
static bool parse_element(enum cli_kind kind, const char *s, uint64_t *v)
{
	if (kind == CLI_TYPES)
		return (*v = tr_event_type_by_name(s)) != 0;
	if (kind == CLI_IGNORE)
		return (*v = tr_ignore_by_name(s)) != 0 ||
		       strcmp(s, "none") == 0;
	if (parse_number(s, s + strlen(s), v))
		return true;
	if (kind == CLI_SYSCALLS) {
		const struct tr_sys *sys = tr_sys_by_name(s);

		if (sys)
			*v = (uint64_t)sys->nr;
		return sys;
	}
	return false;
}

static void parse_set(const struct cli_tool *tool, const struct cli_option *o,
		      const char *arg)
{
	struct cli_set *set = o->target;
	TR_AUTOFREE char *copy = tr_strdup(arg);
	char *rest = copy, *s;

	while ((s = strsep(&rest, ","))) {
		uint64_t v;

		if (!parse_element(o->kind, s, &v))
			usage_error(tool, "--%s: unknown value '%s'", o->name, s);
		set->values = tr_realloc(set->values,
					 (set->n + 1) * sizeof *set->values);
		set->values[set->n++] = v;
	}
}

static void add_to_list(struct cli_list *list, const char *arg)
{
	list->items = tr_realloc(list->items, (list->n + 2) * sizeof *list->items);
	list->items[list->n++] = arg;
	list->items[list->n] = NULL;
}

static void apply(const struct cli_tool *tool, const struct cli_option *o,
		  const char *arg)
{
	switch (o->kind) {
	case CLI_FLAG:
		*(bool *)o->target = true;
		break;
	case CLI_STRING:
	case CLI_FILE:
	case CLI_DIRECTORY:
		*(const char **)o->target = arg;
		break;
	case CLI_NUMBER:
		if (!parse_number(arg, arg + strlen(arg), o->target))
			usage_error(tool, "--%s: '%s' is not a number", o->name,
				    arg);
		break;
	case CLI_FORMAT:
	case CLI_FORMATS:
		if (!parse_format(arg, o->kind == CLI_FORMATS, o->target))
			usage_error(tool, "--%s: '%s' is not auto, text%s", o->name,
				    arg, o->kind == CLI_FORMATS ?
				    ", json or chrome" : " or json");
		break;
	case CLI_RANGE:
		if (!parse_range(arg, o->target))
			usage_error(tool, "--%s: '%s' is not a range such as "
				    "10..20, 10.., ..20 or 10", o->name, arg);
		break;
	case CLI_LIST:
		add_to_list(o->target, arg);
		break;
	case CLI_NUMBERS:
	case CLI_TYPES:
	case CLI_SYSCALLS:
	case CLI_IGNORE:
		parse_set(tool, o, arg);
		break;
	}
}

/* Build what getopt_long wants; returns the number of table options. */
static size_t build(const struct cli_tool *tool, struct option *longs,
		    char *shorts)
{
	size_t n = 0;

	/* The colon makes a missing argument distinguishable: getopt(3). */
	if (tool->stop_at_operand)
		*shorts++ = '+';
	*shorts++ = ':';
	*shorts++ = 'h';
	for (const struct cli_option *o = tool->options; o->name; o++, n++) {
		if (n == MAX_OPTIONS)
			abort();
		longs[n] = (struct option){
			o->name, !o->arg ? no_argument :
			cli_option_is_optional(o) ? optional_argument :
			required_argument, NULL, OPT_TABLE + (int)n};
		if (!o->letter)
			continue;
		*shorts++ = o->letter;
		if (o->arg)
			*shorts++ = ':';
	}
	*shorts = '\0';
	longs[n] = (struct option){"help", 0, NULL, 'h'};
	longs[n + 1] = (struct option){"version", 0, NULL, OPT_VERSION};
	longs[n + 2] = (struct option){"dump-options", 0, NULL, OPT_DUMP};
	longs[n + 3] = (struct option){0};
	return n;
}

static const struct cli_option *by_value(const struct cli_tool *tool, int value)
{
	const struct cli_option *o = tool->options;

	if (value >= OPT_TABLE)
		return o + (value - OPT_TABLE);
	while (o->letter != value)
		o++;
	return o;
}

/*
 * getopt_long leaves in optopt the letter of a bad short option, the value of
 * a long option that was misused, and 0 for an unknown long one.
 */
static void complain(const struct cli_tool *tool, int what, char **argv)
{
	const char *word = argv[optind - 1];
	int length = (int)strcspn(word, "=");

	if (what == ':' && optopt >= OPT_TABLE)
		usage_error(tool, "option '%s' needs an argument", word);
	else if (what == ':')
		usage_error(tool, "option '-%c' needs an argument", optopt);
	else if (optopt >= OPT_TABLE || (optopt == 'h' && length > 2))
		usage_error(tool, "option '%.*s' takes no argument", length,
			    word);
	else if (optopt)
		usage_error(tool, "unknown option '-%c'", optopt);
	else
		usage_error(tool, "unknown or ambiguous option '%.*s'", length,
			    word);
}

int cli_parse(const struct cli_tool *tool, int argc, char **argv)
{
	struct option longs[MAX_OPTIONS + 4];
	char shorts[2 * MAX_OPTIONS + 4];
	int c;

	cli_set_tool(tool->name, tool->trouble);
	build(tool, longs, shorts);
	opterr = 0;
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			complain(tool, c, argv);
		else if (c == 'h')
			exit(cli_print_help(tool));
		else if (c == OPT_VERSION)
			exit(cli_print_version(tool));
		else if (c == OPT_DUMP)
			exit(cli_print_table(tool));
		else
			apply(tool, by_value(tool, c), optarg ? optarg : "");
	}
	if (tool->max_operands >= 0 && argc - optind > tool->max_operands)
		usage_error(tool, "unexpected operand '%s'",
			    argv[optind + tool->max_operands]);
	return optind;
}
