/* The mappings of a process, from /proc/PID/maps. */
#ifndef TR_STATE_MAPS_H
#define TR_STATE_MAPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"

struct tr_vma {
	uint64_t start, end, offset;
	uint32_t prot;  /* PROT_* */
	uint32_t flags; /* MAP_SHARED or MAP_PRIVATE */
	unsigned major, minor;
	uint64_t ino;   /* 0: anonymous */
	char *name;     /* path, "[heap]", ... or "" */
};

struct tr_vmas {
	struct tr_vma *v;
	size_t n, cap;
};

int tr_vmas_read(pid_t pid, struct tr_vmas *vmas, struct tr_error *err)
	TR_MUST_CHECK;
void tr_vmas_release(struct tr_vmas *vmas);
#define TR_AUTOVMAS __attribute__((cleanup(tr_vmas_release)))
/* The mapping that holds addr, or NULL. */
const struct tr_vma *tr_vmas_find(const struct tr_vmas *vmas, uint64_t addr);

#endif
