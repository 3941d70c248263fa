/* What an event may hold: formats/trace-format.md, "Fields" and "Limits". */
#ifndef TR_FORMAT_LIMITS_H
#define TR_FORMAT_LIMITS_H

#include "libtrace/format/event.h"

/* Types from here on are skipped by readers that do not know them. */
#define TR_FIRST_COMPAT_TYPE 128

/* Which limit the event breaks, or NULL. */
const char *tr_out_of_limits(const struct tr_event *ev);

#endif
