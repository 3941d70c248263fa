/*
 * Checking what is beside the chunks: stored files against the sizes and
 * digests recorded for them, and names that do not belong in a trace.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/base/sha256.h"
#include "libtrace/format/checker.h"
#include "libtrace/format/chunk.h"

/* "files/4294967295" */
#define FILE_NAME_SIZE 24
#define PAGE 4096u

static int digest(const struct tr_check_file *f, const struct tr_part *part,
		  uint8_t sha256[TR_SHA256_SIZE], struct tr_error *err)
{
	if (f->pages && part->start == 0)
		return tr_sha256_pages_fd(part->fd, sha256, err);
	return tr_sha256_range(part->fd, (off_t)part->start, part->size, sha256,
			       err);
}

/*
 * Where the original has the recorded digest still: the first page in which
 * the stored file differs from it, and in how many it does.  0: not known.
 */
static uint64_t compare_original(const struct tr_check_file *f,
				 const struct tr_part *part, uint64_t *first)
{
	TR_AUTOCLOSE int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
				   O_NONBLOCK);
	struct tr_part whole = {.fd = fd};
	uint8_t sha256[TR_SHA256_SIZE], a[PAGE], b[PAGE];
	struct tr_error ignored;
	struct stat st;
	uint64_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	whole.size = (uint64_t)st.st_size;
	if (digest(f, &whole, sha256, &ignored) < 0 ||
	    memcmp(sha256, f->sha256, sizeof sha256) != 0)
		return 0;
	for (uint64_t at = 0; at < whole.size && at < part->size; at += PAGE) {
		size_t room = part->size - at < PAGE ? part->size - at : PAGE;
		ssize_t have = tr_pread_full(fd, a, room, (off_t)at);

		if (have < 0 ||
		    tr_pread_full(part->fd, b, room,
				  (off_t)(part->start + at)) != have)
			return n;
		if (memcmp(a, b, (size_t)have) != 0 && n++ == 0)
			*first = at;
	}
	return n;
}

static void report_change(struct tr_checker *c, const struct tr_check_file *f,
			  const char *name, const struct tr_part *part)
{
	uint64_t first = 0, n = compare_original(f, part, &first);
	char pages[96] = "";

	if (n)
		snprintf(pages, sizeof pages, "; %" PRIu64 " page%s not the "
			 "original's, the first at offset 0x%" PRIx64, n,
			 n == 1 ? " is" : "s are", first);
	tr_checker_report(c, TR_ECORRUPT, name, n ? (int64_t)first : -1,
			  f->event, "%s: changed since it was recorded: the "
			  "SHA-256 differs%s", f->path, pages);
}

static void check_content(struct tr_checker *c, const struct tr_check_file *f,
			  const char *name, const struct tr_part *part)
{
	uint8_t sha256[TR_SHA256_SIZE];
	struct tr_error err;

	c->stats->bytes += part->size;
	/* Files of proc(5) have size 0 and content all the same, and a file
	 * may grow before it is digested: the digest is what counts. */
	if (!f->has_digest) {
		if (f->size && part->size != f->size)
			tr_checker_report(c, TR_ECORRUPT, name, -1, f->event,
					  "%s: has %" PRIu64 " bytes instead of"
					  " %" PRIu64, f->path, part->size,
					  f->size);
		return;
	}
	if (digest(f, part, sha256, &err) < 0)
		tr_checker_report(c, TR_ESYS, name, -1, f->event, "%s: %s",
				  f->path, err.text);
	else if (memcmp(sha256, f->sha256, sizeof sha256) != 0)
		report_change(c, f, name, part);
}

static void check_file(struct tr_checker *c, uint64_t id,
		       const struct tr_check_file *f)
{
	char name[FILE_NAME_SIZE + 8];
	struct tr_part part;
	struct tr_error err;

	snprintf(name, sizeof name, "files/%" PRIu64, id);
	if (tr_home_open(c->home, name, &part, &err) == 0) {
		check_content(c, f, name, &part);
		tr_part_close(&part);
	} else if (err.code == TR_ESYS && err.sys_errno == ENOENT) {
		tr_checker_report(c, TR_ECORRUPT, name, -1, f->event,
				  "%s: missing", f->path);
	} else {
		tr_checker_report(c, err.code, name, -1, f->event, "%s: %s",
				  f->path, err.text);
	}
	if (!f->has_digest && c->complete && c->chunks_whole)
		tr_checker_report(c, TR_ECORRUPT, name, -1, f->event,
				  "%s: no digest was recorded", f->path);
}

static int by_id(const void *a, const void *b)
{
	const struct tr_table_slot *x = *(struct tr_table_slot *const *)a;
	const struct tr_table_slot *y = *(struct tr_table_slot *const *)b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Digests that were computed when the trace was packed. */
static void add_manifest_digests(struct tr_checker *c)
{
	for (size_t i = 0; c->have_manifest && i < c->manifest.ndigests; i++) {
		const struct tr_manifest_digest *d = &c->manifest.digests[i];
		struct tr_check_file *f = tr_table_get(&c->files, d->file);

		if (!f || f->has_digest)
			continue;
		memcpy(f->sha256, d->sha256, sizeof f->sha256);
		f->has_digest = true;
	}
}

void tr_check_stored(struct tr_checker *c)
{
	TR_AUTOFREE struct tr_table_slot **order =
		tr_alloc((c->files.n + 1) * sizeof *order);
	size_t n = 0;

	add_manifest_digests(c);
	TR_TABLE_EACH(&c->files, s)
		order[n++] = s;
	qsort(order, n, sizeof *order, by_id);
	/* A redacted trace has the events of its files, but not these. */
	for (size_t i = 0; i < n && !c->manifest.redacted; i++)
		check_file(c, order[i]->key, order[i]->value);
	c->stats->files = n;
}

static bool root_name_ok(const struct tr_checker *c, const char *name)
{
	(void)c;
	return strcmp(name, "manifest.json") == 0 ||
	       strcmp(name, "index") == 0 || strcmp(name, "chunks") == 0 ||
	       strcmp(name, "files") == 0;
}

/* Chunk files are read in sequence, so one after a gap is unread. */
static bool chunk_name_ok(const struct tr_checker *c, const char *name)
{
	uint32_t files = c->nrefs ? c->refs[c->nrefs - 1].file + 1 : 1;
	char known[TR_CHUNK_NAME];
	char *end;
	unsigned long v = strtoul(name, &end, 10);

	if (*end || end == name || v >= TR_MAX_CHUNK_FILES)
		return false;
	tr_chunk_name(known, (uint32_t)v);
	/* The file after the last chunk may have been begun and be empty. */
	return strcmp(known + strlen("chunks/"), name) == 0 &&
	       (v < files || (v == files && !c->complete));
}

static bool file_name_ok(const struct tr_checker *c, const char *name)
{
	char *end;
	unsigned long v = strtoul(name, &end, 10);

	return *name >= '1' && *name <= '9' && !*end &&
	       tr_table_get(&c->files, v) != NULL;
}

/* Of an interrupted write; the format says to ignore it. */
static bool is_leftover(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && strcmp(name + n - 4, ".tmp") == 0;
}

struct names {
	struct tr_checker *c;
	const char *dir;
	bool (*ok)(const struct tr_checker *c, const char *name);
};

static void check_name(void *arg, const char *name)
{
	const struct names *n = arg;
	TR_AUTOFREE char *where = tr_printf("%s%s%s", n->dir,
					    *n->dir ? "/" : "", name);

	if (!is_leftover(name) && !n->ok(n->c, name))
		tr_checker_report(n->c, tr_checker_missing(n->c), where, -1, 0,
				  "does not belong to the trace");
}

static void check_dir(struct tr_checker *c, const char *dir,
		      bool (*ok)(const struct tr_checker *, const char *))
{
	struct names n = {c, dir, ok};
	struct tr_error err;

	if (tr_home_names(c->home, dir, check_name, &n, &err) < 0 &&
	    err.sys_errno != ENOENT)
		tr_checker_report(c, TR_ESYS, dir, -1, 0, "%s", err.text);
}

void tr_check_names(struct tr_checker *c)
{
	check_dir(c, "", root_name_ok);
	check_dir(c, "chunks", chunk_name_ok);
	/* Which files belong is known only when all events were read. */
	if (c->have_manifest && c->chunks_whole)
		check_dir(c, "files", file_name_ok);
}
