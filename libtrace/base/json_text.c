/* JSON values as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/json_impl.h"

#define COMPACT (-1)
#define INDENT 2

/* As tr_buf_put_u8, which is too far away for every comma. */
static inline void put_char(struct tr_buf *b, char c)
{
	if (b->len < b->cap)
		b->data[b->len++] = (uint8_t)c;
	else
		tr_buf_put_u8(b, (uint8_t)c);
}

static void put_text(struct tr_buf *b, const char *s)
{
	tr_buf_put(b, s, strlen(s));
}

static void put_int(struct tr_buf *b, int64_t v)
{
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
	char s[20], *p = s + sizeof s;

	do
		*--p = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		*--p = '-';
	tr_buf_put(b, p, (size_t)(s + sizeof s - p));
}

/* Enough digits to be read back the same, and never what looks an integer. */
static void put_real(struct tr_buf *b, double v)
{
	char s[40];
	int n = snprintf(s, sizeof s - 2, "%.17g", v);

	if (!strpbrk(s, ".e"))
		memcpy(s + n, ".0", 3);
	put_text(b, s);
}

/* Control characters, the quote and the backslash have to be escaped
 * (RFC 8259, section 7). */
static void put_escape(struct tr_buf *b, uint8_t c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = strchr(from, c);
	char s[8];

	if (at && c)
		snprintf(s, sizeof s, "\\%c", to[at - from]);
	else
		snprintf(s, sizeof s, "\\u%04X", c);
	put_text(b, s);
}

static bool is_plain(char c)
{
	return (uint8_t)c >= 0x20 && c != '"' && c != '\\';
}

static void put_string(struct tr_buf *b, const char *s, size_t n)
{
	size_t i = 0;

	put_char(b, '"');
	while (n > 0) {
		while (i < n && is_plain(s[i]))
			i++;
		tr_buf_put(b, s, i);
		if (i < n)
			put_escape(b, (uint8_t)s[i++]);
		s += i;
		n -= i;
		i = 0;
	}
	put_char(b, '"');
}

static void put_line(struct tr_buf *b, int indent)
{
	if (indent == COMPACT)
		return;
	put_char(b, '\n');
	for (int i = 0; i < indent * INDENT; i++)
		put_char(b, ' ');
}

static void put_value(struct tr_buf *b, const struct tr_json *j, int indent);

static void put_container(struct tr_buf *b, const struct tr_json *j, int indent)
{
	bool object = j->kind == TR_JSON_OBJECT;
	int inner = indent == COMPACT ? COMPACT : indent + 1;

	put_char(b, object ? '{' : '[');
	for (size_t i = 0; i < j->n; i++) {
		const struct tr_json *v = j->child[i].value;

		if (i)
			put_char(b, ',');
		put_line(b, inner);
		if (object) {
			put_string(b, v->key, v->key_len);
			put_char(b, ':');
			if (indent != COMPACT)
				put_char(b, ' ');
		}
		put_value(b, v, inner);
	}
	if (j->n)
		put_line(b, indent);
	put_char(b, object ? '}' : ']');
}

static void put_value(struct tr_buf *b, const struct tr_json *j, int indent)
{
	switch (j->kind) {
	case TR_JSON_NULL:
		put_text(b, "null");
		break;
	case TR_JSON_FALSE:
		put_text(b, "false");
		break;
	case TR_JSON_TRUE:
		put_text(b, "true");
		break;
	case TR_JSON_INT:
		put_int(b, j->integer);
		break;
	case TR_JSON_REAL:
		put_real(b, j->real);
		break;
	case TR_JSON_STRING:
		put_string(b, j->text, j->len);
		break;
	case TR_JSON_ARRAY:
	case TR_JSON_OBJECT:
		put_container(b, j, indent);
		break;
	}
}

static char *dump(const struct tr_json *j, int indent)
{
	struct tr_buf b = {0};

	put_value(&b, j, indent);
	tr_buf_put_u8(&b, '\0');
	return (char *)b.data;
}

char *tr_json_dump(const struct tr_json *j)
{
	return dump(j, COMPACT);
}

char *tr_json_dump_pretty(const struct tr_json *j)
{
	return dump(j, 0);
}

int tr_json_line(FILE *f, struct tr_json *j)
{
	TR_AUTOBUF struct tr_buf b = {0};

	tr_buf_reserve(&b, 512); /* most lines */
	put_value(&b, j, COMPACT);
	tr_buf_put_u8(&b, '\n');
	tr_json_free(j);
	return fwrite(b.data, 1, b.len, f) == b.len ? 0 : -1;
}
