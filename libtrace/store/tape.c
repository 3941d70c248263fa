/* Archives as sequences of members: the only user of libarchive. */
#include "libtrace/store/tape.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"
#include "libtrace/store/libarchive.h"
#include "libtrace/store/member.h"

#define BLOCK ((size_t)1 << 18)

/* Set before there is any archive. */
static const struct tr_libarchive *la;

static int failed(struct archive *a, int sys_errno, const char *what,
		  enum tr_code code, struct tr_error *err)
{
	const char *why = la->archive_error_string(a);

	if (sys_errno) {
		errno = sys_errno;
		return tr_fail_errno(err, "%s", what);
	}
	return tr_fail(err, code, "%s: %s", what, why ? why : "unknown error");
}

/*
 * ---- writing ----
 *
 * The pax writer's bytes go to fd, or through compressors.  gzip, xz and zstd
 * data may be concatenated, so the compressor can be another one for each run
 * of members: one that hardly tries for data that does not compress.
 */

struct tr_tape_out {
	struct archive *a;
	struct archive_entry *entry;
	int fd;
	int sys_errno;  /* of the write that failed, or 0 */
	enum tr_compression how;
	struct archive *filter; /* the compressor in use, or NULL */
	bool dense;             /* what it is for */
	uint8_t *zeroes;
};

static la_ssize_t to_fd(struct archive *a, void *arg, const void *data,
			size_t n)
{
	struct tr_tape_out *t = arg;

	if (tr_fault("pack-write") || tr_write_all(t->fd, data, n) < 0) {
		t->sys_errno = errno;
		la->archive_set_error(a, errno, "write error");
		return -1;
	}
	return (la_ssize_t)n;
}

/* The options leave out what depends on the time. */
static int add_filter(struct archive *f, enum tr_compression how, bool dense)
{
	switch (how) {
	case TR_COMPRESS_GZIP:
		return la->archive_write_add_filter_gzip(f) |
		       la->archive_write_set_options(f, dense ?
				"!timestamp,compression-level=1" :
				"!timestamp,compression-level=6");
	case TR_COMPRESS_XZ:
		return la->archive_write_add_filter_xz(f) |
		       la->archive_write_set_options(f, dense ?
				"compression-level=0" : "compression-level=6");
	default:
		return la->archive_write_add_filter_zstd(f) |
		       la->archive_write_set_options(f, dense ?
				"compression-level=1" : "compression-level=3");
	}
}

static int open_filter(struct tr_tape_out *t, bool dense)
{
	struct archive_entry *e = la->archive_entry_new();
	int r;

	t->dense = dense;
	t->filter = la->archive_write_new();
	la->archive_entry_set_pathname(e, "archive");
	la->archive_entry_set_filetype(e, AE_IFREG);
	r = la->archive_write_set_format_raw(t->filter) |
	    add_filter(t->filter, t->how, dense) |
	    la->archive_write_set_bytes_per_block(t->filter, 65536) |
	    la->archive_write_set_bytes_in_last_block(t->filter, 1) |
	    la->archive_write_open(t->filter, t, NULL, to_fd, NULL) |
	    la->archive_write_header(t->filter, e);
	la->archive_entry_free(e);
	return r == ARCHIVE_OK ? 0 : -1;
}

static int close_filter(struct tr_tape_out *t)
{
	int r = 0;

	if (t->filter && la->archive_write_close(t->filter) != ARCHIVE_OK)
		r = -1;
	la->archive_write_free(t->filter);
	t->filter = NULL;
	return r;
}

static la_ssize_t to_filter(struct archive *a, void *arg, const void *data,
			    size_t n)
{
	struct tr_tape_out *t = arg;

	if (la->archive_write_data(t->filter, data, n) == (la_ssize_t)n)
		return (la_ssize_t)n;
	la->archive_set_error(a, EIO, "%s", la->archive_error_string(t->filter));
	return -1;
}

static int use_filter(struct tr_tape_out *t, bool dense, struct tr_error *err)
{
	if (t->how == TR_COMPRESS_NONE || (t->filter && t->dense == dense))
		return 0;
	if (close_filter(t) == 0 && open_filter(t, dense) == 0)
		return 0;
	if (t->sys_errno)
		errno = t->sys_errno;
	return t->sys_errno ? tr_fail_errno(err, "archive") :
		tr_fail(err, TR_EUNSUPPORTED, "archive: cannot compress so");
}

/*
 * Restricted pax: plain ustar headers where they suffice.  Blocking and
 * padding are set because libarchive's defaults depend on what the output is
 * (archive_write_open(3)), and other names than ASCII ones are passed as bytes
 * because otherwise they depend on the locale.
 */
struct tr_tape_out *tr_tape_create(int fd, enum tr_compression how, bool ascii,
				   struct tr_error *err)
{
	bool plain = how == TR_COMPRESS_NONE;
	struct tr_tape_out *t;

	la = tr_libarchive(err);
	if (!la)
		return NULL;
	t = tr_alloc(sizeof *t);
	t->fd = fd;
	t->how = how;
	t->a = tr_need(la->archive_write_new());
	t->entry = tr_need(la->archive_entry_new());
	if (use_filter(t, false, err) < 0) {
		tr_tape_abandon(t);
		return NULL;
	}
	if (la->archive_write_set_format_pax_restricted(t->a) == ARCHIVE_OK &&
	    (ascii || la->archive_write_set_options(t->a, "hdrcharset=BINARY") ==
	     ARCHIVE_OK) &&
	    la->archive_write_set_bytes_per_block(t->a, 65536) == ARCHIVE_OK &&
	    la->archive_write_set_bytes_in_last_block(t->a, 1) == ARCHIVE_OK &&
	    la->archive_write_open(t->a, t, NULL, plain ? to_fd : to_filter,
			       NULL) == ARCHIVE_OK)
		return t;
	failed(t->a, t->sys_errno, "archive", TR_ESYS, err);
	tr_tape_abandon(t);
	return NULL;
}

static void new_entry(struct tr_tape_out *t, const char *path, bool dir)
{
	la->archive_entry_clear(t->entry);
	la->archive_entry_set_pathname(t->entry, path);
	la->archive_entry_set_filetype(t->entry, dir ? AE_IFDIR : AE_IFREG);
	la->archive_entry_set_perm(t->entry, dir ? 0700 : 0600);
	la->archive_entry_set_mtime(t->entry, 0, 0);
	la->archive_entry_set_uid(t->entry, 0);
	la->archive_entry_set_gid(t->entry, 0);
	la->archive_entry_set_size(t->entry, 0);
}

static int put_entry(struct tr_tape_out *t, const char *path,
		     struct tr_error *err)
{
	if (la->archive_write_header(t->a, t->entry) != ARCHIVE_OK)
		return failed(t->a, t->sys_errno, path, TR_ESYS, err);
	return 0;
}

int tr_tape_dir(struct tr_tape_out *t, const char *path, struct tr_error *err)
{
	new_entry(t, path, true);
	return put_entry(t, path, err);
}

int tr_tape_link(struct tr_tape_out *t, const char *path, const char *target,
		 struct tr_error *err)
{
	new_entry(t, path, false);
	la->archive_entry_set_hardlink(t->entry, target);
	return put_entry(t, path, err);
}

int tr_tape_file(struct tr_tape_out *t, const char *path, uint64_t size,
		 const struct tr_extent *extents, size_t n, bool dense,
		 struct tr_error *err)
{
	if (use_filter(t, dense, err) < 0)
		return -1;
	new_entry(t, path, false);
	la->archive_entry_set_size(t->entry, (la_int64_t)size);
	for (size_t i = 0; i < n; i++)
		la->archive_entry_sparse_add_entry(t->entry,
					       (la_int64_t)extents[i].offset,
					       (la_int64_t)extents[i].length);
	return put_entry(t, path, err);
}

int tr_tape_put(struct tr_tape_out *t, const void *data, size_t n,
		struct tr_error *err)
{
	if (la->archive_write_data(t->a, data, n) != (la_ssize_t)n)
		return failed(t->a, t->sys_errno, "archive", TR_ESYS, err);
	return 0;
}

/* libarchive wants a file's bytes all, and drops those in holes. */
int tr_tape_skip(struct tr_tape_out *t, uint64_t n, struct tr_error *err)
{
	const size_t block = 64 * BLOCK; /* never read, so never there */

	if (!t->zeroes)
		t->zeroes = tr_alloc(block);
	while (n > 0) {
		size_t want = n < block ? (size_t)n : block;

		if (tr_tape_put(t, t->zeroes, want, err) < 0)
			return -1;
		n -= want;
	}
	return 0;
}

static void release(struct tr_tape_out *t)
{
	la->archive_write_free(t->a);
	la->archive_write_free(t->filter);
	la->archive_entry_free(t->entry);
	free(t->zeroes);
	free(t);
}

int tr_tape_finish(struct tr_tape_out *t, struct tr_error *err)
{
	int r = 0;

	if (la->archive_write_close(t->a) != ARCHIVE_OK)
		r = failed(t->a, t->sys_errno, "archive", TR_ESYS, err);
	else if (close_filter(t) < 0) {
		errno = t->sys_errno ? t->sys_errno : EIO;
		r = tr_fail_errno(err, "archive");
	}
	release(t);
	return r;
}

void tr_tape_abandon(struct tr_tape_out *t)
{
	/* Without this, freeing would still write the end of the archive. */
	la->archive_write_fail(t->a);
	if (t->filter)
		la->archive_write_fail(t->filter);
	release(t);
}

/* ---- reading ---- */

struct tr_tape_in {
	struct archive *a;
	struct archive_entry *entry;
	int fd;
	int sys_errno; /* of the read that failed, or 0 */
	bool seek;
	uint8_t *raw;  /* BLOCK bytes */
	uint64_t members;
};

static la_ssize_t on_read(struct archive *a, void *arg, const void **data)
{
	struct tr_tape_in *t = arg;
	ssize_t n;

	*data = t->raw;
	do
		n = read(t->fd, t->raw, BLOCK);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		t->sys_errno = errno;
		la->archive_set_error(a, errno, "read error");
	}
	return n;
}

/* How far could be skipped; the rest is read (archive_read_open(3)). */
static la_int64_t on_skip(struct archive *a, void *arg, la_int64_t n)
{
	struct tr_tape_in *t = arg;
	off_t now, end;

	(void)a;
	now = lseek(t->fd, 0, SEEK_CUR);
	if (now < 0 || (end = lseek(t->fd, 0, SEEK_END)) < 0)
		return 0;
	if (n > end - now)
		n = end > now ? end - now : 0;
	return lseek(t->fd, now + n, SEEK_SET) < 0 ? 0 : n;
}

/* Only what tr_tape_create writes and what people recompress it with. */
static int set_up(struct tr_tape_in *t, bool raw, struct tr_error *err)
{
	int format;

	if (la->archive_read_support_filter_none(t->a) != ARCHIVE_OK ||
	    la->archive_read_support_filter_gzip(t->a) != ARCHIVE_OK ||
	    la->archive_read_support_filter_xz(t->a) != ARCHIVE_OK ||
	    la->archive_read_support_filter_zstd(t->a) != ARCHIVE_OK)
		return failed(t->a, 0, "archive", TR_EUNSUPPORTED, err);
	format = raw ? la->archive_read_support_format_raw(t->a) :
		       la->archive_read_support_format_tar(t->a);
	if (format != ARCHIVE_OK)
		return failed(t->a, 0, "archive", TR_EUNSUPPORTED, err);
	if (la->archive_read_open2(t->a, t, NULL, on_read,
			       t->seek ? on_skip : NULL, NULL) != ARCHIVE_OK)
		return failed(t->a, t->sys_errno, "not a trace archive",
			      TR_ECORRUPT, err);
	return 0;
}

static struct tr_tape_in *open_as(int fd, bool seek, bool raw,
				  struct tr_error *err)
{
	struct tr_tape_in *t;

	la = tr_libarchive(err);
	if (!la)
		return NULL;
	t = tr_alloc(sizeof *t);
	t->fd = fd;
	t->seek = seek;
	t->a = tr_need(la->archive_read_new());
	t->raw = tr_alloc(BLOCK);
	if (set_up(t, raw, err) == 0)
		return t;
	tr_tape_close(t);
	return NULL;
}

struct tr_tape_in *tr_tape_open(int fd, bool seek, struct tr_error *err)
{
	return open_as(fd, seek, false, err);
}

/* All of the one member that libarchive's raw format has. */
static int decompress(struct tr_tape_in *t, int out, uint64_t max,
		      struct tr_error *err)
{
	struct tr_tape_member m;
	uint64_t offset;
	const void *data;
	size_t n;
	int r = tr_tape_next(t, &m, err);

	if (r < 0 || la->archive_filter_code(t->a, 0) == ARCHIVE_FILTER_NONE)
		return r < 0 ? -1 : 0;
	while ((r = tr_tape_data(t, &data, &n, &offset, err)) > 0) {
		if (n > max)
			return tr_fail(err, TR_EHOSTILE, "the archive expands "
				       "to more than the limit");
		max -= n;
		if (tr_fault("decompress-write") ||
		    tr_write_all(out, data, n) < 0)
			return tr_fail_errno(err, "expanding the archive");
	}
	return r < 0 ? -1 : 1;
}

int tr_tape_decompress(int in, int out, uint64_t max, struct tr_error *err)
{
	struct tr_tape_in *t = open_as(in, true, true, err);
	int r;

	if (!t)
		return -1;
	r = decompress(t, out, max, err);
	tr_tape_close(t);
	return r;
}

void tr_tape_close(struct tr_tape_in *t)
{
	la->archive_read_free(t->a);
	free(t->raw);
	free(t);
}

/*
 * libarchive takes the end of the input for the end of the archive, so a cut
 * between members would go unseen; the end marker, which it consumes, tells.
 */
static int check_end(struct tr_tape_in *t, struct tr_error *err)
{
	if (t->members == 0)
		return tr_fail(err, TR_ECORRUPT, "the archive is empty");
	if (la->archive_filter_bytes(t->a, 0) <=
	    la->archive_read_header_position(t->a))
		return tr_fail(err, TR_ECORRUPT, "the archive is cut off after "
			       "%" PRIu64 " members", t->members);
	return 0;
}

static enum tr_tape_type type_of(struct archive_entry *e)
{
	if (la->archive_entry_hardlink(e))
		return TR_TAPE_LINK;
	switch (la->archive_entry_filetype(e)) {
	case AE_IFREG:
		return TR_TAPE_FILE;
	case AE_IFDIR:
		return TR_TAPE_DIR;
	default:
		return TR_TAPE_OTHER;
	}
}

/*
 * ARCHIVE_WARN says that a name has no form in this locale, or that an
 * attribute is odd: names are the caller's to check and attributes not used.
 */
int tr_tape_next(struct tr_tape_in *t, struct tr_tape_member *m,
		 struct tr_error *err)
{
	int r = la->archive_read_next_header(t->a, &t->entry);
	la_int64_t size;

	if (r == ARCHIVE_EOF)
		return check_end(t, err);
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return failed(t->a, t->sys_errno, "archive", TR_ECORRUPT, err);
	if (++t->members > TR_MAX_MEMBERS)
		return tr_fail(err, TR_EHOSTILE, "more than %u members in the "
			       "archive", TR_MAX_MEMBERS);
	m->path = la->archive_entry_pathname(t->entry);
	if (!m->path)
		m->path = la->archive_entry_pathname_utf8(t->entry);
	if (!m->path)
		return tr_fail(err, TR_EHOSTILE, "member %" PRIu64 " has no "
			       "readable name", t->members);
	size = la->archive_entry_size(t->entry);
	if (size < 0)
		return tr_fail(err, TR_EHOSTILE, "member %" PRIu64 " has a "
			       "negative size", t->members);
	m->type = type_of(t->entry);
	m->target = la->archive_entry_hardlink(t->entry);
	m->size = (uint64_t)size;
	m->sparse = la->archive_entry_sparse_count(t->entry) > 0;
	return 1;
}

int tr_tape_data(struct tr_tape_in *t, const void **data, size_t *n,
		 uint64_t *offset, struct tr_error *err)
{
	la_int64_t at;
	int r = la->archive_read_data_block(t->a, data, n, &at);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return failed(t->a, t->sys_errno,
			      la->archive_entry_pathname(t->entry), TR_ECORRUPT,
			      err);
	if (at < 0)
		return tr_fail(err, TR_EHOSTILE, "member %" PRIu64 " has data "
			       "before its start", t->members);
	*offset = (uint64_t)at;
	return 1;
}

uint64_t tr_tape_members(const struct tr_tape_in *t)
{
	return t->members;
}

bool tr_tape_position(const struct tr_tape_in *t, uint64_t *at)
{
	la_int64_t n = la->archive_filter_bytes(t->a, 0);

	*at = (uint64_t)n;
	return n >= 0 && la->archive_filter_code(t->a, 0) == ARCHIVE_FILTER_NONE;
}
