/*
 * Memory images: what an address space holds, as mappings plus the contents
 * of those pages that no stored file gives.  An execve event is one; any later
 * snapshot is the same.
 */
#ifndef TR_TRACEE_IMAGE_H
#define TR_TRACEE_IMAGE_H

#include "libtrace/base/buf.h"
#include "libtrace/format/event.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/remote.h"

/*
 * Gives the store's id of the file behind a mapping, 0 to have the mapping's
 * contents stored as if it were anonymous, -1 with err on failure.
 */
typedef int64_t tr_image_file_fn(void *ctx, pid_t tid, const struct tr_vma *v,
				 struct tr_error *err);

struct tr_image {
	struct tr_map *map;
	size_t nmap, map_cap;
	struct tr_mem *mem; /* pieces of at most TR_MEM_PIECE bytes */
	size_t nmem, mem_cap;
};

/* Capture the address space of a stopped task; its engine pages and the
 * kernel's own pages ([vvar], [vdso], [vsyscall]) are left out. */
int tr_image_capture(pid_t tid, tr_image_file_fn *file, void *ctx,
		     struct tr_image *im, struct tr_error *err) TR_MUST_CHECK;
void tr_image_release(struct tr_image *im);

/*
 * Make mappings in a stopped task whose working directory is the trace: a
 * private mapping of a file from files/ID, a shared one from what `shared`
 * names, others anonymous.  What was mapped there is replaced.  Contents are
 * the caller's to write.
 */
struct tr_image_source {
	/* The path, as the task can open it for reading and writing, of the
	 * one copy of file `id` that all shared mappings of it see. */
	const char *(*shared)(void *ctx, uint32_t id, struct tr_error *err);
	void *ctx;
};
/* Append the calls that make one of them, no shared one of a file, with the
 * results that they must have. */
void tr_image_batch(struct tr_batch *b, const struct tr_map *m);
int tr_image_map(pid_t tid, const struct tr_map *map, size_t n,
		 const struct tr_image_source *source, struct tr_error *err)
	TR_MUST_CHECK;

#endif
