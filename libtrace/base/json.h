/*
 * JSON values: one small interface and one set of conventions: objects keep
 * the order of insertion, output is compact, bytes that are not UTF-8 become
 * {"hex":"..."}, 64-bit addresses are hex strings.  What is made here is made
 * and written without a library, because traces have millions of events;
 * parsing, which meets anybody's bytes, is jansson's.
 */
#ifndef TR_BASE_JSON_H
#define TR_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libtrace/base/error.h"

struct tr_json; /* a reference the holder frees, or hands over */

struct tr_json *tr_json_object(void);
struct tr_json *tr_json_array(void);
struct tr_json *tr_json_int(int64_t v);
struct tr_json *tr_json_bool(bool v);
struct tr_json *tr_json_null(void);
struct tr_json *tr_json_string(const char *s);
/* Text when the bytes are UTF-8 without NUL, else {"hex":"..."}. */
struct tr_json *tr_json_bytes(const void *data, size_t n);
/* The bytes as a bare hex string. */
struct tr_json *tr_json_hex_bytes(const void *data, size_t n);
struct tr_json *tr_json_hex(uint64_t v); /* "0x7fff..." */
void tr_json_free(struct tr_json *j);

/* These take over `value`. */
void tr_json_set(struct tr_json *object, const char *key, struct tr_json *value);
void tr_json_append(struct tr_json *array, struct tr_json *value);

/* Borrowed children; NULL when absent or of another type. */
const struct tr_json *tr_json_get(const struct tr_json *object, const char *key);
size_t tr_json_length(const struct tr_json *array);
const struct tr_json *tr_json_at(const struct tr_json *array, size_t i);
bool tr_json_is_object(const struct tr_json *j);
bool tr_json_is_array(const struct tr_json *j);
bool tr_json_is_null(const struct tr_json *j);
/* False when j is NULL or of another type. */
bool tr_json_get_string(const struct tr_json *j, const char **s);
bool tr_json_get_int(const struct tr_json *j, int64_t *v);
bool tr_json_get_hex(const struct tr_json *j, uint64_t *v); /* "0x..." */
bool tr_json_get_bool(const struct tr_json *j, bool *v);
/* What tr_json_bytes made: n bytes and a NUL, owned by the caller. */
bool tr_json_get_bytes(const struct tr_json *j, char **data, size_t *n);

/* Compact text without newline; owned by the caller. */
char *tr_json_dump(const struct tr_json *j);
/* The same for people: a member a line, indented. */
char *tr_json_dump_pretty(const struct tr_json *j);
/* One value and a newline to f; frees j. Returns 0, -1 on write error. */
int tr_json_line(FILE *f, struct tr_json *j);
struct tr_json *tr_json_parse(const char *text, size_t n, const char *what,
			      struct tr_error *err) TR_MUST_CHECK;

#endif
