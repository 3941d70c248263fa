/*
 * Events from JSON: what tr_describe_json() made, as far as it is told there.
 * The arguments of a call stay in the JSON (member `args`); registers, memory
 * and mappings are not taken over.
 */
#ifndef TR_MODEL_PARSE_H
#define TR_MODEL_PARSE_H

#include "libtrace/base/error.h"
#include "libtrace/base/json.h"
#include "libtrace/format/event.h"

/*
 * Returns 1 with *ev filled, 0 when the value is no event, -1 when it is one
 * with members that no event has so.  *text holds what ev->text points to and
 * is the caller's to free.
 */
int tr_event_parse(const struct tr_json *j, struct tr_event *ev, char **text,
		   struct tr_error *err) TR_MUST_CHECK;

#endif
