/* The verifier's own structures, shared by check*.c. */
#ifndef TR_FORMAT_CHECKER_H
#define TR_FORMAT_CHECKER_H

#include <stdbool.h>

#include "libtrace/base/table.h"
#include "libtrace/format/check.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/home.h"
#include "libtrace/format/reader.h"

/* A file the catalogue declares. */
struct tr_check_file {
	uint64_t event;  /* that declared it */
	char *path;      /* the original's */
	uint64_t size;
	bool has_digest, pages; /* pages: of that kind */
	uint8_t sha256[32];
};

struct tr_checker {
	const char *path;
	const struct tr_home *home;
	tr_problem_fn *fn;
	void *arg;
	struct tr_check_stats *stats;
	struct tr_manifest manifest;
	bool have_manifest;
	bool complete;     /* the manifest says so */
	bool chunks_whole; /* no damage met in the chunk files */
	struct tr_chunk_ref *refs; /* chunks as the scan found them */
	size_t nrefs, refs_cap;
	struct tr_table files; /* struct tr_check_file by id */
};

/* Report a problem; offset -1 and event 0 when there is none. */
void tr_checker_report(struct tr_checker *c, enum tr_code code,
		       const char *where, int64_t offset, uint64_t event,
		       const char *fmt, ...) TR_PRINTF(6, 7);
/* TR_ECORRUPT in a trace that claims to be complete, else TR_EINCOMPLETE:
 * something is missing that may never have been written. */
enum tr_code tr_checker_missing(const struct tr_checker *c);

/* check_chunks.c: chunk files and index, byte by byte. */
void tr_check_chunks(struct tr_checker *c);
/* check_events.c: every record, and what events say of each other. */
void tr_check_events(struct tr_checker *c);
/* check_files.c: stored files, and names that do not belong there. */
void tr_check_stored(struct tr_checker *c);
void tr_check_names(struct tr_checker *c);

#endif
