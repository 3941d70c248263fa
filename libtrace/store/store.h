/*
 * The file store of a trace being recorded: every mapped file once, under
 * files/ID (decimal), by the cheapest safe method.
 *
 * FICLONE where the filesystem can (ioctl_ficlone(2)); else a hard link when
 * neither the recording user nor anyone the kernel would let write as that
 * user can change the file in place; else a copy.  SHA-256 is computed by one
 * background thread.
 */
#ifndef TR_STORE_STORE_H
#define TR_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"
#include "libtrace/format/event.h"

struct tr_store;

struct tr_store_file {
	uint32_t id; /* from 1 */
	enum tr_store_method method;
	struct stat st;   /* of the original, when it was stored */
	const char *path; /* as the recorder knew it; owned by the store */
};

/* Creates files/ in dirfd, which the caller keeps open. */
struct tr_store *tr_store_open(int dirfd, struct tr_error *err) TR_MUST_CHECK;

/*
 * Store the file open as fd (any access mode that can read; kept by the
 * caller) and return its entry; *is_new tells whether it was not there before.
 * The same device, inode, size, mtime and ctime give the same entry.
 */
const struct tr_store_file *tr_store_add(struct tr_store *s, int fd,
					 const char *path, bool *is_new,
					 struct tr_error *err) TR_MUST_CHECK;

struct tr_store_digest {
	uint32_t id;
	uint8_t sha256[TR_SHA256_SIZE];
	bool pages;   /* it is one of pages: tr_sha256_pages_fd */
	bool changed; /* the stored file no longer has the size or mtime it was
			 stored with */
};

/*
 * Take one finished digest: returns true and fills *d.  With `wait`, blocks
 * until one is ready or all have been taken.  A file that cannot be read back
 * gives no digest.
 */
bool tr_store_take_digest(struct tr_store *s, bool wait,
			  struct tr_store_digest *d);

/* The methods tried, best first, can be limited for tests with the fault
 * points store-clone, store-link and store-copy-range. */
void tr_store_close(struct tr_store *s);

#endif
