/*
 * Memory behind shared file mappings in a replay: one memfd for each recorded
 * file, filled from the store, which all vessels map.
 */
#ifndef TR_REPLAY_BACKING_H
#define TR_REPLAY_BACKING_H

#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"

struct tr_backing {
	int trace_dirfd; /* the caller's */
	struct tr_backed {
		uint32_t file; /* store id */
		uint64_t dev, ino; /* of the recorded file */
		int fd;        /* -1 until it is needed */
	} *f;
	size_t n, cap;
	char path[48];
};

/* Note a stored file as its event tells of it. */
void tr_backing_add(struct tr_backing *b, const struct tr_event *ev);
/* The path of the file's memory, good until the next call; for
 * struct tr_image_source. */
const char *tr_backing_path(void *backing, uint32_t file, struct tr_error *err);
void tr_backing_release(struct tr_backing *b);

#endif
