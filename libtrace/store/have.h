/*
 * Lists of files that somebody has: contents by SHA-256, and where they are.
 * As JSON Lines they are what `trace-pack --have` and `trace-dump --files`
 * print.
 */
#ifndef TR_STORE_HAVE_H
#define TR_STORE_HAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"

struct tr_have;

struct tr_have *tr_have_new(void);
void tr_have_free(struct tr_have *h); /* NULL is fine */
/* path may be NULL: then only the contents are known. */
void tr_have_add(struct tr_have *h, const uint8_t sha256[TR_SHA256_SIZE],
		 const char *path);
/*
 * Add what JSON Lines on fd say: objects of type "have" or "file" with a
 * `sha256` of 64 hexadecimal digits; those whose digest is null are passed
 * over.  `what` names the input in errors.
 */
int tr_have_load(struct tr_have *h, int fd, const char *what,
		 struct tr_error *err) TR_MUST_CHECK;
/* h may be NULL: nobody has anything. */
bool tr_have_contains(const struct tr_have *h,
		      const uint8_t sha256[TR_SHA256_SIZE]);
/* The i-th path of these contents, or NULL. */
const char *tr_have_path(const struct tr_have *h,
			 const uint8_t sha256[TR_SHA256_SIZE], size_t i);

/* A file found by tr_have_find. */
struct tr_have_file {
	const char *path;
	uint64_t size; /* bytes */
	uint8_t sha256[TR_SHA256_SIZE];
};
typedef int tr_have_fn(void *arg, const struct tr_have_file *f);

/*
 * Report every regular file at `path`: itself, or all below a directory; in a
 * trace, its stored files with the digests that the trace has recorded.
 * Symbolic links and what cannot be read are passed over.  Stops when fn
 * returns something else than 0, and returns that.
 */
int tr_have_find(const char *path, tr_have_fn *fn, void *arg,
		 struct tr_error *err) TR_MUST_CHECK;
/* Report those of h's files that are at h's paths with these contents. */
int tr_have_check(const struct tr_have *h, tr_have_fn *fn, void *arg);

#endif
