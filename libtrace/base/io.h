/*
 * File input and output that finishes what it starts: short transfers and
 * EINTR are retried, files appear under their final name only when whole.
 */
#ifndef TR_BASE_IO_H
#define TR_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/buf.h"
#include "libtrace/base/error.h"

/* Write all n bytes; returns 0, or -1 with errno set. */
int tr_write_all(int fd, const void *data, size_t n) TR_MUST_CHECK;
int tr_pwrite_all(int fd, const void *data, size_t n, off_t at) TR_MUST_CHECK;
/* Read up to n bytes, fewer only at end of file; -1 with errno set. */
ssize_t tr_read_full(int fd, void *data, size_t n) TR_MUST_CHECK;
ssize_t tr_pread_full(int fd, void *data, size_t n, off_t at) TR_MUST_CHECK;

/* Append the whole of a file, at most `max` bytes, to b (unsized files such
 * as those of proc(5) included).  Path is relative to dirfd. */
int tr_read_file(int dirfd, const char *path, size_t max, struct tr_buf *b,
		 struct tr_error *err) TR_MUST_CHECK;
/*
 * Write a file atomically: temporary in the same directory, then rename.  With
 * `sync`, fsync(2) before the rename, so that the file is whole after a power
 * failure, too; that costs milliseconds.
 */
int tr_replace_file(int dirfd, const char *path, const void *data, size_t n,
		    bool sync, struct tr_error *err) TR_MUST_CHECK;
/* mkdir -p; existing directories are fine. */
int tr_make_dirs(const char *path, mode_t mode, struct tr_error *err)
	TR_MUST_CHECK;

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t tr_now_ns(void);

#endif
