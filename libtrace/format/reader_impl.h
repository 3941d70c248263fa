/* What an open trace is, for reader.c and those who read its chunks only. */
#ifndef TR_FORMAT_READER_IMPL_H
#define TR_FORMAT_READER_IMPL_H

#include "libtrace/format/manifest.h"
#include "libtrace/format/home.h"
#include "libtrace/format/reader.h"

/* The chunks of one stream, in order. */
struct tr_lane_refs {
	const struct tr_chunk_ref *const *chunks;
	size_t n;
};

struct tr_reader {
	struct tr_home home;
	char *path;
	struct tr_manifest manifest;
	struct tr_chunk_ref *refs; /* in file order */
	size_t nrefs;
	const struct tr_chunk_ref **sorted; /* by stream, then file order */
	struct tr_lane_refs *lanes; /* one a stream of events with chunks */
	size_t nlanes;
	struct tr_lane_refs blocks; /* of the stream of blocks */
	uint64_t lost;
	bool whole; /* nothing is missing */
	char *note;
};

#endif
