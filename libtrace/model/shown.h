/*
 * A system call as an event holds it: its arguments shown through a sink,
 * with the memory that the event recorded.  Internal to libtrace/model.
 */
#ifndef TR_MODEL_SHOWN_H
#define TR_MODEL_SHOWN_H

#include "libtrace/format/event.h"
#include "libtrace/model/sink.h"
#include "libtrace/model/syscalls.h"

struct tr_shown_call {
	const struct tr_event *ev;
	const struct tr_sys *sys; /* NULL: unknown number */
	struct tr_call call;
	struct tr_ranges out; /* what it wrote, by argument */
	bool entering;        /* memory is read as it was at entry */
};

void tr_shown_init(struct tr_shown_call *c, const struct tr_event *ev);
void tr_shown_release(struct tr_shown_call *c);
unsigned tr_shown_nargs(const struct tr_shown_call *c);
/* One argument; its name is c->sys->arg[i].name. */
void tr_shown_arg(const struct tr_shown_call *c, unsigned i,
		  struct tr_sink *s);
/* The call takes the argument only with other flags or another command. */
bool tr_shown_unused(const struct tr_shown_call *c, unsigned i);

/* Bytes of a buffer that are shown. */
#define TR_SHOWN_BYTES 32u

#endif
