/* What an archive of some traces will hold, in canonical order. */
#ifndef TR_STORE_LISTING_H
#define TR_STORE_LISTING_H

#include <stdbool.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/base/sha256.h"
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
	/* For the packer's use. */
	bool digested, is_link;
	uint8_t sha256[TR_SHA256_SIZE];
};

struct tr_list_trace {
	int dirfd;
	const char *path; /* borrowed */
	char name[TR_TRACE_NAME_MAX + 1];
};

struct tr_listing {
	struct tr_list_trace *traces;
	size_t ntraces;
	struct tr_list_item *items;
	size_t n, cap;
};

/* Refuses directories that are no traces and files that are not regular. */
int tr_listing_init(struct tr_listing *l, const char *const *dirs, size_t n,
		    struct tr_error *err) TR_MUST_CHECK;
void tr_listing_release(struct tr_listing *l);

/* The item as a member, and its open file. */
void tr_listing_member(const struct tr_listing *l, size_t i,
		       struct tr_member *m);
int tr_listing_open(const struct tr_listing *l, size_t i,
		    struct tr_error *err) TR_MUST_CHECK;

#endif
