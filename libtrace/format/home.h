/*
 * Where the parts of a trace are: files of a directory, or members of an
 * archive, each a range of the archive's bytes.
 */
#ifndef TR_FORMAT_HOME_H
#define TR_FORMAT_HOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/buf.h"
#include "libtrace/base/error.h"

/* A member: "chunks/000000" and where its bytes are. */
struct tr_home_entry {
	char name[32];
	uint64_t start, size;
	bool readable; /* it is a range: false for one with holes */
};

struct tr_home {
	int dirfd;   /* -1: an archive */
	int archive; /* -1: a directory */
	struct tr_home_entry *entries; /* of the archive, sorted by name */
	size_t n, cap;
};

/* A directory, open as dirfd, which the place takes over. */
#define TR_HOME_DIRECTORY(fd) ((struct tr_home){.dirfd = (fd), .archive = -1})
void tr_home_release(struct tr_home *p);
/* Another handle of the same archive. */
void tr_home_copy(struct tr_home *to, const struct tr_home *from);

/* An open part: size bytes from start on in fd. */
struct tr_part {
	int fd;
	bool owned;
	uint64_t start, size;
};

/*
 * Open a part, which must be a regular file; no link is followed, no FIFO
 * waited for.  TR_ESYS with ENOENT when it is not there.
 */
int tr_home_open(const struct tr_home *p, const char *name,
		  struct tr_part *part, struct tr_error *err) TR_MUST_CHECK;
void tr_part_close(struct tr_part *part);
/* Open a stored file of a trace's directory in the same way; -1 with errno. */
int tr_stored_open(int dirfd, uint32_t file) TR_MUST_CHECK;
/* As tr_pread_full. */
ssize_t tr_part_read(const struct tr_part *part, void *buf, size_t n,
		     uint64_t at) TR_MUST_CHECK;
/* Append all of a part, at most `max` bytes, to b. */
int tr_home_load(const struct tr_home *p, const char *name, size_t max,
		  struct tr_buf *b, struct tr_error *err) TR_MUST_CHECK;

/*
 * Report the names in `dir`, "" or "chunks" or "files".  TR_ESYS with ENOENT
 * when there is no such directory.
 */
typedef void tr_name_fn(void *arg, const char *name);
int tr_home_names(const struct tr_home *p, const char *dir, tr_name_fn *fn,
		   void *arg, struct tr_error *err) TR_MUST_CHECK;

#endif
