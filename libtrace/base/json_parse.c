/* Parsing JSON, which may be anybody's: the only user of jansson. */
#include <jansson.h>
#include <string.h>

#include "libtrace/base/json_impl.h"

static struct tr_json *convert(json_t *from);

static struct tr_json *convert_array(const json_t *from)
{
	struct tr_json *j = tr_json_array();
	size_t n = json_array_size(from);

	for (size_t i = 0; i < n; i++)
		tr_json_append(j, convert(json_array_get(from, i)));
	return j;
}

/* jansson has refused keys that are there twice. */
static struct tr_json *convert_object(json_t *from)
{
	struct tr_json *j = tr_json_object();
	const char *key;
	json_t *value;

	json_object_foreach(from, key, value)
		tr_json_add(j, key, convert(value));
	return j;
}

/* As deep as jansson lets a value be. */
static struct tr_json *convert(json_t *from)
{
	struct tr_json *j;

	switch (json_typeof(from)) {
	case JSON_OBJECT:
		return convert_object(from);
	case JSON_ARRAY:
		return convert_array(from);
	case JSON_STRING:
		return tr_json_text(json_string_value(from),
				    json_string_length(from));
	case JSON_INTEGER:
		return tr_json_int(json_integer_value(from));
	case JSON_REAL:
		j = tr_json_new(TR_JSON_REAL, 0);
		j->real = json_real_value(from);
		return j;
	case JSON_TRUE:
		return tr_json_bool(true);
	case JSON_FALSE:
		return tr_json_bool(false);
	case JSON_NULL:
		break;
	}
	return tr_json_null();
}

struct tr_json *tr_json_parse(const char *text, size_t n, const char *what,
			      struct tr_error *err)
{
	json_error_t e;
	json_t *from = json_loadb(text, n,
				  JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	struct tr_json *j;

	if (!from) {
		tr_fail(err, TR_ECORRUPT, "%s: not JSON: line %d: %s", what,
			e.line, e.text);
		return NULL;
	}
	j = convert(from);
	json_decref(from);
	return j;
}
