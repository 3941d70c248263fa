/* Events as lines. */
#include "cmd/cli/event_text.h"

#include <inttypes.h>
#include <stdio.h>

void cli_event_text(const struct tr_event *ev, char sign, bool verbose)
{
	struct tr_buf text = {0};

	tr_describe_text(ev, verbose, &text);
	if (sign)
		putchar(sign);
	printf("%8" PRIu64 " %4" PRIu32 " %5" PRIu64 ".%06u  ", ev->number,
	       ev->task, ev->time / 1000000000u,
	       (unsigned)(ev->time % 1000000000u / 1000));
	fwrite(text.data, 1, text.len, stdout);
	putchar('\n');
	tr_buf_release(&text);
}
