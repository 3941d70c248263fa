/* What an archive of some traces will hold, in canonical order. */
#ifndef TR_STORE_LISTING_H
#define TR_STORE_LISTING_H

#include <stdbool.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"
#include "libtrace/store/catalogue.h"
#include "libtrace/store/member.h"

#define TR_NO_ITEM ((size_t)-1)

struct tr_list_item {
	enum tr_member_kind kind;
	uint32_t number, trace;
	uint64_t size;
	dev_t dev;
	ino_t ino;
	/* Stored files only: the nearest earlier item of equal size, or
	 * TR_NO_ITEM; and whether a later one of equal size exists. */
	size_t earlier;
	bool has_later;
	/* The contents' digest, when the trace says it and nothing tells that
	 * the file has changed, or when the packer has computed it. */
	bool digested;
	uint8_t sha256[TR_SHA256_SIZE];
	bool is_sparse; /* with a digest of pages */
	bool is_link, is_absent; /* for the packer's use */
};

struct tr_list_trace {
	int dirfd;
	const char *path; /* borrowed */
	struct tr_catalogue catalogue;
	char name[TR_TRACE_NAME_MAX + 1];
};

struct tr_listing {
	struct tr_list_trace *traces;
	size_t ntraces;
	struct tr_list_item *items;
	size_t n, cap;
};

/* Refuses directories that are no traces, files that are not regular, and
 * stored files that have changed since they were recorded. */
int tr_listing_init(struct tr_listing *l, const char *const *dirs, size_t n,
		    struct tr_error *err) TR_MUST_CHECK;
void tr_listing_release(struct tr_listing *l);

/* The item as a member, and its open file. */
void tr_listing_member(const struct tr_listing *l, size_t i,
		       struct tr_member *m);
int tr_listing_open(const struct tr_listing *l, size_t i,
		    struct tr_error *err) TR_MUST_CHECK;

#endif
