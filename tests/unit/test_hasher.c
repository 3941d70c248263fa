/*
 * SHA-256 beside the caller: the same as at once, whatever the pieces, and
 * whatever was added before.
 */
#include "libtrace/base/hasher.h"

#include <string.h>

#include "libtrace/base/alloc.h"
#include "tests/unit/check.h"

#define SIZE ((size_t)5 << 20)

static uint8_t *data;

static void at_once(size_t n, uint8_t out[TR_SHA256_SIZE])
{
	struct tr_sha256 *h = tr_sha256_new();

	tr_sha256_update(h, data, n);
	tr_sha256_final(h, out);
}

static bool in_pieces(struct tr_hasher *h, size_t n, size_t piece,
		      uint64_t announced)
{
	uint8_t want[TR_SHA256_SIZE], got[TR_SHA256_SIZE];

	at_once(n, want);
	tr_hasher_begin(h, announced);
	for (size_t at = 0; at < n; at += piece)
		tr_hasher_update(h, data + at, n - at < piece ? n - at : piece);
	tr_hasher_final(h, got);
	return memcmp(want, got, sizeof want) == 0;
}

static void test_pieces(void)
{
	static const size_t pieces[] = {SIZE, 1 << 18, (1 << 18) + 1, 100000};
	struct tr_hasher *h = tr_hasher_new();

	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		CHECK(in_pieces(h, SIZE, pieces[i], SIZE));
		CHECK(in_pieces(h, 1000, pieces[i], 1000));
		/* Another size than was said. */
		CHECK(in_pieces(h, SIZE, pieces[i], 1));
		CHECK(in_pieces(h, 1000, pieces[i], SIZE));
		CHECK(in_pieces(h, 0, 1, SIZE));
	}
	tr_hasher_free(h);
}

static void test_given_up(void)
{
	struct tr_hasher *h = tr_hasher_new();

	tr_hasher_begin(h, SIZE);
	tr_hasher_update(h, data, SIZE);
	CHECK(in_pieces(h, SIZE - 1, 300000, SIZE));
	tr_hasher_begin(h, SIZE);
	tr_hasher_update(h, data, SIZE);
	tr_hasher_free(h);
	tr_hasher_free(tr_hasher_new());
	tr_hasher_free(NULL);
}

int main(void)
{
	data = tr_alloc(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * i >> 7);
	RUN(test_pieces);
	RUN(test_given_up);
	free(data);
	return check_status();
}
