/* JSON values on top of jansson. */
#include "libtrace/base/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "libtrace/base/alloc.h"

/*
 * struct tr_json is json_t under another name; these two functions are the
 * only places that know it.
 */
static json_t *in(struct tr_json *j)
{
	return (json_t *)j;
}

static const json_t *peek(const struct tr_json *j)
{
	return (const json_t *)j;
}

/* jansson returns NULL only when memory is exhausted or a string is not
 * UTF-8; callers below exclude the latter. */
static struct tr_json *out(json_t *j)
{
	return tr_need(j);
}

struct tr_json *tr_json_object(void)
{
	return out(json_object());
}

struct tr_json *tr_json_array(void)
{
	return out(json_array());
}

struct tr_json *tr_json_int(int64_t v)
{
	return out(json_integer(v));
}

struct tr_json *tr_json_bool(bool v)
{
	return out(json_boolean(v));
}

struct tr_json *tr_json_null(void)
{
	return out(json_null());
}

struct tr_json *tr_json_string(const char *s)
{
	return tr_json_bytes(s, strlen(s));
}

struct tr_json *tr_json_bytes(const void *data, size_t n)
{
	json_t *text = NULL, *object;

	if (n == 0)
		return out(json_stringn("", 0));
	if (!memchr(data, '\0', n))
		text = json_stringn(data, n); /* NULL when not UTF-8 */
	if (text)
		return out(text);
	object = in(tr_json_object());
	tr_json_set(out(object), "hex", tr_json_hex_bytes(data, n));
	return out(object);
}

struct tr_json *tr_json_hex_bytes(const void *data, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = data;
	TR_AUTOFREE char *s = tr_realloc(NULL, 2 * n + 1);

	for (size_t i = 0; i < n; i++) {
		s[2 * i] = digits[p[i] >> 4];
		s[2 * i + 1] = digits[p[i] & 15];
	}
	return out(json_stringn_nocheck(s, 2 * n));
}

struct tr_json *tr_json_hex(uint64_t v)
{
	char s[19];

	snprintf(s, sizeof s, "0x%" PRIx64, v);
	return out(json_string_nocheck(s));
}

void tr_json_free(struct tr_json *j)
{
	json_decref(in(j));
}

void tr_json_set(struct tr_json *object, const char *key, struct tr_json *value)
{
	if (json_object_set_new_nocheck(in(object), key, in(value)) < 0)
		out(NULL);
}

void tr_json_append(struct tr_json *array, struct tr_json *value)
{
	if (json_array_append_new(in(array), in(value)) < 0)
		out(NULL);
}

const struct tr_json *tr_json_get(const struct tr_json *object, const char *key)
{
	return (const struct tr_json *)json_object_get(peek(object), key);
}

size_t tr_json_length(const struct tr_json *array)
{
	return json_array_size(peek(array));
}

const struct tr_json *tr_json_at(const struct tr_json *array, size_t i)
{
	return (const struct tr_json *)json_array_get(peek(array), i);
}

bool tr_json_is_object(const struct tr_json *j)
{
	return json_is_object(peek(j));
}

bool tr_json_is_array(const struct tr_json *j)
{
	return json_is_array(peek(j));
}

bool tr_json_is_null(const struct tr_json *j)
{
	return json_is_null(peek(j));
}

bool tr_json_get_string(const struct tr_json *j, const char **s)
{
	if (!json_is_string(peek(j)))
		return false;
	*s = json_string_value(peek(j));
	return true;
}

bool tr_json_get_int(const struct tr_json *j, int64_t *v)
{
	if (!json_is_integer(peek(j)))
		return false;
	*v = json_integer_value(peek(j));
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool tr_json_get_hex(const struct tr_json *j, uint64_t *v)
{
	const char *s;
	uint64_t r = 0;
	size_t n;

	if (!tr_json_get_string(j, &s) || s[0] != '0' || s[1] != 'x')
		return false;
	s += 2;
	n = strlen(s);
	if (n < 1 || n > 16)
		return false;
	for (; *s; s++) {
		int d = hex_digit(*s);

		if (d < 0)
			return false;
		r = r << 4 | (unsigned)d;
	}
	*v = r;
	return true;
}

bool tr_json_get_bool(const struct tr_json *j, bool *v)
{
	if (!json_is_boolean(peek(j)))
		return false;
	*v = json_is_true(peek(j));
	return true;
}

static bool unhex(const char *s, size_t n, char *to)
{
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(s[2 * i]), low = hex_digit(s[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		to[i] = (char)(high << 4 | low);
	}
	return true;
}

bool tr_json_get_bytes(const struct tr_json *j, char **data, size_t *n)
{
	const char *s;
	size_t len;

	if (tr_json_get_string(j, &s)) {
		len = strlen(s);
		*data = tr_strndup(s, len);
		*n = len;
		return true;
	}
	if (!tr_json_get_string(tr_json_get(j, "hex"), &s))
		return false;
	len = strlen(s);
	if (len % 2)
		return false;
	*n = len / 2;
	*data = tr_alloc(*n + 1);
	if (unhex(s, *n, *data))
		return true;
	free(*data);
	*data = NULL;
	return false;
}

static char *dump(const struct tr_json *j, size_t flags)
{
	char *s = json_dumps(peek(j), flags | JSON_ENCODE_ANY);

	if (!s)
		out(NULL);
	return s;
}

char *tr_json_dump(const struct tr_json *j)
{
	return dump(j, JSON_COMPACT);
}

char *tr_json_dump_pretty(const struct tr_json *j)
{
	return dump(j, JSON_INDENT(2));
}

/* jansson hands over its output token by token: lock the stream once a line. */
static int write_part(const char *s, size_t n, void *f)
{
	return fwrite_unlocked(s, 1, n, f) == n ? 0 : -1;
}

int tr_json_line(FILE *f, struct tr_json *j)
{
	int r;

	flockfile(f);
	r = json_dump_callback(peek(j), write_part, f,
			       JSON_COMPACT | JSON_ENCODE_ANY);
	if (r == 0 && putc_unlocked('\n', f) == EOF)
		r = -1;
	funlockfile(f);
	tr_json_free(j);
	return r;
}

struct tr_json *tr_json_parse(const char *text, size_t n, const char *what,
			      struct tr_error *err)
{
	json_error_t e;
	json_t *j = json_loadb(text, n,
			       JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);

	if (j)
		return (struct tr_json *)j;
	tr_fail(err, TR_ECORRUPT, "%s: not JSON: line %d: %s", what, e.line,
		e.text);
	return NULL;
}
