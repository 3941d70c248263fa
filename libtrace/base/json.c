/* JSON values: making them and looking at them. */
#include "libtrace/base/json.h"

#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/json_impl.h"
#include "libtrace/base/utf8.h"

struct tr_json *tr_json_new(enum tr_json_kind kind, size_t text)
{
	struct tr_json *j = tr_realloc(NULL, sizeof *j + text);

	j->kind = kind;
	j->key = NULL;
	return j;
}

static struct tr_json *container(enum tr_json_kind kind)
{
	struct tr_json *j = tr_json_new(kind, 0);

	j->child = NULL;
	j->n = j->cap = 0;
	return j;
}

struct tr_json *tr_json_object(void)
{
	return container(TR_JSON_OBJECT);
}

struct tr_json *tr_json_array(void)
{
	return container(TR_JSON_ARRAY);
}

struct tr_json *tr_json_int(int64_t v)
{
	struct tr_json *j = tr_json_new(TR_JSON_INT, 0);

	j->integer = v;
	return j;
}

struct tr_json *tr_json_bool(bool v)
{
	return tr_json_new(v ? TR_JSON_TRUE : TR_JSON_FALSE, 0);
}

struct tr_json *tr_json_null(void)
{
	return tr_json_new(TR_JSON_NULL, 0);
}

struct tr_json *tr_json_text(const char *s, size_t n)
{
	struct tr_json *j = tr_json_new(TR_JSON_STRING, n + 1);

	j->len = n;
	memcpy(j->text, s, n);
	j->text[n] = '\0';
	return j;
}

struct tr_json *tr_json_string(const char *s)
{
	return tr_json_bytes(s, strlen(s));
}

struct tr_json *tr_json_bytes(const void *data, size_t n)
{
	struct tr_json *object;

	if (n == 0)
		return tr_json_text("", 0);
	if (tr_utf8_is_text(data, n))
		return tr_json_text(data, n);
	object = tr_json_object();
	tr_json_set(object, "hex", tr_json_hex_bytes(data, n));
	return object;
}

static const char digits[] = "0123456789abcdef";

struct tr_json *tr_json_hex_bytes(const void *data, size_t n)
{
	struct tr_json *j = tr_json_new(TR_JSON_STRING, 2 * n + 1);
	const uint8_t *p = data;

	j->len = 2 * n;
	for (size_t i = 0; i < n; i++) {
		j->text[2 * i] = digits[p[i] >> 4];
		j->text[2 * i + 1] = digits[p[i] & 15];
	}
	j->text[2 * n] = '\0';
	return j;
}

struct tr_json *tr_json_hex(uint64_t v)
{
	char s[18], *p = s + sizeof s;

	do
		*--p = digits[v & 15];
	while (v >>= 4);
	*--p = 'x';
	*--p = '0';
	return tr_json_text(p, (size_t)(s + sizeof s - p));
}

void tr_json_free(struct tr_json *j)
{
	if (!j)
		return;
	if (j->kind >= TR_JSON_ARRAY) {
		for (size_t i = 0; i < j->n; i++)
			tr_json_free(j->child[i].value);
		free(j->child);
	}
	if (j->key != j->short_key)
		free(j->key);
	free(j);
}

/* The first bytes of a key in a number: most keys differ in them. */
static uint64_t head_of(const char *key, size_t n)
{
	uint64_t head = 0;

	memcpy(&head, key, n < sizeof head ? n : sizeof head);
	return head;
}

static void set_key(struct tr_json *j, const char *key, size_t n)
{
	if (n >= UINT32_MAX)
		n = UINT32_MAX - 1;
	j->key = n < sizeof j->short_key ? j->short_key :
					   tr_realloc(NULL, n + 1);
	memcpy(j->key, key, n);
	j->key[n] = '\0';
	j->key_len = (uint32_t)n;
}

static struct tr_json_child *add_child(struct tr_json *j, struct tr_json *value)
{
	TR_GROW(j->child, j->n, j->cap);
	j->child[j->n].value = value;
	return &j->child[j->n++];
}

void tr_json_append(struct tr_json *array, struct tr_json *value)
{
	add_child(array, value);
}

void tr_json_add(struct tr_json *object, const char *key,
		 struct tr_json *value)
{
	size_t n = strlen(key);

	set_key(value, key, n);
	add_child(object, value)->head = head_of(key, n);
}

static struct tr_json_child *find(const struct tr_json *object,
				  const char *key)
{
	size_t n = strlen(key);
	uint64_t head = head_of(key, n);

	for (size_t i = 0; i < object->n; i++) {
		struct tr_json_child *c = &object->child[i];

		if (c->head == head && c->value->key_len == n &&
		    memcmp(c->value->key, key, n) == 0)
			return c;
	}
	return NULL;
}

void tr_json_set(struct tr_json *object, const char *key, struct tr_json *value)
{
	struct tr_json_child *c = find(object, key);

	if (!c) {
		tr_json_add(object, key, value);
		return;
	}
	set_key(value, key, c->value->key_len);
	tr_json_free(c->value);
	c->value = value;
}

const struct tr_json *tr_json_get(const struct tr_json *object, const char *key)
{
	const struct tr_json_child *c = tr_json_is_object(object) ?
					find(object, key) : NULL;

	return c ? c->value : NULL;
}

size_t tr_json_length(const struct tr_json *array)
{
	return tr_json_is_array(array) ? array->n : 0;
}

const struct tr_json *tr_json_at(const struct tr_json *array, size_t i)
{
	return i < tr_json_length(array) ? array->child[i].value : NULL;
}

bool tr_json_is_object(const struct tr_json *j)
{
	return j && j->kind == TR_JSON_OBJECT;
}

bool tr_json_is_array(const struct tr_json *j)
{
	return j && j->kind == TR_JSON_ARRAY;
}

bool tr_json_is_null(const struct tr_json *j)
{
	return j && j->kind == TR_JSON_NULL;
}

bool tr_json_get_string(const struct tr_json *j, const char **s)
{
	if (!j || j->kind != TR_JSON_STRING)
		return false;
	*s = j->text;
	return true;
}

bool tr_json_get_int(const struct tr_json *j, int64_t *v)
{
	if (!j || j->kind != TR_JSON_INT)
		return false;
	*v = j->integer;
	return true;
}

bool tr_json_get_bool(const struct tr_json *j, bool *v)
{
	if (!j || (j->kind != TR_JSON_TRUE && j->kind != TR_JSON_FALSE))
		return false;
	*v = j->kind == TR_JSON_TRUE;
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
