/* An event to go to. */
#include "cmd/cli/goto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libtrace/base/json.h"

static bool number_in(const struct tr_json *j, uint64_t *event)
{
	const struct tr_json *right = tr_json_get(j, "right");
	const struct tr_json *after = tr_json_get(j, "after");
	int64_t v;

	if (!tr_json_get_int(tr_json_get(j, "event"), &v) &&
	    !tr_json_get_int(tr_json_get(right, "event"), &v) &&
	    !tr_json_get_int(tr_json_get(after, "right"), &v))
		return false;
	*event = (uint64_t)v;
	return v > 0;
}

static int from_lines(uint64_t *event, struct tr_error *err)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n;
	int r = 1;

	while (r > 0 && (n = getline(&line, &size, stdin)) > 0) {
		struct tr_json *j = tr_json_parse(line, (size_t)n,
						  "standard input", err);

		r = !j ? -1 : !number_in(j, event);
		if (j)
			tr_json_free(j);
	}
	free(line);
	return r > 0 ? tr_fail(err, TR_EINVAL, "standard input: it names no "
			       "event") : r;
}

int cli_goto_parse(const char *arg, uint64_t *event, struct tr_error *err)
{
	char *end;

	if (strcmp(arg, "-") == 0)
		return from_lines(event, err);
	errno = 0;
	*event = strtoull(arg, &end, 10);
	if (errno || *end || *arg < '1' || *arg > '9')
		return tr_fail(err, TR_EINVAL, "--goto: '%s' is no event number",
			       arg);
	return 0;
}
