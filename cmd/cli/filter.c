/* Event filters. */
#include "cmd/cli/filter.h"

static bool wanted(const struct cli_filter *f, const struct tr_event *ev)
{
	if (f->events.last && (ev->number < f->events.first ||
			       ev->number > f->events.last))
		return false;
	if (f->tasks.n && !cli_set_has(&f->tasks, ev->task))
		return false;
	if (f->types.n && !cli_set_has(&f->types, ev->type))
		return false;
	if (f->syscalls.n == 0)
		return true;
	return tr_event_has(ev, TR_F_NR) &&
	       cli_set_has(&f->syscalls, tr_event_get(ev, TR_F_NR));
}

bool cli_filter_match(struct cli_filter *f, const struct tr_event *ev)
{
	if (ev->type == TR_EV_MORE)
		return f->last || (f->types.n && wanted(f, ev));
	f->last = wanted(f, ev);
	return f->last;
}
