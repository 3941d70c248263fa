/* Events as lines. */
#include "cmd/cli/event_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/output.h"
#include "libtrace/base/alloc.h"

static void print_head(char sign, uint64_t number, uint64_t task, uint64_t time)
{
	if (sign)
		putchar(sign);
	printf("%8" PRIu64 " %4" PRIu64 " %5" PRIu64 ".%06u  ", number, task,
	       time / 1000000000u, (unsigned)(time % 1000000000u / 1000));
}

void cli_event_text(const struct tr_event *ev, char sign, bool verbose)
{
	struct tr_buf text = {0};

	tr_describe_text(ev, verbose, &text);
	print_head(sign, ev->number, ev->task, ev->time);
	fwrite(text.data, 1, text.len, stdout);
	putchar('\n');
	tr_buf_release(&text);
}

static uint64_t number_of(const struct tr_json *j, const char *key)
{
	int64_t v = 0;

	tr_json_get_int(tr_json_get(j, key), &v);
	return (uint64_t)v;
}

/* A member's value as JSON, when it is there. */
static void print_member(const struct tr_json *j, const char *key,
			 const char *before)
{
	const struct tr_json *value = tr_json_get(j, key);
	TR_AUTOFREE char *text = value ? tr_json_dump(value) : NULL;

	if (!text)
		return;
	fputs(before, stdout);
	cli_put_escaped(text, strlen(text));
}

void cli_event_line_text(const char *line, char sign)
{
	struct tr_error err;
	struct tr_json *j = tr_json_parse(line, strlen(line), "event", &err);
	const char *s = "?";

	if (!j)
		return;
	print_head(sign, number_of(j, "event"), number_of(j, "task"),
		   number_of(j, "time"));
	if (!tr_json_get_string(tr_json_get(j, "name"), &s))
		tr_json_get_string(tr_json_get(j, "type"), &s);
	cli_put_escaped(s, strlen(s));
	print_member(j, "args", "");
	print_member(j, "text", " ");
	print_member(j, "result", " = ");
	print_member(j, "errno", " ");
	print_member(j, "exit_code", " ");
	print_member(j, "signal", " ");
	print_member(j, "registers", " registers ");
	print_member(j, "root", " memory ");
	putchar('\n');
	tr_json_free(j);
}
