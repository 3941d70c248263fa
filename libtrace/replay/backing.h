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
/* A call wrote to the file, or changed its size. */
int tr_backing_write(struct tr_backing *b, uint32_t file, const void *data,
		     size_t n, uint64_t offset, struct tr_error *err)
	TR_MUST_CHECK;
int tr_backing_resize(struct tr_backing *b, uint32_t file, uint64_t size,
		      struct tr_error *err) TR_MUST_CHECK;
void tr_backing_release(struct tr_backing *b);

#endif
