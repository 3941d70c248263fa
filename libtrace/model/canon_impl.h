/* What the files of canonical events share. */
#ifndef TR_MODEL_CANON_IMPL_H
#define TR_MODEL_CANON_IMPL_H

#include "libtrace/model/canon.h"

/* The value of an address or a time, when it only counts that there is one. */
#define TR_CANON_SOME 1

/* A file that the program created under a name that was not there before. */
struct tr_canon_created {
	uint64_t name;
};

uint64_t tr_canon_combine(uint64_t a, uint64_t b);
/* What stands for a pid and for a descriptor. */
uint64_t tr_canon_pid(const struct tr_canon *c, int64_t pid);
uint64_t tr_canon_fd(const struct tr_canon *c, int64_t fd);

#endif
