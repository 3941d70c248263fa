/* Writing packed traces.  What goes in is listed by listing.c. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/store/archive.h"
#include "libtrace/store/listing.h"
#include "libtrace/store/tape.h"

#define BLOCK ((size_t)1 << 18)

/* One packing under way. */
struct job {
	struct tr_tape_out *tape;
	const struct tr_pack_options *o;
	uint8_t *block; /* BLOCK bytes */
	struct tr_pack_stats stats;
	struct tr_listing list;
	struct tr_extent *extents; /* of the file at hand */
	size_t n, cap;
};

static void tell(struct job *j, const char *member)
{
	const struct tr_pack_progress p = {member, j->stats.bytes};

	if (j->o->progress)
		j->o->progress(j->o->arg, &p);
}

static bool names_are_ascii(const struct tr_listing *l)
{
	for (size_t i = 0; i < l->ntraces; i++)
		for (const char *p = l->traces[i].name; *p; p++)
			if ((unsigned char)*p >= 0x80)
				return false;
	return true;
}

/* Exactly `size` bytes, as the header says; h may be NULL. */
static int put_data(struct job *j, int fd, const char *path, uint64_t size,
		    struct tr_sha256 *h, struct tr_error *err)
{
	while (size > 0) {
		size_t want = size < BLOCK ? (size_t)size : BLOCK;
		ssize_t n = tr_read_full(fd, j->block, want);

		if (n < 0)
			return tr_fail_errno(err, "%s", path);
		if ((size_t)n < want)
			return tr_fail(err, TR_ECORRUPT, "%s: became shorter "
				       "while it was packed", path);
		if (h)
			tr_sha256_update(h, j->block, want);
		if (tr_tape_put(j->tape, j->block, want, err) < 0)
			return tr_error_prefix(err, "%s", path);
		size -= want;
		j->stats.bytes += want;
		tell(j, path);
	}
	return 0;
}

#define PAGE 4096

/* Add the run of data but for its pages of zeroes, so that it is the same
 * wherever the filesystem has holes. */
static int add_extents(struct job *j, int fd, uint64_t at, uint64_t end,
		       struct tr_error *err)
{
	static const uint8_t zeroes[PAGE];
	uint8_t page[PAGE];

	for (; at < end; at += PAGE) {
		struct tr_extent *last = j->n ? &j->extents[j->n - 1] : NULL;
		uint64_t length = end - at < PAGE ? end - at : PAGE;
		ssize_t n = tr_pread_full(fd, page, length, (off_t)at);

		if (n < 0)
			return tr_fail_errno(err, "read");
		if (memcmp(page, zeroes, (size_t)n) == 0)
			continue;
		if (last && last->offset + last->length == at) {
			last->length += length;
			continue;
		}
		TR_GROW(j->extents, j->n, j->cap);
		j->extents[j->n++] = (struct tr_extent){at, length};
	}
	return 0;
}

static int find_extents(struct job *j, int fd, uint64_t size,
			struct tr_error *err)
{
	off_t at = 0, end;

	j->n = 0;
	while (tr_next_data(fd, (off_t)size, &at, &end)) {
		at -= at % PAGE;
		end += (PAGE - end % PAGE) % PAGE;
		if (end > (off_t)size)
			end = (off_t)size;
		if (add_extents(j, fd, (uint64_t)at, (uint64_t)end, err) < 0)
			return -1;
		at = end;
	}
	return 0;
}

/* A file that is mostly holes. */
static int put_sparse(struct job *j, int fd, const char *path, uint64_t size,
		      struct tr_error *err)
{
	uint64_t at = 0;

	if (find_extents(j, fd, size, err) < 0)
		return tr_error_prefix(err, "%s", path);
	if (tr_tape_file(j->tape, path, size, j->extents, j->n, false, err) < 0)
		return -1;
	for (size_t i = 0; i < j->n; i++) {
		const struct tr_extent *e = &j->extents[i];

		if (tr_tape_skip(j->tape, e->offset - at, err) < 0)
			return -1;
		if (lseek(fd, (off_t)e->offset, SEEK_SET) < 0)
			return tr_fail_errno(err, "%s", path);
		if (put_data(j, fd, path, e->length, NULL, err) < 0)
			return -1;
		at = e->offset + e->length;
	}
	return tr_tape_skip(j->tape, size - at, err);
}

static int put_file(struct job *j, size_t i, const char *path,
		    struct tr_error *err)
{
	struct tr_list_item *it = &j->list.items[i];
	TR_AUTOCLOSE int fd = tr_listing_open(&j->list, i, err);
	struct tr_sha256 *h = NULL;

	if (fd >= 0 && it->is_sparse)
		return put_sparse(j, fd, path, it->size, err);
	if (fd < 0 || tr_tape_file(j->tape, path, it->size, NULL, 0,
				   it->kind == TR_MEMBER_CHUNK, err) < 0)
		return -1;
	if (it->has_later && !it->digested)
		h = tr_sha256_new();
	if (put_data(j, fd, path, it->size, h, err) < 0) {
		tr_sha256_free(h);
		return -1;
	}
	if (h) {
		tr_sha256_final(h, it->sha256);
		it->digested = true;
	}
	return 0;
}

static bool same_content(const struct tr_list_item *x,
			 const struct tr_list_item *y)
{
	if (x->dev == y->dev && x->ino == y->ino)
		return true;
	return x->digested && y->digested &&
	       memcmp(x->sha256, y->sha256, TR_SHA256_SIZE) == 0;
}

/*
 * The item already packed that holds the same bytes, or TR_NO_ITEM.  Only a
 * file with an earlier one of its size, and no digest, is read for that.
 */
static int find_twin(struct job *j, size_t i, size_t *twin,
		     struct tr_error *err)
{
	struct tr_list_item *it = &j->list.items[i];

	*twin = TR_NO_ITEM;
	if (it->kind != TR_MEMBER_FILE || it->earlier == TR_NO_ITEM)
		return 0;
	if (!it->digested) {
		TR_AUTOCLOSE int fd = tr_listing_open(&j->list, i, err);

		if (fd < 0 || tr_sha256_fd(fd, it->sha256, err) < 0)
			return -1;
		it->digested = true;
	}
	for (size_t e = it->earlier; e != TR_NO_ITEM;
	     e = j->list.items[e].earlier) {
		const struct tr_list_item *twin_of = &j->list.items[e];

		if (twin_of->is_link || twin_of->is_absent ||
		    !same_content(it, twin_of))
			continue;
		*twin = e;
		return 0;
	}
	return 0;
}

/* Does the receiver have it, or is it not wanted?  Without a digest nobody
 * could tell what is missing, so such a file always goes in. */
static bool leave_out(const struct job *j, const struct tr_list_item *it)
{
	if (it->kind != TR_MEMBER_FILE || !it->digested)
		return false;
	return tr_have_contains(j->o->exclude, it->sha256) ||
	       (j->o->only && !tr_have_contains(j->o->only, it->sha256));
}

static int put_item(struct job *j, size_t i, struct tr_error *err)
{
	struct tr_list_item *it = &j->list.items[i];
	char path[TR_MEMBER_PATH_MAX], target[TR_MEMBER_PATH_MAX];
	struct tr_member m;
	size_t twin;

	tr_listing_member(&j->list, i, &m);
	tr_member_path(&m, path);
	if (leave_out(j, it)) {
		it->is_absent = true;
		j->stats.absent_files++;
		j->stats.absent_bytes += it->size;
		return 0;
	}
	j->stats.members++;
	tell(j, path);
	if (tr_member_is_dir(&m))
		return tr_tape_dir(j->tape, path, err);
	if (find_twin(j, i, &twin, err) < 0)
		return -1;
	if (twin == TR_NO_ITEM)
		return put_file(j, i, path, err);
	it->is_link = true;
	j->stats.shared_bytes += it->size;
	tr_listing_member(&j->list, twin, &m);
	tr_member_path(&m, target);
	return tr_tape_link(j->tape, path, target, err);
}

static int pack(struct job *j, int out, struct tr_error *err)
{
	j->tape = tr_tape_create(out, j->o->compression,
				 names_are_ascii(&j->list), err);
	if (!j->tape)
		return -1;
	for (size_t i = 0; i < j->list.n; i++) {
		if (put_item(j, i, err) < 0) {
			tr_tape_abandon(j->tape);
			return -1;
		}
	}
	j->stats.traces = j->list.ntraces;
	return tr_tape_finish(j->tape, err);
}

int tr_pack_write(int out, const char *const *dirs, size_t n,
		  const struct tr_pack_options *o, struct tr_pack_stats *stats,
		  struct tr_error *err)
{
	struct job j = {.o = o};
	int r;

	if (tr_listing_init(&j.list, dirs, n, err) < 0)
		return -1;
	j.block = tr_alloc_buffer(BLOCK);
	r = pack(&j, out, err);
	*stats = j.stats;
	free(j.block);
	free(j.extents);
	tr_listing_release(&j.list);
	return r;
}
