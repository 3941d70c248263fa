/* Divergence: the evidence a person needs. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/model/describe.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/state/maps.h"
#include "libtrace/state/regs.h"
#include "libtrace/state/symbol.h"

/* Where the instruction pointer is, as mapping and symbol. */
static char *locate(const struct rtask *t, uint64_t rip)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	TR_AUTOFREE char *symbol = NULL;
	struct tr_error ignored;
	const struct tr_vma *v;

	if (tr_vmas_read(t->tid, &vmas, &ignored) < 0)
		return NULL;
	v = tr_vmas_find(&vmas, rip);
	if (!v)
		return tr_printf("0x%" PRIx64 " (not mapped)", rip);
	TR_AUTOCLOSE int fd = v->ino ? open(v->name, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0)
		symbol = tr_symbol_at(fd, rip - v->start + v->offset);
	return tr_printf("0x%" PRIx64 " %s%s%s", rip, symbol ? symbol : "",
			 symbol ? " in " : "", v->name[0] ? v->name
						       : "anonymous memory");
}

static bool is_remembered(const struct tr_replay *r, const struct tr_event *ev)
{
	bool found = false;

	for (unsigned i = 0; i < TR_HISTORY; i++)
		found |= r->history[i] == ev->number;
	return found && ev->stream && ev->type != TR_EV_MORE;
}

/* They are read again: seldom does anybody ask. */
static char *previous_events(const struct tr_replay *r)
{
	TR_AUTOBUF struct tr_buf b = {0};
	uint64_t first = r->nhistory > TR_HISTORY
		? r->history[r->nhistory % TR_HISTORY] : r->history[0];
	struct tr_cursor *c = tr_cursor_from(r->reader, first);
	const struct tr_event *ev;
	struct tr_error ignored;

	while (tr_cursor_next(c, &ev, &ignored) > 0 &&
	       ev->number < r->ev.number) {
		char head[64];

		if (!is_remembered(r, ev))
			continue;
		tr_buf_put(&b, head, (size_t)snprintf(
			head, sizeof head, "%" PRIu64 " task %u: ", ev->number,
			ev->task));
		tr_describe_text(ev, false, &b);
		tr_buf_put_u8(&b, '\n');
	}
	tr_cursor_free(c);
	tr_buf_put_u8(&b, '\0');
	return tr_strdup((char *)b.data);
}

void rep_remember(struct tr_replay *r, const struct tr_event *ev)
{
	r->history[r->nhistory++ % TR_HISTORY] = ev->number;
}

enum applied rep_diverged(struct tr_replay *r, struct rtask *t,
			  const char *fmt, ...)
{
	struct tr_divergence *d = &r->divergence;
	va_list ap;

	d->event = r->ev.number;
	d->task = r->ev.task;
	va_start(ap, fmt);
	vsnprintf(d->what, sizeof d->what, fmt, ap);
	va_end(ap);
	free(d->symbol);
	free(d->previous);
	d->symbol = t && !t->running ? locate(t, t->regs.rip) : NULL;
	d->previous = previous_events(r);
	return DIVERGED;
}

enum applied rep_regs_differ(struct tr_replay *r, struct rtask *t,
			     const struct tr_regs *recorded)
{
	TR_AUTOBUF struct tr_buf b = {0};

	tr_regs_describe_difference(recorded, &t->regs, &b);
	tr_buf_put_u8(&b, '\0');
	free(r->divergence.detail);
	r->divergence.detail = tr_strdup((char *)b.data);
	return rep_diverged(r, t, "registers differ (%.*s)",
			    (int)strcspn((char *)b.data, "\n"), (char *)b.data);
}

void rep_evidence_release(struct tr_replay *r)
{
	free(r->divergence.detail);
	free(r->divergence.symbol);
	free(r->divergence.previous);
}
