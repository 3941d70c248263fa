/*
 * Packed traces: the only user of libarchive.  What goes in is listed by
 * listing.c; where what comes out may go is decided by member.c and tree.c.
 */
#include "libtrace/store/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"
#include "libtrace/base/sha256.h"
#include "libtrace/store/listing.h"
#include "libtrace/store/tree.h"

#define BLOCK ((size_t)1 << 18)
#define DEFAULT_MAX_BYTES ((uint64_t)64 << 30)

/* One packing or unpacking under way. */
struct job {
	struct archive *a;
	struct archive_entry *entry;
	int fd;         /* the archive */
	int sys_errno;  /* of the call on fd that failed, or 0 */
	uint8_t *block; /* BLOCK bytes, for contents */
	uint8_t *raw;   /* BLOCK bytes, for what is read from fd */
	tr_pack_progress_fn *progress;
	void *arg;
	struct tr_pack_stats stats;
	struct tr_listing list; /* packing */
	struct tr_tree *tree;   /* unpacking */
	uint64_t room;          /* bytes that may still be written */
	uint64_t members;
};

static void tell(struct job *j, const char *member)
{
	const struct tr_pack_progress p = {member, j->stats.bytes};

	if (j->progress)
		j->progress(j->arg, &p);
}

static int archive_failed(struct job *j, const char *what, enum tr_code code,
			  struct tr_error *err)
{
	const char *why = archive_error_string(j->a);

	if (j->sys_errno) {
		errno = j->sys_errno;
		return tr_fail_errno(err, "%s", what);
	}
	return tr_fail(err, code, "%s: %s", what, why ? why : "unknown error");
}

/* ---- packing ---- */

static la_ssize_t on_write(struct archive *a, void *arg, const void *data,
			   size_t n)
{
	struct job *j = arg;

	if (tr_fault("pack-write") || tr_write_all(j->fd, data, n) < 0) {
		j->sys_errno = errno;
		archive_set_error(a, errno, "write error");
		return -1;
	}
	return (la_ssize_t)n;
}

static bool names_are_ascii(const struct tr_listing *l)
{
	for (size_t i = 0; i < l->ntraces; i++)
		for (const char *p = l->traces[i].name; *p; p++)
			if ((unsigned char)*p >= 0x80)
				return false;
	return true;
}

/*
 * Restricted pax: plain ustar headers where they suffice.  Blocking and
 * padding are set because libarchive's defaults depend on what the output is
 * (archive_write_open(3)), and other names than ASCII ones are passed as bytes
 * because otherwise they depend on the locale.
 */
static int start_packing(struct job *j, struct tr_error *err)
{
	const char *charset = names_are_ascii(&j->list) ? NULL :
							  "hdrcharset=BINARY";

	j->a = archive_write_new();
	j->entry = archive_entry_new();
	j->block = tr_alloc(BLOCK);
	if (archive_write_set_format_pax_restricted(j->a) != ARCHIVE_OK ||
	    (charset &&
	     archive_write_set_options(j->a, charset) != ARCHIVE_OK) ||
	    archive_write_set_bytes_per_block(j->a, 65536) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(j->a, 1) != ARCHIVE_OK ||
	    archive_write_open(j->a, j, NULL, on_write, NULL) != ARCHIVE_OK)
		return archive_failed(j, "archive", TR_ESYS, err);
	return 0;
}

static int put_header(struct job *j, const struct tr_member *m, uint64_t size,
		      const struct tr_member *link, struct tr_error *err)
{
	char path[TR_MEMBER_PATH_MAX], target[TR_MEMBER_PATH_MAX];
	bool dir = tr_member_is_dir(m);

	tr_member_path(m, path);
	archive_entry_clear(j->entry);
	archive_entry_set_pathname(j->entry, path);
	archive_entry_set_filetype(j->entry, dir ? AE_IFDIR : AE_IFREG);
	archive_entry_set_perm(j->entry, dir ? 0700 : 0600);
	archive_entry_set_mtime(j->entry, 0, 0);
	archive_entry_set_uid(j->entry, 0);
	archive_entry_set_gid(j->entry, 0);
	archive_entry_set_size(j->entry, (la_int64_t)size);
	if (link) {
		tr_member_path(link, target);
		archive_entry_set_hardlink(j->entry, target);
	}
	if (archive_write_header(j->a, j->entry) != ARCHIVE_OK)
		return archive_failed(j, path, TR_ESYS, err);
	j->stats.members++;
	tell(j, path);
	return 0;
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
		if (archive_write_data(j->a, j->block, want) !=
		    (la_ssize_t)want)
			return archive_failed(j, path, TR_ESYS, err);
		size -= want;
		j->stats.bytes += want;
		tell(j, path);
	}
	return 0;
}

static int put_file(struct job *j, size_t i, struct tr_error *err)
{
	struct tr_list_item *it = &j->list.items[i];
	TR_AUTOCLOSE int fd = tr_listing_open(&j->list, i, err);
	struct tr_sha256 *h = NULL;
	char path[TR_MEMBER_PATH_MAX];
	struct tr_member m;

	if (fd < 0)
		return -1;
	tr_listing_member(&j->list, i, &m);
	tr_member_path(&m, path);
	if (put_header(j, &m, it->size, NULL, err) < 0)
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
 * file with an earlier one of its size is read for that.
 */
static int find_twin(struct job *j, size_t i, size_t *twin,
		     struct tr_error *err)
{
	struct tr_list_item *it = &j->list.items[i];

	*twin = TR_NO_ITEM;
	if (it->kind != TR_MEMBER_FILE || it->earlier == TR_NO_ITEM)
		return 0;
	TR_AUTOCLOSE int fd = tr_listing_open(&j->list, i, err);

	if (fd < 0 || tr_sha256_fd(fd, it->sha256, err) < 0)
		return -1;
	it->digested = true;
	for (size_t e = it->earlier; e != TR_NO_ITEM;
	     e = j->list.items[e].earlier) {
		if (j->list.items[e].is_link ||
		    !same_content(it, &j->list.items[e]))
			continue;
		*twin = e;
		return 0;
	}
	return 0;
}

static int put_item(struct job *j, size_t i, struct tr_error *err)
{
	struct tr_list_item *it = &j->list.items[i];
	struct tr_member m, first;
	size_t twin;

	tr_listing_member(&j->list, i, &m);
	if (tr_member_is_dir(&m))
		return put_header(j, &m, 0, NULL, err);
	if (find_twin(j, i, &twin, err) < 0)
		return -1;
	if (twin == TR_NO_ITEM)
		return put_file(j, i, err);
	it->is_link = true;
	j->stats.shared_bytes += it->size;
	tr_listing_member(&j->list, twin, &first);
	return put_header(j, &m, 0, &first, err);
}

static int pack(struct job *j, struct tr_error *err)
{
	if (start_packing(j, err) < 0)
		return -1;
	for (size_t i = 0; i < j->list.n; i++)
		if (put_item(j, i, err) < 0)
			return -1;
	if (archive_write_close(j->a) != ARCHIVE_OK)
		return archive_failed(j, "archive", TR_ESYS, err);
	j->stats.traces = j->list.ntraces;
	return 0;
}

int tr_pack_write(int out, const char *const *dirs, size_t n,
		  tr_pack_progress_fn *progress, void *arg,
		  struct tr_pack_stats *stats, struct tr_error *err)
{
	struct job j = {.fd = out, .progress = progress, .arg = arg};
	int r;

	if (tr_listing_init(&j.list, dirs, n, err) < 0)
		return -1;
	r = pack(&j, err);
	*stats = j.stats;
	/* Without this, freeing would still write the end of the archive. */
	if (r < 0)
		archive_write_fail(j.a);
	archive_write_free(j.a);
	archive_entry_free(j.entry);
	free(j.block);
	tr_listing_release(&j.list);
	return r;
}

/* ---- unpacking ---- */

static la_ssize_t on_read(struct archive *a, void *arg, const void **data)
{
	struct job *j = arg;
	ssize_t n;

	*data = j->raw;
	do
		n = read(j->fd, j->raw, BLOCK);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		j->sys_errno = errno;
		archive_set_error(a, errno, "read error");
	}
	return n;
}

/* Only what pack writes and what people recompress it with. */
static int start_unpacking(struct job *j, struct tr_error *err)
{
	j->a = archive_read_new();
	j->block = tr_alloc(BLOCK);
	j->raw = tr_alloc(BLOCK);
	if (archive_read_support_filter_none(j->a) != ARCHIVE_OK ||
	    archive_read_support_filter_gzip(j->a) != ARCHIVE_OK ||
	    archive_read_support_filter_xz(j->a) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(j->a) != ARCHIVE_OK ||
	    archive_read_support_format_tar(j->a) != ARCHIVE_OK)
		return archive_failed(j, "archive", TR_EUNSUPPORTED, err);
	if (archive_read_open(j->a, j, NULL, on_read, NULL) != ARCHIVE_OK)
		return archive_failed(j, "not a trace archive", TR_ECORRUPT,
				      err);
	return 0;
}

static int hostile(const char *path, const char *why, struct tr_error *err)
{
	TR_AUTOFREE char *safe = tr_strdup(path);

	for (char *p = safe; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return tr_fail(err, TR_EHOSTILE, "%.300s: %s", safe, why);
}

static int limit_exceeded(const char *path, struct tr_error *err)
{
	return hostile(path, "the archive unpacks to more than the limit; "
		       "raise it if you trust the archive", err);
}

/* The content of the current member to fd. */
static int take_data(struct job *j, int fd, const char *path,
		     struct tr_sha256 *h, struct tr_error *err)
{
	la_ssize_t n;

	while ((n = archive_read_data(j->a, j->block, BLOCK)) > 0) {
		if ((uint64_t)n > j->room)
			return limit_exceeded(path, err);
		if (tr_fault("unpack-write") ||
		    tr_write_all(fd, j->block, (size_t)n) < 0)
			return tr_fail_errno(err, "%s: write", path);
		if (h)
			tr_sha256_update(h, j->block, (size_t)n);
		j->room -= (uint64_t)n;
		j->stats.bytes += (uint64_t)n;
		tell(j, path);
	}
	return n == 0 ? 0 : archive_failed(j, path, TR_ECORRUPT, err);
}

static int take_file(struct job *j, const struct tr_member *m,
		     const char *path, struct tr_error *err)
{
	TR_AUTOCLOSE int fd = tr_tree_create(j->tree, m, err);
	uint8_t sha256[TR_SHA256_SIZE];
	struct tr_sha256 *h = NULL;

	if (fd < 0)
		return -1;
	if (m->kind == TR_MEMBER_FILE)
		h = tr_sha256_new();
	if (take_data(j, fd, path, h, err) < 0) {
		tr_sha256_free(h);
		return -1;
	}
	if (h) {
		tr_sha256_final(h, sha256);
		tr_tree_written(j->tree, m, sha256);
	}
	return 0;
}

static int take_link(struct job *j, const struct tr_member *m,
		     const char *path, const char *target,
		     struct tr_error *err)
{
	struct tr_member of;
	uint64_t size;

	if (!tr_member_parse(target, &of) || of.kind != TR_MEMBER_FILE ||
	    m->kind != TR_MEMBER_FILE)
		return hostile(path, "a hard link that is not from one stored "
			       "file to another", err);
	if (archive_entry_size(j->entry) != 0)
		return hostile(path, "a hard link with content", err);
	if (tr_tree_share(j->tree, m, &of, &size, &j->room, err) < 0)
		return -1;
	j->stats.shared_bytes += size;
	return 0;
}

static int take_member(struct job *j, const char *path, struct tr_error *err)
{
	const char *link = archive_entry_hardlink(j->entry);
	mode_t type = archive_entry_filetype(j->entry);
	la_int64_t size = archive_entry_size(j->entry);
	struct tr_member m;

	if (!tr_member_parse(path, &m))
		return hostile(path, "not a name that a packed trace can hold",
			       err);
	if (link)
		return take_link(j, &m, path, link, err);
	if (type != (tr_member_is_dir(&m) ? AE_IFDIR : AE_IFREG))
		return hostile(path, "a member of the wrong type", err);
	if (size < 0 || (uint64_t)size > j->room)
		return limit_exceeded(path, err);
	if (tr_member_is_dir(&m))
		return tr_tree_mkdir(j->tree, &m, err);
	return take_file(j, &m, path, err);
}

/*
 * The next member's path, in *path; 0 at the end.  ARCHIVE_WARN says that a
 * name has no form in this locale, or that an attribute is odd: the name is
 * checked and attributes are not used.
 */
static int next_member(struct job *j, const char **path, struct tr_error *err)
{
	int r = archive_read_next_header(j->a, &j->entry);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return archive_failed(j, "archive", TR_ECORRUPT, err);
	if (++j->members > TR_MAX_MEMBERS)
		return tr_fail(err, TR_EHOSTILE, "more than %u members in the "
			       "archive", TR_MAX_MEMBERS);
	*path = archive_entry_pathname(j->entry);
	if (!*path)
		*path = archive_entry_pathname_utf8(j->entry);
	if (!*path)
		return hostile("archive", "a member without a readable name",
			       err);
	tell(j, *path);
	return 1;
}

/*
 * libarchive takes the end of the input for the end of the archive, so a cut
 * between members would go unseen; the end marker, which it consumes, tells.
 */
static int check_end(struct job *j, struct tr_error *err)
{
	if (j->members == 0)
		return tr_fail(err, TR_ECORRUPT, "the archive is empty");
	if (archive_filter_bytes(j->a, 0) <= archive_read_header_position(j->a))
		return tr_fail(err, TR_ECORRUPT, "the archive is cut off after "
			       "%" PRIu64 " members", j->members);
	return 0;
}

static int unpack(struct job *j, char ***names, struct tr_error *err)
{
	const char *path = "";
	int r;

	if (start_unpacking(j, err) < 0)
		return -1;
	while ((r = next_member(j, &path, err)) > 0)
		if (take_member(j, path, err) < 0)
			return -1;
	if (r < 0 || check_end(j, err) < 0)
		return -1;
	if (tr_tree_commit(j->tree, names, err) < 0)
		return -1;
	for (char **n = *names; *n; n++)
		j->stats.traces++;
	j->stats.members = j->members;
	return 0;
}

int tr_pack_extract(int in, const char *target, uint64_t max_bytes,
		    tr_pack_progress_fn *progress, void *arg, char ***names,
		    struct tr_pack_stats *stats, struct tr_error *err)
{
	struct job j = {
		.fd = in, .progress = progress, .arg = arg,
		.room = max_bytes ? max_bytes : DEFAULT_MAX_BYTES,
	};
	int r;

	j.tree = tr_tree_open(target, err);
	if (!j.tree)
		return -1;
	r = unpack(&j, names, err);
	*stats = j.stats;
	tr_tree_close(j.tree);
	archive_read_free(j.a);
	free(j.block);
	free(j.raw);
	return r;
}
