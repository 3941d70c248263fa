/* Opening a trace: manifest, index or scan, and what that says of the whole. */
#include "libtrace/format/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/blocks.h"
#include "libtrace/format/chunk.h"
#include "libtrace/format/index.h"
#include "libtrace/format/reader_impl.h"
#include "libtrace/format/scan.h"

/*
 * ---- Finding the chunks ----
 */

/* Does chunk file `file` end where the index says? */
static int check_size(const struct tr_home *p, uint32_t file, uint64_t end,
		      struct tr_error *err)
{
	struct tr_part part;
	uint64_t size;

	if (tr_chunk_file_open(p, file, &part, err) < 0)
		return -1;
	size = part.size;
	tr_part_close(&part);
	if (size != end)
		return tr_fail(err, TR_ECORRUPT,
			       "index: does not cover chunk file %u", file);
	return 0;
}

/* The index is right when the chunk files hold what it lists, to the byte. */
static int check_index(const struct tr_home *p,
		       const struct tr_chunk_ref *refs, size_t n,
		       struct tr_error *err)
{
	uint32_t files;

	if (tr_chunk_file_count(p, &files, err) < 0)
		return -1;
	if (files != (n ? refs[n - 1].file + 1 : 1))
		return tr_fail(err, TR_ECORRUPT,
			       "index: does not list %u chunk files", files);
	if (n == 0)
		return check_size(p, 0, 0, err);
	for (size_t i = 0; i < n; i++) {
		const struct tr_chunk_ref *r = &refs[i];
		uint64_t end = r->offset + TR_CHUNK_HEADER + r->stored_size;

		if (i + 1 < n && refs[i + 1].file == r->file)
			continue;
		if (check_size(p, r->file, end, err) < 0)
			return -1;
	}
	return 0;
}

static int use_index(struct tr_reader *r, struct tr_error *err)
{
	if (tr_index_read_at(&r->home, &r->refs, &r->nrefs, err) < 0)
		return -1;
	if (check_index(&r->home, r->refs, r->nrefs, err) == 0)
		return 0;
	free(r->refs);
	r->refs = NULL;
	r->nrefs = 0;
	return -1;
}

static int find_chunks(struct tr_reader *r, struct tr_error *err)
{
	struct tr_scan s;

	if (use_index(r, err) == 0) {
		r->whole = true;
		return 0;
	}
	r->note = tr_strdup(err->text);
	if (tr_scan(&r->home, &s, err) < 0)
		return -1;
	r->refs = s.refs;
	r->nrefs = s.n;
	r->lost = s.lost;
	r->whole = s.lost == 0 && !s.missing;
	return 0;
}

/*
 * ---- Streams ----
 */

static int by_stream(const void *a, const void *b)
{
	const struct tr_chunk_ref *x = *(const struct tr_chunk_ref *const *)a;
	const struct tr_chunk_ref *y = *(const struct tr_chunk_ref *const *)b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x < y ? -1 : x > y; /* the array's order is the files' */
}

static void sort_streams(struct tr_reader *r)
{
	size_t cap = 0;

	r->sorted = tr_alloc(r->nrefs * sizeof *r->sorted);
	for (size_t i = 0; i < r->nrefs; i++)
		r->sorted[i] = &r->refs[i];
	if (r->nrefs == 0)
		return;
	qsort(r->sorted, r->nrefs, sizeof *r->sorted, by_stream);
	for (size_t i = 0; i < r->nrefs; i++) {
		const struct tr_chunk_ref *const *c = &r->sorted[i];

		if (i == 0 || c[0]->stream != c[-1]->stream) {
			TR_GROW(r->lanes, r->nlanes, cap);
			r->lanes[r->nlanes++] = (struct tr_lane_refs){c, 0};
		}
		r->lanes[r->nlanes - 1].n++;
	}
	/* The last one, if it is there. */
	if (r->lanes[r->nlanes - 1].chunks[0]->stream == TR_BLOCK_STREAM)
		r->blocks = r->lanes[--r->nlanes];
}

static bool ends(const struct tr_lane_refs *l)
{
	return l->chunks[l->n - 1]->flags & TR_CHUNK_LAST;
}

/*
 * Does every stream end as such?  The catalogue's end closes the last file,
 * so that a trace cut between two chunks shows even without its index.
 */
static bool streams_end(const struct tr_reader *r)
{
	const struct tr_chunk_ref *end;

	for (size_t i = 0; i < r->nlanes; i++)
		if (!ends(&r->lanes[i]))
			return false;
	if (r->blocks.n && !ends(&r->blocks))
		return false;
	if (r->nrefs == 0)
		return false;
	end = &r->refs[r->nrefs - 1];
	return !r->note || end->stream == 0;
}

/*
 * ---- The interface ----
 */

static int open_directory(struct tr_home *p, const char *path,
			  struct tr_error *err)
{
	*p = TR_HOME_DIRECTORY(open(path,
				     O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (p->dirfd < 0 && errno == ENOTDIR)
		return tr_fail(err, TR_ENOTRACE,
			       "not a trace directory; trace-pack -x unpacks "
			       "an archive");
	if (p->dirfd < 0)
		return tr_fail_errno(err, "cannot open");
	return 0;
}

static int open_trace(struct tr_reader *r, struct tr_error *err)
{
	if (tr_manifest_read_at(&r->home, &r->manifest, err) < 0 ||
	    find_chunks(r, err) < 0)
		return -1;
	sort_streams(r);
	r->whole = r->whole && streams_end(r);
	return 0;
}

struct tr_reader *tr_reader_open_home(struct tr_home *home,
				       const char *path, struct tr_error *err)
{
	struct tr_reader *r = tr_alloc(sizeof *r);

	r->path = tr_strdup(path);
	r->home = *home;
	*home = (struct tr_home){.dirfd = -1, .archive = -1};
	if (open_trace(r, err) == 0)
		return r;
	tr_error_prefix(err, "%s", path);
	tr_reader_close(r);
	return NULL;
}

struct tr_reader *tr_reader_open(const char *path, struct tr_error *err)
{
	struct tr_home home;

	if (open_directory(&home, path, err) == 0)
		return tr_reader_open_home(&home, path, err);
	tr_error_prefix(err, "%s", path);
	return NULL;
}

void tr_reader_close(struct tr_reader *r)
{
	if (!r)
		return;
	tr_home_release(&r->home);
	tr_manifest_release(&r->manifest);
	free(r->path);
	free(r->refs);
	free(r->sorted);
	free(r->lanes);
	free(r->note);
	free(r);
}

int tr_reader_dirfd(const struct tr_reader *r)
{
	return r->home.dirfd;
}

const char *tr_reader_path(const struct tr_reader *r)
{
	return r->path;
}

const struct tr_manifest *tr_reader_manifest(const struct tr_reader *r)
{
	return &r->manifest;
}

bool tr_reader_complete(const struct tr_reader *r)
{
	return r->manifest.complete && r->whole;
}

uint64_t tr_reader_lost_bytes(const struct tr_reader *r)
{
	return r->lost;
}

const char *tr_reader_note(const struct tr_reader *r)
{
	return r->note;
}

int tr_reader_stored(const struct tr_reader *r, uint32_t file, size_t max,
		     struct tr_buf *b, struct tr_error *err)
{
	char name[32];

	snprintf(name, sizeof name, "files/%" PRIu32, file);
	return tr_home_load(&r->home, name, max, b, err);
}

uint32_t tr_reader_stream_count(const struct tr_reader *r)
{
	if (r->nlanes == 0)
		return 0;
	return r->lanes[r->nlanes - 1].chunks[0]->stream + 1;
}

size_t tr_reader_chunks(const struct tr_reader *r,
			const struct tr_chunk_ref **chunks)
{
	*chunks = r->refs;
	return r->nrefs;
}
