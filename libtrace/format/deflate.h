/* Raw deflate (RFC 1951) of whole buffers. */
#ifndef TR_FORMAT_DEFLATE_H
#define TR_FORMAT_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>

/* Not to be shared by threads. */
struct tr_deflater;
struct tr_deflater *tr_deflater_new(void);
void tr_deflater_free(struct tr_deflater *d);

/*
 * Compress n bytes into fewer: returns their number, or 0 when they do not
 * get fewer.  `to` has room for n bytes.
 */
size_t tr_deflate(struct tr_deflater *d, const void *from, size_t n, void *to);

struct tr_inflater;
struct tr_inflater *tr_inflater_new(void);
void tr_inflater_free(struct tr_inflater *f);

/* True when the n bytes inflate to exactly `size` bytes. */
bool tr_inflate(struct tr_inflater *f, const void *from, size_t n, void *to,
		size_t size);

#endif
