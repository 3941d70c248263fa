/*
 * Deflate by libdeflate where the build found it (2.5 times as fast at level
 * 1), else by zlib.  Either reads what the other wrote.
 */
#include "libtrace/format/deflate.h"

#include <string.h>

#include "libtrace/base/alloc.h"

/*
 * Whether data compresses shows in a sample: already compressed or random
 * data is then stored without the cost of trying all of it.
 */
#define SAMPLE_SIZE ((size_t)16 << 10)
#define SAMPLE_FROM (4 * SAMPLE_SIZE) /* smaller data is tried as a whole */
#define LEVEL 1

static size_t compress_bytes(struct tr_deflater *d, const void *from, size_t n,
			     void *to, size_t room);

static bool worth_it(struct tr_deflater *d, const char *from, size_t n,
		     void *scratch)
{
	size_t room = SAMPLE_SIZE - SAMPLE_SIZE / 16;

	if (n < SAMPLE_FROM)
		return true;
	return compress_bytes(d, from + (n - SAMPLE_SIZE) / 2, SAMPLE_SIZE,
			      scratch, room) > 0;
}

size_t tr_deflate(struct tr_deflater *d, const void *from, size_t n, void *to)
{
	if (n < 2 || !worth_it(d, from, n, to))
		return 0;
	return compress_bytes(d, from, n, to, n - 1);
}

#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>

/* Both constructors fail for want of memory alone. */

struct tr_deflater *tr_deflater_new(void)
{
	return tr_need(libdeflate_alloc_compressor(LEVEL));
}

void tr_deflater_free(struct tr_deflater *d)
{
	libdeflate_free_compressor((struct libdeflate_compressor *)d);
}

static size_t compress_bytes(struct tr_deflater *d, const void *from, size_t n,
			     void *to, size_t room)
{
	return libdeflate_deflate_compress((struct libdeflate_compressor *)d,
					   from, n, to, room);
}

struct tr_inflater *tr_inflater_new(void)
{
	return tr_need(libdeflate_alloc_decompressor());
}

void tr_inflater_free(struct tr_inflater *f)
{
	libdeflate_free_decompressor((struct libdeflate_decompressor *)f);
}

bool tr_inflate(struct tr_inflater *f, const void *from, size_t n, void *to,
		size_t size)
{
	size_t used, got;
	enum libdeflate_result r = libdeflate_deflate_decompress_ex(
		(struct libdeflate_decompressor *)f, from, n, to, size, &used,
		&got);

	return r == LIBDEFLATE_SUCCESS && used == n && got == size;
}

#else
#define ZLIB_CONST
#include <zlib.h>

struct tr_deflater {
	z_stream z;
};

struct tr_inflater {
	z_stream z;
};

#define WINDOW_BITS (-15) /* raw deflate: no zlib header */

/* With constant arguments only memory can be what fails. */
static void *made(void *p, int result)
{
	return tr_need(result == Z_OK ? p : NULL);
}

struct tr_deflater *tr_deflater_new(void)
{
	struct tr_deflater *d = tr_alloc(sizeof *d);

	return made(d, deflateInit2(&d->z, LEVEL, Z_DEFLATED, WINDOW_BITS, 8,
				    Z_DEFAULT_STRATEGY));
}

void tr_deflater_free(struct tr_deflater *d)
{
	if (!d)
		return;
	deflateEnd(&d->z);
	free(d);
}

static size_t compress_bytes(struct tr_deflater *d, const void *from, size_t n,
			     void *to, size_t room)
{
	z_stream *z = &d->z;

	deflateReset(z);
	z->next_in = from;
	z->avail_in = (uInt)n;
	z->next_out = to;
	z->avail_out = (uInt)room;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return 0;
	return room - z->avail_out;
}

struct tr_inflater *tr_inflater_new(void)
{
	struct tr_inflater *f = tr_alloc(sizeof *f);

	return made(f, inflateInit2(&f->z, WINDOW_BITS));
}

void tr_inflater_free(struct tr_inflater *f)
{
	if (!f)
		return;
	inflateEnd(&f->z);
	free(f);
}

bool tr_inflate(struct tr_inflater *f, const void *from, size_t n, void *to,
		size_t size)
{
	z_stream *z = &f->z;

	inflateReset(z);
	z->next_in = from;
	z->avail_in = (uInt)n;
	z->next_out = to;
	z->avail_out = (uInt)size;
	return inflate(z, Z_FINISH) == Z_STREAM_END && z->avail_in == 0 &&
	       z->avail_out == 0;
}
#endif
