/*
 * SHA-256, by nettle, which uses the CPU's instructions for it.  libcrypto is a
 * seventh faster, and takes milliseconds to be loaded and set up: more than
 * many a recording.
 */
#include "libtrace/base/sha256.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <string.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/io.h"

struct tr_sha256 {
	struct sha256_ctx ctx;
};

struct tr_sha256 *tr_sha256_new(void)
{
	struct tr_sha256 *h = tr_alloc(sizeof *h);

	sha256_init(&h->ctx);
	return h;
}

void tr_sha256_update(struct tr_sha256 *h, const void *data, size_t n)
{
	sha256_update(&h->ctx, n, data);
}

void tr_sha256_final(struct tr_sha256 *h, uint8_t out[TR_SHA256_SIZE])
{
	sha256_digest(&h->ctx, TR_SHA256_SIZE, out);
	tr_sha256_free(h);
}

void tr_sha256_free(struct tr_sha256 *h)
{
	free(h);
}

int tr_sha256_fd(int fd, uint8_t out[TR_SHA256_SIZE], struct tr_error *err)
{
	return tr_sha256_range(fd, 0, UINT64_MAX, out, err);
}

int tr_sha256_range(int fd, off_t start, uint64_t n,
		    uint8_t out[TR_SHA256_SIZE], struct tr_error *err)
{
	enum { BLOCK = 1 << 18 };
	struct tr_sha256 *h = tr_sha256_new();
	TR_AUTOFREE uint8_t *block = tr_alloc_buffer(BLOCK);
	ssize_t got = 1;

	while (n > 0 && got > 0) {
		got = tr_pread_full(fd, block, n < BLOCK ? (size_t)n : BLOCK,
				    start);
		if (got > 0)
			tr_sha256_update(h, block, (size_t)got);
		start += got;
		n -= (uint64_t)got;
	}
	if (got < 0) {
		tr_sha256_free(h);
		return tr_fail_errno(err, "cannot read for the digest");
	}
	tr_sha256_final(h, out);
	return 0;
}

bool tr_next_data(int fd, off_t size, off_t *at, off_t *end)
{
	off_t data;

	if (*at >= size)
		return false;
	data = lseek(fd, *at, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		return false;
	if (data >= 0)
		*at = data;
	*end = data < 0 ? size : lseek(fd, data, SEEK_HOLE);
	if (*end <= *at || *end > size)
		*end = size;
	return *at < size;
}

#define PAGE 4096

static void update_number(struct tr_sha256 *h, uint64_t v)
{
	uint8_t bytes[8];

	tr_put_le64(bytes, v);
	tr_sha256_update(h, bytes, sizeof bytes);
}

/* The pages from *at on, which is page aligned, up to where the data ends. */
static int update_pages(struct tr_sha256 *h, int fd, off_t at, off_t end,
			struct tr_error *err)
{
	static const uint8_t zeroes[PAGE];
	uint8_t page[PAGE];

	for (; at < end; at += PAGE) {
		ssize_t n = tr_pread_full(fd, page, PAGE, at);

		if (n < 0)
			return tr_fail_errno(err, "cannot read for the digest");
		memset(page + n, 0, (size_t)(PAGE - n));
		if (memcmp(page, zeroes, PAGE) == 0)
			continue;
		update_number(h, (uint64_t)at / PAGE);
		tr_sha256_update(h, page, PAGE);
	}
	return 0;
}

int tr_sha256_pages_fd(int fd, uint8_t out[TR_SHA256_SIZE],
		       struct tr_error *err)
{
	struct tr_sha256 *h;
	off_t at = 0, end;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return tr_fail_errno(err, "stat");
	h = tr_sha256_new();
	while (tr_next_data(fd, st.st_size, &at, &end)) {
		/* Data may begin or end inside a page: take all of it. */
		at -= at % PAGE;
		end += (PAGE - end % PAGE) % PAGE;
		if (update_pages(h, fd, at, end, err) < 0) {
			tr_sha256_free(h);
			return -1;
		}
		at = end;
	}
	update_number(h, (uint64_t)st.st_size);
	tr_sha256_final(h, out);
	return 0;
}
