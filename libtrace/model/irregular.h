/*
 * Calls whose memory effects a table cannot say: the handlers behind `?` in
 * formats/syscalls.tbl and formats/ioctls.tbl.  Internal to libtrace/model.
 */
#ifndef TR_MODEL_IRREGULAR_H
#define TR_MODEL_IRREGULAR_H

#include "libtrace/model/effects.h"

/* Is there a handler for the call? */
bool tr_irregular_has(uint64_t nr);
/* Append the effects of the `?` arguments; false when they are not known. */
bool tr_irregular(struct tr_fx *fx);

#endif
