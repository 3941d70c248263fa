/* The names a packed trace may hold, and nothing else. */
#ifndef TR_STORE_MEMBER_H
#define TR_STORE_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Leaves room in NAME_MAX for ".NAME.unpacking-PID". */
#define TR_TRACE_NAME_MAX 200
/* The longest is NAME/chunks/4294967295. */
#define TR_MEMBER_PATH_MAX (TR_TRACE_NAME_MAX + 40)
#define TR_MAX_MEMBERS 1000000u

/* In canonical order. */
enum tr_member_kind {
	TR_MEMBER_TRACE,    /* NAME/ */
	TR_MEMBER_MANIFEST, /* NAME/manifest.json */
	TR_MEMBER_INDEX,    /* NAME/index */
	TR_MEMBER_CHUNKS,   /* NAME/chunks/ */
	TR_MEMBER_CHUNK,    /* NAME/chunks/000000 */
	TR_MEMBER_FILES,    /* NAME/files/ */
	TR_MEMBER_FILE,     /* NAME/files/1 */
};

struct tr_member {
	enum tr_member_kind kind;
	uint32_t number; /* CHUNK, FILE */
	char trace[TR_TRACE_NAME_MAX + 1];
};

bool tr_member_is_dir(const struct tr_member *m);

/* May this be a trace's name: no control byte, no '/', no leading dot. */
bool tr_trace_name_ok(const char *name, size_t n);

/* False unless path has exactly one of the shapes above; a directory's
 * trailing slash may be missing. */
bool tr_member_parse(const char *path, struct tr_member *m);

/* The parts below NAME/: "", "chunks/000000", "files/1", ... */
void tr_member_rest(const struct tr_member *m, char out[32]);
/* The canonical path, directories with a trailing slash. */
void tr_member_path(const struct tr_member *m, char out[TR_MEMBER_PATH_MAX]);

/* "000000" and "1": numbers in their only spelling. */
bool tr_chunk_name_parse(const char *s, uint32_t *number);
bool tr_file_name_parse(const char *s, uint32_t *number);

#endif
