/*
 * Growable byte buffers, and the little-endian and variable-length integers
 * of the trace format (formats/trace-format.md, "Integers").
 */
#ifndef TR_BASE_BUF_H
#define TR_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tr_buf {
	uint8_t *data; /* owned; NULL when cap is 0 */
	size_t len, cap;
};

void tr_buf_release(struct tr_buf *b);
#define TR_AUTOBUF __attribute__((cleanup(tr_buf_release)))

/* Make room for n more bytes and return where they go; len is unchanged. */
uint8_t *tr_buf_reserve(struct tr_buf *b, size_t n);
void tr_buf_put(struct tr_buf *b, const void *data, size_t n);
void tr_buf_put_u8(struct tr_buf *b, uint8_t v);
void tr_buf_put_varint(struct tr_buf *b, uint64_t v);

/* A bounded view that get functions consume from the front. */
struct tr_span {
	const uint8_t *p, *end;
};

static inline size_t tr_span_left(const struct tr_span *s)
{
	return (size_t)(s->end - s->p);
}

/* Each returns false, leaving the span unspecified, when bytes are missing. */
bool tr_span_varint(struct tr_span *s, uint64_t *v);
bool tr_span_take(struct tr_span *s, size_t n, struct tr_span *out);

/* Exactly 2n lower-case hexadecimal digits and a NUL; false for others. */
bool tr_parse_hex(const char *s, uint8_t *to, size_t n);

static inline uint64_t tr_zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t tr_unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

void tr_put_le16(uint8_t *p, uint16_t v);
void tr_put_le32(uint8_t *p, uint32_t v);
void tr_put_le64(uint8_t *p, uint64_t v);
uint16_t tr_get_le16(const uint8_t *p);
uint32_t tr_get_le32(const uint8_t *p);
uint64_t tr_get_le64(const uint8_t *p);

#endif
