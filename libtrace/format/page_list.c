/* Lists of pages and their hashes. */
#include "libtrace/format/page_list.h"

#define PAGE_SHIFT 12

void tr_page_list_put(struct tr_buf *b, uint64_t *next,
		      const struct tr_page_hash *page)
{
	uint8_t hash[8];

	tr_put_le64(hash, page->hash);
	tr_buf_put_varint(b, (page->addr - *next) >> PAGE_SHIFT);
	tr_buf_put(b, hash, sizeof hash);
	*next = page->addr + (1u << PAGE_SHIFT);
}

bool tr_page_list_get(struct tr_span *s, uint64_t *next,
		      struct tr_page_hash *page)
{
	struct tr_span in = *s, hash;
	uint64_t distance;

	if (tr_span_left(s) == 0 || !tr_span_varint(&in, &distance) ||
	    distance >= (UINT64_MAX - *next) >> PAGE_SHIFT ||
	    !tr_span_take(&in, 8, &hash))
		return false;
	page->addr = *next + (distance << PAGE_SHIFT);
	page->hash = tr_get_le64(hash.p);
	*next = page->addr + (1u << PAGE_SHIFT);
	*s = in;
	return true;
}

uint64_t tr_map_digest(const struct tr_event *ev, size_t i)
{
	if ((i + 1) * 8 > ev->digests.len)
		return 0;
	return tr_get_le64((const uint8_t *)ev->digests.data + i * 8);
}
