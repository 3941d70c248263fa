/*
 * Values written once and shown two ways: as text in strace's style, or as a
 * JSON value.  A renderer calls these functions and does not know which.
 * Internal to libtrace/model.
 */
#ifndef TR_MODEL_SINK_H
#define TR_MODEL_SINK_H

#include "libtrace/base/buf.h"
#include "libtrace/base/json.h"

#define TR_SINK_DEPTH 8

struct tr_sink {
	struct tr_buf *text;     /* where text goes; NULL: JSON */
	struct tr_json *root;    /* the JSON value, owned by the caller */
	struct tr_json *open[TR_SINK_DEPTH]; /* containers, in root */
	bool is_array[TR_SINK_DEPTH];
	unsigned depth;
	unsigned count[TR_SINK_DEPTH]; /* values in each open container */
	const char *key;         /* of the next value in an object */
};

/* printf at the end of a buffer. */
void tr_put(struct tr_buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* One byte as C would write it; `next` is the byte after it, or -1. */
void tr_put_escaped(struct tr_buf *b, uint8_t c, int next);

void tr_sink_object(struct tr_sink *s); /* {, ended by tr_sink_end */
void tr_sink_array(struct tr_sink *s);  /* [ */
void tr_sink_end(struct tr_sink *s);
/* The name of the next value; returns s. */
struct tr_sink *tr_sink_key(struct tr_sink *s, const char *key);

void tr_sink_int(struct tr_sink *s, int64_t v);
void tr_sink_uint(struct tr_sink *s, uint64_t v);
void tr_sink_hex(struct tr_sink *s, uint64_t v);
void tr_sink_octal(struct tr_sink *s, uint64_t v);
void tr_sink_null(struct tr_sink *s);
/* A symbol: bare in text, a string in JSON. */
void tr_sink_symbol(struct tr_sink *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The first n bytes of `whole`: quoted, with "..." when there are more. */
void tr_sink_bytes(struct tr_sink *s, const void *data, size_t n,
		   uint64_t whole);

#endif
