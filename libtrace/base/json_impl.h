/* What a JSON value is, for the files that make, write and parse them. */
#ifndef TR_BASE_JSON_IMPL_H
#define TR_BASE_JSON_IMPL_H

#include "libtrace/base/json.h"

enum tr_json_kind {
	TR_JSON_NULL,
	TR_JSON_FALSE,
	TR_JSON_TRUE,
	TR_JSON_INT,
	TR_JSON_REAL, /* parsed only */
	TR_JSON_STRING,
	TR_JSON_ARRAY,
	TR_JSON_OBJECT,
};

struct tr_json_child {
	uint64_t head; /* the key's first bytes, to find it by */
	struct tr_json *value;
};

#define TR_JSON_SHORT_KEY 20

struct tr_json {
	enum tr_json_kind kind;
	uint32_t key_len;
	union {
		int64_t integer;
		double real;
		struct {
			struct tr_json_child *child;
			size_t n, cap;
		};
		size_t len; /* of text */
	};
	/* In an object: its name, here when it is short. */
	char *key;
	char short_key[TR_JSON_SHORT_KEY];
	char text[]; /* of a string, and a NUL */
};

/* Not initialised but for its kind. */
struct tr_json *tr_json_new(enum tr_json_kind kind, size_t text);
/* A string that is known to be UTF-8. */
struct tr_json *tr_json_text(const char *s, size_t n);
/* As tr_json_set, for a key that the object does not have. */
void tr_json_add(struct tr_json *object, const char *key,
		 struct tr_json *value);

#endif
