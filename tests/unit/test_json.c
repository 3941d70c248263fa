/*
 * JSON values: what is made, written and parsed again is the same; bytes that
 * are no text are told; keys of any length are found; order stays.
 */
#include "libtrace/base/json.h"

#include <inttypes.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/utf8.h"
#include "tests/unit/check.h"

static struct tr_error err;

static bool dumps_as(struct tr_json *j, const char *want)
{
	TR_AUTOFREE char *got = tr_json_dump(j);
	bool same = strcmp(got, want) == 0;

	if (!same)
		printf("# %s\n", got);
	tr_json_free(j);
	return same;
}

static struct tr_json *parse(const char *s)
{
	return tr_json_parse(s, strlen(s), "test", &err);
}

static void test_scalars(void)
{
	CHECK(dumps_as(tr_json_int(0), "0"));
	CHECK(dumps_as(tr_json_int(-1), "-1"));
	CHECK(dumps_as(tr_json_int(INT64_MAX), "9223372036854775807"));
	CHECK(dumps_as(tr_json_int(INT64_MIN), "-9223372036854775808"));
	CHECK(dumps_as(tr_json_hex(0), "\"0x0\""));
	CHECK(dumps_as(tr_json_hex(UINT64_MAX), "\"0xffffffffffffffff\""));
	CHECK(dumps_as(tr_json_bool(true), "true"));
	CHECK(dumps_as(tr_json_bool(false), "false"));
	CHECK(dumps_as(tr_json_null(), "null"));
	CHECK(dumps_as(tr_json_hex_bytes("\0\xab", 2), "\"00ab\""));
	CHECK(dumps_as(parse("1.5"), "1.5"));
	CHECK(dumps_as(parse("2.0"), "2.0"));
	CHECK(dumps_as(parse("[1,[],{},\"\"]"), "[1,[],{},\"\"]"));
}

/* Every byte alone and between others. */
static void test_strings(void)
{
	for (int c = 0; c < 256; c++) {
		const char s[3] = {'a', (char)c, 'b'};
		struct tr_json *j = tr_json_bytes(s, 3), *again;
		TR_AUTOFREE char *text = tr_json_dump(j), *data = NULL;
		size_t n;

		again = tr_json_parse(text, strlen(text), "test", &err);
		CHECK(again && tr_json_get_bytes(again, &data, &n));
		CHECK(n == 3 && memcmp(data, s, 3) == 0);
		CHECK(tr_json_is_object(j) == (c == 0 || c > 0x7f));
		tr_json_free(j);
		tr_json_free(again);
	}
	CHECK(dumps_as(tr_json_string("\"\\/\b\f\n\r\t\x01\x1f\x7f"),
		       "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\""));
	CHECK(dumps_as(tr_json_bytes("", 0), "\"\""));
}

static bool text(const char *s)
{
	return tr_utf8_is_text(s, strlen(s));
}

/* RFC 3629: the first and last of each length, and what is beside them. */
static void test_utf8(void)
{
	CHECK(text("\x7f") && text("\xc2\x80") && text("\xdf\xbf"));
	CHECK(text("\xe0\xa0\x80") && text("\xef\xbf\xbf"));
	CHECK(text("\xf0\x90\x80\x80") && text("\xf4\x8f\xbf\xbf"));
	CHECK(text("\xed\x9f\xbf") && text("\xee\x80\x80"));
	CHECK(!text("\x80") && !text("\xc1\xbf") && !text("\xe0\x9f\xbf"));
	CHECK(!text("\xf0\x8f\xbf\xbf") && !text("\xf4\x90\x80\x80"));
	CHECK(!text("\xed\xa0\x80") && !text("\xf5\x80\x80\x80"));
	CHECK(!text("\xc3") && !text("\xe2\x82") && !text("\xf0\x9f\x98"));
	CHECK(!text("\xe2\x82(") && !text("\xc3("));
	CHECK(!tr_utf8_is_text("a\0b", 3));
}

static void test_objects(void)
{
	static const char *const keys[] = {
		"", "a", "eightchr", "eightchrs", "eightchrt",
		"a key of exactly 20 ", "a key of more than twenty bytes",
		"a key of more than twenty byteS"};
	const size_t n = sizeof keys / sizeof *keys;
	struct tr_json *j = tr_json_object();
	int64_t v;

	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < n; i++)
			tr_json_set(j, keys[i],
				    tr_json_int((int64_t)(round * 100 + i)));
	for (size_t i = 0; i < n; i++) {
		CHECK(tr_json_get_int(tr_json_get(j, keys[i]), &v));
		CHECK(v == (int64_t)(100 + i));
	}
	CHECK(!tr_json_get(j, "eightch") && !tr_json_get(j, "eightchru"));
	CHECK(!tr_json_get(NULL, "a") && !tr_json_get(tr_json_get(j, "a"), "a"));
	tr_json_free(j);
	CHECK(dumps_as(parse("{\"b\":1,\"a\":{\"c\":[null]}}"),
		       "{\"b\":1,\"a\":{\"c\":[null]}}"));
	CHECK(!parse("{\"a\":1,\"a\":2}") && !parse("{") && !parse("1 2"));
}

static void test_pretty(void)
{
	struct tr_json *j = parse("{\"a\":[1,{}],\"b\":[],\"c\":{\"d\":2}}");
	TR_AUTOFREE char *s = tr_json_dump_pretty(j);

	CHECK(strcmp(s, "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": [],\n"
		     "  \"c\": {\n    \"d\": 2\n  }\n}") == 0);
	tr_json_free(j);
}

int main(void)
{
	RUN(test_scalars);
	RUN(test_strings);
	RUN(test_utf8);
	RUN(test_objects);
	RUN(test_pretty);
	return check_status();
}
