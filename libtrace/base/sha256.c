/* SHA-256, by libcrypto, which uses the CPU's instructions for it. */
#include "libtrace/base/sha256.h"

#include <openssl/evp.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"

struct tr_sha256 {
	EVP_MD_CTX *ctx;
};

/*
 * EVP calls fail only when memory is exhausted or the library has no SHA-256
 * (a broken installation): nothing a caller could handle.
 */
static void must(int ok)
{
	static const char msg[] = "libtrace: libcrypto cannot do SHA-256\n";

	if (ok)
		return;
	if (write(STDERR_FILENO, msg, sizeof msg - 1) < 0)
		_exit(2);
	_exit(2);
}

struct tr_sha256 *tr_sha256_new(void)
{
	struct tr_sha256 *h = tr_alloc(sizeof *h);

	h->ctx = EVP_MD_CTX_new();
	must(h->ctx && EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL));
	return h;
}

void tr_sha256_update(struct tr_sha256 *h, const void *data, size_t n)
{
	must(EVP_DigestUpdate(h->ctx, data, n));
}

void tr_sha256_final(struct tr_sha256 *h, uint8_t out[TR_SHA256_SIZE])
{
	must(EVP_DigestFinal_ex(h->ctx, out, NULL));
	tr_sha256_free(h);
}

void tr_sha256_free(struct tr_sha256 *h)
{
	if (!h)
		return;
	EVP_MD_CTX_free(h->ctx);
	free(h);
}

int tr_sha256_fd(int fd, uint8_t out[TR_SHA256_SIZE], struct tr_error *err)
{
	enum { BLOCK = 1 << 18 };
	struct tr_sha256 *h = tr_sha256_new();
	TR_AUTOFREE uint8_t *block = tr_alloc(BLOCK);
	off_t at = 0;
	ssize_t n;

	while ((n = tr_pread_full(fd, block, BLOCK, at)) > 0) {
		tr_sha256_update(h, block, (size_t)n);
		at += n;
	}
	if (n < 0) {
		tr_sha256_free(h);
		return tr_fail_errno(err, "cannot read for the digest");
	}
	tr_sha256_final(h, out);
	return 0;
}
