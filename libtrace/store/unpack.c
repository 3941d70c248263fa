/*
 * Reading packed traces.  Where what comes out may go is decided by member.c
 * and tree.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/hasher.h"
#include "libtrace/base/io.h"
#include "libtrace/store/archive.h"
#include "libtrace/store/fetch.h"
#include "libtrace/store/tape.h"
#include "libtrace/store/tree.h"

#define DEFAULT_MAX_BYTES ((uint64_t)64 << 30)

/* One unpacking under way. */
struct job {
	struct tr_tape_in *tape;
	const struct tr_unpack_options *o;
	struct tr_pack_stats stats;
	struct tr_tree *tree;
	struct tr_fetcher fetcher;
	struct tr_hasher *hasher;
	uint64_t room; /* bytes that may still be written */
};

static void tell(struct job *j, const char *member)
{
	const struct tr_pack_progress p = {member, j->stats.bytes};

	if (j->o->progress)
		j->o->progress(j->o->arg, &p);
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

/* The member's name in its parts, and that it is what the name says. */
static int parse(const struct tr_tape_member *in, struct tr_member *m,
		 struct tr_error *err)
{
	if (!tr_member_parse(in->path, m))
		return hostile(in->path, "not a name that a packed trace can "
			       "hold", err);
	if (in->type == TR_TAPE_LINK)
		return 0;
	if (in->type != (tr_member_is_dir(m) ? TR_TAPE_DIR : TR_TAPE_FILE))
		return hostile(in->path, "a member of the wrong type", err);
	if (in->sparse && m->kind != TR_MEMBER_FILE)
		return hostile(in->path, "a file with holes", err);
	return 0;
}

/* What a link member is, and to what. */
static int parse_link(const struct tr_tape_member *in,
		      const struct tr_member *m, struct tr_member *of,
		      struct tr_error *err)
{
	if (!tr_member_parse(in->target, of) || of->kind != TR_MEMBER_FILE ||
	    m->kind != TR_MEMBER_FILE)
		return hostile(in->path, "a hard link that is not from one "
			       "stored file to another", err);
	if (in->size != 0)
		return hostile(in->path, "a hard link with content", err);
	return 0;
}

/* The content of the current member to fd. */
static int take_data(struct job *j, int fd, const char *path,
		     struct tr_hasher *h, struct tr_error *err)
{
	uint64_t offset, done = 0;
	const void *data;
	size_t n;
	int r;

	while ((r = tr_tape_data(j->tape, &data, &n, &offset, err)) > 0) {
		if (offset != done)
			return hostile(path, "a file with holes", err);
		if (n > j->room)
			return limit_exceeded(path, err);
		if (h)
			tr_hasher_update(h, data, n);
		if (tr_fault("unpack-write") || tr_write_all(fd, data, n) < 0)
			return tr_fail_errno(err, "%s: write", path);
		done += n;
		j->room -= n;
		j->stats.bytes += n;
		tell(j, path);
	}
	return r;
}

/*
 * A file that the trace says is mostly holes, of the size it says: what is
 * written is what the archive has, and holes are not read again.
 */
static int take_sparse(struct job *j, int fd, const struct tr_stored *s,
		       const char *path, uint8_t sha256[TR_SHA256_SIZE],
		       struct tr_error *err)
{
	uint64_t offset;
	const void *data;
	size_t n;
	int r;

	while ((r = tr_tape_data(j->tape, &data, &n, &offset, err)) > 0) {
		if (offset > s->size || n > s->size - offset)
			return hostile(path, "data behind its end", err);
		if (n > j->room)
			return limit_exceeded(path, err);
		if (tr_fault("unpack-write") ||
		    tr_pwrite_all(fd, data, n, (off_t)offset) < 0)
			return tr_fail_errno(err, "%s: write", path);
		j->room -= n;
		j->stats.bytes += n;
		tell(j, path);
	}
	if (r < 0)
		return -1;
	if (ftruncate(fd, (off_t)s->size) < 0)
		return tr_fail_errno(err, "%s", path);
	return tr_sha256_pages_fd(fd, sha256, err);
}

static int take_stored(struct job *j, int fd, const struct tr_member *m,
		       const struct tr_stored *s, const char *path,
		       uint64_t size, struct tr_error *err)
{
	enum tr_fetched how = TR_FETCH_NONE;
	uint8_t sha256[TR_SHA256_SIZE];

	if (s && tr_fetch(&j->fetcher, fd, s, NULL, &how, err) < 0)
		return tr_error_prefix(err, "%s", path);
	if (how == TR_FETCH_CLONED) {
		j->stats.cloned_bytes += s->size;
		return tr_tree_written(j->tree, m, s->sha256, err);
	}
	if (s && s->pages) {
		if (take_sparse(j, fd, s, path, sha256, err) < 0)
			return -1;
		return tr_tree_written(j->tree, m, sha256, err);
	}
	tr_hasher_begin(j->hasher, size);
	if (take_data(j, fd, path, j->hasher, err) < 0)
		return -1;
	tr_hasher_final(j->hasher, sha256);
	return tr_tree_written(j->tree, m, sha256, err);
}

static int take_file(struct job *j, const struct tr_tape_member *in,
		     const struct tr_member *m, struct tr_error *err)
{
	const struct tr_stored *s;
	TR_AUTOCLOSE int fd = -1;

	if (in->size > j->room && !in->sparse)
		return limit_exceeded(in->path, err);
	fd = tr_tree_create(j->tree, m, &s, err);
	if (fd < 0)
		return -1;
	if (in->sparse && (!s || !s->pages || s->size != in->size))
		return hostile(in->path, "a file with holes, which the trace "
			       "does not say", err);
	if (m->kind == TR_MEMBER_FILE)
		return take_stored(j, fd, m, s, in->path, in->size, err);
	return take_data(j, fd, in->path, NULL, err);
}

static int take_link(struct job *j, const struct tr_tape_member *in,
		     const struct tr_member *m, struct tr_error *err)
{
	struct tr_member of;
	uint64_t size;

	if (parse_link(in, m, &of, err) < 0 ||
	    tr_tree_share(j->tree, m, &of, &size, &j->room, err) < 0)
		return -1;
	j->stats.shared_bytes += size;
	return 0;
}

static int take_member(struct job *j, const struct tr_tape_member *in,
		       struct tr_error *err)
{
	struct tr_member m;

	tell(j, in->path);
	if (parse(in, &m, err) < 0)
		return -1;
	if (in->type == TR_TAPE_LINK)
		return take_link(j, in, &m, err);
	if (tr_member_is_dir(&m))
		return tr_tree_mkdir(j->tree, &m, err);
	return take_file(j, in, &m, err);
}

static int unpack(struct job *j, int in, char ***names, struct tr_error *err)
{
	struct tr_tape_member m;
	int r;

	j->tape = tr_tape_open(in, false, err);
	if (!j->tape)
		return -1;
	while ((r = tr_tape_next(j->tape, &m, err)) > 0)
		if (take_member(j, &m, err) < 0)
			return -1;
	if (r < 0 || tr_tree_commit(j->tree, &j->fetcher, !j->o->temporary,
				    &j->room, &j->stats.cloned_bytes, names,
				    err) < 0)
		return -1;
	for (char **n = *names; *n; n++)
		j->stats.traces++;
	j->stats.members = tr_tape_members(j->tape);
	return 0;
}

int tr_pack_extract(int in, const char *target,
		    const struct tr_unpack_options *o, char ***names,
		    struct tr_pack_stats *stats, struct tr_error *err)
{
	struct job j = {
		.o = o, .fetcher = {.have = o->have, .places = o->places},
		.room = o->max_bytes ? o->max_bytes : DEFAULT_MAX_BYTES,
	};
	int r;

	j.tree = tr_tree_open(target, err);
	if (!j.tree)
		return -1;
	j.hasher = tr_hasher_new();
	r = unpack(&j, in, names, err);
	*stats = j.stats;
	tr_tree_close(j.tree);
	tr_fetcher_release(&j.fetcher);
	tr_hasher_free(j.hasher);
	if (j.tape)
		tr_tape_close(j.tape);
	return r;
}

/* ---- listing ---- */

static int list_member(const struct tr_tape_member *in, tr_pack_list_fn *fn,
		       void *arg, struct tr_error *err)
{
	struct tr_pack_member out = {.name = in->path, .size = in->size,
				     .type = "file"};
	struct tr_member m, of;

	if (parse(in, &m, err) < 0)
		return -1;
	if (in->type == TR_TAPE_LINK) {
		if (parse_link(in, &m, &of, err) < 0)
			return -1;
		out.type = "link";
		out.target = in->target;
	} else if (tr_member_is_dir(&m)) {
		out.type = "directory";
		out.size = 0;
	}
	out.trace = m.trace;
	return fn(arg, &out);
}

int tr_pack_list(int in, tr_pack_list_fn *fn, void *arg, struct tr_error *err)
{
	struct tr_tape_in *tape = tr_tape_open(in, true, err);
	struct tr_tape_member m;
	int r;

	if (!tape)
		return -1;
	while ((r = tr_tape_next(tape, &m, err)) > 0) {
		r = list_member(&m, fn, arg, err);
		if (r != 0)
			break;
	}
	tr_tape_close(tape);
	return r < 0 ? -1 : 0;
}
