/*
 * Which tasks of two traces correspond.  The first tasks do; of the children
 * of corresponding tasks those do that execute the same, in order, so that one
 * more in between moves none of the others.
 */
#ifndef TR_MODEL_KIN_H
#define TR_MODEL_KIN_H

#include "libtrace/base/error.h"
#include "libtrace/base/table.h"
#include "libtrace/format/reader.h"

/*
 * For every child of a task that has a counterpart its number among the
 * children, in ordinals[0] for the left trace and ordinals[1] for the right
 * one: a uintptr_t by task id, equal for corresponding tasks and for no
 * others.  Reads the clones and executions of both.
 */
int tr_kin_find(struct tr_reader *left, struct tr_reader *right,
		struct tr_table ordinals[2], struct tr_error *err)
	TR_MUST_CHECK;

#endif
