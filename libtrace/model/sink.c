/* Values as text or JSON. */
#include "libtrace/model/sink.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libtrace/base/alloc.h"

__attribute__((format(printf, 2, 0)))
static void put_va(struct tr_buf *b, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof small, fmt, ap);
	if (n > 0 && (size_t)n < sizeof small)
		tr_buf_put(b, small, (size_t)n);
	else if (n > 0) {
		vsnprintf((char *)tr_buf_reserve(b, (size_t)n + 1),
			  (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void tr_put(struct tr_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_va(b, fmt, ap);
	va_end(ap);
}

/* What stands before a value in text: a separator, and its name. */
static void before(struct tr_sink *s)
{
	if (s->depth > 0 && s->count[s->depth - 1]++)
		tr_put(s->text, ", ");
	if (s->depth > 0 && !s->is_array[s->depth - 1] && s->key)
		tr_put(s->text, "%s=", s->key);
	s->key = NULL;
}

static void place(struct tr_sink *s, struct tr_json *value)
{
	if (s->depth == 0)
		s->root = value;
	else if (s->is_array[s->depth - 1])
		tr_json_append(s->open[s->depth - 1], value);
	else
		tr_json_set(s->open[s->depth - 1], s->key ? s->key : "",
			    value);
	s->key = NULL;
}

static void begin(struct tr_sink *s, bool is_array)
{
	struct tr_json *container = NULL;

	if (s->depth == TR_SINK_DEPTH)
		abort(); /* renderers nest to a fixed depth */
	if (s->text) {
		before(s);
		tr_put(s->text, is_array ? "[" : "{");
	} else {
		container = is_array ? tr_json_array() : tr_json_object();
		place(s, container);
	}
	s->open[s->depth] = container;
	s->is_array[s->depth] = is_array;
	s->count[s->depth++] = 0;
}

void tr_sink_object(struct tr_sink *s)
{
	begin(s, false);
}

void tr_sink_array(struct tr_sink *s)
{
	begin(s, true);
}

void tr_sink_end(struct tr_sink *s)
{
	s->depth--;
	if (s->text)
		tr_put(s->text, s->is_array[s->depth] ? "]" : "}");
}

struct tr_sink *tr_sink_key(struct tr_sink *s, const char *key)
{
	s->key = key;
	return s;
}

void tr_sink_int(struct tr_sink *s, int64_t v)
{
	if (!s->text) {
		place(s, tr_json_int(v));
		return;
	}
	before(s);
	tr_put(s->text, "%" PRId64, v);
}

/* JSON integers are signed here: what does not fit is a hex string. */
void tr_sink_uint(struct tr_sink *s, uint64_t v)
{
	if (!s->text) {
		place(s, v > INT64_MAX ? tr_json_hex(v)
				       : tr_json_int((int64_t)v));
		return;
	}
	before(s);
	tr_put(s->text, "%" PRIu64, v);
}

void tr_sink_hex(struct tr_sink *s, uint64_t v)
{
	if (!s->text) {
		place(s, tr_json_hex(v));
		return;
	}
	before(s);
	tr_put(s->text, "0x%" PRIx64, v);
}

void tr_sink_octal(struct tr_sink *s, uint64_t v)
{
	if (!s->text) {
		tr_sink_uint(s, v);
		return;
	}
	before(s);
	tr_put(s->text, "%#" PRIo64, v);
}

void tr_sink_null(struct tr_sink *s)
{
	if (!s->text) {
		place(s, tr_json_null());
		return;
	}
	before(s);
	tr_put(s->text, "NULL");
}

void tr_sink_symbol(struct tr_sink *s, const char *fmt, ...)
{
	struct tr_buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	put_va(&b, fmt, ap);
	va_end(ap);
	if (s->text) {
		before(s);
		tr_buf_put(s->text, b.data, b.len);
	} else {
		place(s, tr_json_bytes(b.data, b.len));
	}
	tr_buf_release(&b);
}

void tr_put_escaped(struct tr_buf *b, uint8_t c, int next)
{
	static const char from[] = "\n\t\r\f\v\"\\", to[] = "ntrfv\"\\";
	const char *at = c ? strchr(from, c) : NULL;

	if (at)
		tr_put(b, "\\%c", to[at - from]);
	else if (c >= 0x20 && c < 0x7f)
		tr_buf_put_u8(b, c);
	else if (next >= '0' && next <= '9')
		tr_put(b, "\\%03o", c);
	else
		tr_put(b, "\\%o", c);
}

static void put_quoted(struct tr_buf *b, const uint8_t *p, size_t n)
{
	tr_buf_put_u8(b, '"');
	for (size_t i = 0; i < n; i++)
		tr_put_escaped(b, p[i], i + 1 < n ? p[i + 1] : -1);
	tr_buf_put_u8(b, '"');
}

/*
 * Bytes that a cut would leave of the last UTF-8 character, so that text
 * stays text.
 */
static size_t cut_character(const uint8_t *p, size_t n)
{
	size_t back = 1, need;

	while (back < 4 && back < n && (p[n - back] & 0xc0) == 0x80)
		back++;
	if (n == 0 || p[n - back] < 0xc0)
		return 0;
	need = p[n - back] >= 0xf0 ? 4 : p[n - back] >= 0xe0 ? 3 : 2;
	return back < need ? back : 0;
}

void tr_sink_bytes(struct tr_sink *s, const void *data, size_t n,
		   uint64_t whole)
{
	if (!s->text) {
		if (whole > n)
			n -= cut_character(data, n);
		place(s, tr_json_bytes(data, n));
		return;
	}
	before(s);
	put_quoted(s->text, data, n);
	if (whole > n)
		tr_put(s->text, "...");
}
