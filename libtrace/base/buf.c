/* Byte buffers and integer encodings. */
#include "libtrace/base/buf.h"

#include <string.h>

#include "libtrace/base/alloc.h"

void tr_buf_release(struct tr_buf *b)
{
	free(b->data);
	*b = (struct tr_buf){0};
}

uint8_t *tr_buf_reserve(struct tr_buf *b, size_t n)
{
	if (b->cap - b->len < n) {
		size_t cap = b->cap ? b->cap : 64;

		while (cap - b->len < n)
			cap *= 2;
		b->data = tr_realloc(b->data, cap);
		b->cap = cap;
	}
	return b->data + b->len;
}

void tr_buf_put(struct tr_buf *b, const void *data, size_t n)
{
	if (n == 0)
		return;
	memcpy(tr_buf_reserve(b, n), data, n);
	b->len += n;
}

void tr_buf_put_u8(struct tr_buf *b, uint8_t v)
{
	*tr_buf_reserve(b, 1) = v;
	b->len++;
}

void tr_buf_put_varint(struct tr_buf *b, uint64_t v)
{
	uint8_t *p = tr_buf_reserve(b, 10);
	size_t n = 0;

	while (v >= 0x80) {
		p[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	p[n++] = (uint8_t)v;
	b->len += n;
}

bool tr_span_varint(struct tr_span *s, uint64_t *v)
{
	uint64_t r = 0;

	for (unsigned shift = 0; shift < 64 && s->p < s->end; shift += 7) {
		uint8_t byte = *s->p++;

		if (shift == 63 && byte > 1)
			return false;
		r |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*v = r;
			return true;
		}
	}
	return false;
}

bool tr_span_take(struct tr_span *s, size_t n, struct tr_span *out)
{
	if (tr_span_left(s) < n)
		return false;
	out->p = s->p;
	out->end = s->p + n;
	s->p += n;
	return true;
}

void tr_put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

void tr_put_le32(uint8_t *p, uint32_t v)
{
	tr_put_le16(p, (uint16_t)v);
	tr_put_le16(p + 2, (uint16_t)(v >> 16));
}

void tr_put_le64(uint8_t *p, uint64_t v)
{
	tr_put_le32(p, (uint32_t)v);
	tr_put_le32(p + 4, (uint32_t)(v >> 32));
}

uint16_t tr_get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t tr_get_le32(const uint8_t *p)
{
	return tr_get_le16(p) | (uint32_t)tr_get_le16(p + 2) << 16;
}

uint64_t tr_get_le64(const uint8_t *p)
{
	return tr_get_le32(p) | (uint64_t)tr_get_le32(p + 4) << 32;
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool tr_parse_hex(const char *s, uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int hi = nibble(s[2 * i]);
		int lo = hi < 0 ? -1 : nibble(s[2 * i + 1]);

		if (lo < 0)
			return false;
		to[i] = (uint8_t)(hi << 4 | lo);
	}
	return s[2 * n] == '\0';
}
