/*
 * The sites that have been patched so far, by file.  When a file is mapped
 * again, by another process for the most part, they are patched at once: it
 * does not have to trap at each of them.  Recorder and replayer learn of a site
 * by the same event, so they know the same ones when they come to a mapping.
 */
#ifndef TR_TRACEE_KNOWN_H
#define TR_TRACEE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/buf.h"
#include "libtrace/format/event.h"
#include "libtrace/tracee/stub.h"

struct tr_known {
	struct tr_known_site {
		uint32_t file;
		struct tr_stub stub; /* offsets in the file for addresses */
	} *site;
	size_t n, cap;
};
void tr_known_release(struct tr_known *k);

bool tr_known_has(const struct tr_known *k, uint32_t file, uint64_t offset);

/* Learn of a site; of one known already nothing. */
void tr_known_add(struct tr_known *k, uint32_t file,
		  const struct tr_stub *stub);

/* The same, of one whose code is still to be read from the file, open as fd. */
void tr_known_read(struct tr_known *k, int fd, uint32_t file,
		   struct tr_stub stub);

/* Learn the sites of a `file` event (site_list.h).  What was at them is read
 * from the file stored under dirfd. */
void tr_known_load(struct tr_known *k, int dirfd, uint32_t file,
		   const struct tr_bytes *list);

/* The list of what is known of a file; the number of its sites. */
size_t tr_known_list(const struct tr_known *k, uint32_t file,
		     struct tr_buf *list);

#endif
