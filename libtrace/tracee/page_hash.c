/* Hashes of pages and their terms in a digest. */
#include "libtrace/tracee/page_hash.h"

#include <string.h>
#include <xxhash.h>

uint64_t tr_page_hash(const void *page)
{
	const uint8_t *bytes = page;
	uint64_t hash;

	/* Most pages of zeros are told apart by a look. */
	if (bytes[0] == 0 && memcmp(bytes, bytes + 1, TR_PAGE - 1) == 0)
		return 0;
	hash = XXH3_64bits(page, TR_PAGE);
	return hash ? hash : 1;
}

uint64_t tr_page_term(uint64_t addr, uint64_t hash)
{
	uint64_t words[2] = {addr, hash};

	return hash ? XXH3_64bits(words, sizeof words) : 0;
}
