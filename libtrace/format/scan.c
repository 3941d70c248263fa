/*
 * Recovery by scanning: chunk headers follow each other, and where they do
 * not, the next valid one is searched for.
 */
#include "libtrace/format/scan.h"

#include <errno.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/chunk.h"

#define WINDOW ((size_t)1 << 20)

struct file {
	struct tr_part part;
	uint32_t number;
	uint8_t *window; /* for searching; allocated when needed */
};

int tr_chunk_file_open(const struct tr_home *p, uint32_t file,
		       struct tr_part *part, struct tr_error *err)
{
	char name[TR_CHUNK_NAME];

	tr_chunk_name(name, file);
	return tr_home_open(p, name, part, err);
}

/* The number in a chunk file's name, or -1. */
static long name_number(const char *name)
{
	if (strlen(name) != 6 || strspn(name, "0123456789") != 6)
		return -1;
	return strtol(name, NULL, 10);
}

/* The numbers of the chunk files that are there. */
struct numbers {
	uint32_t *v;
	size_t n, cap;
};

static void add_name(void *arg, const char *name)
{
	long number = name_number(name);
	struct numbers *l = arg;

	if (number < 0)
		return;
	TR_GROW(l->v, l->n, l->cap);
	l->v[l->n++] = (uint32_t)number;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int find_numbers(const struct tr_home *p, struct numbers *l,
			struct tr_error *err)
{
	*l = (struct numbers){0};
	/* A recorder killed at once leaves only the manifest. */
	if (tr_home_names(p, "chunks", add_name, l, err) < 0 &&
	    err->sys_errno != ENOENT) {
		free(l->v);
		return -1;
	}
	if (l->n)
		qsort(l->v, l->n, sizeof *l->v, ascending);
	return 0;
}

int tr_chunk_file_count(const struct tr_home *p, uint32_t *n,
			struct tr_error *err)
{
	struct numbers l;

	if (find_numbers(p, &l, err) < 0)
		return -1;
	*n = l.n ? l.v[l.n - 1] + 1 : 0;
	free(l.v);
	return 0;
}

/* Is a whole chunk at this offset?  1 yes, 0 no, -1 failure. */
static int chunk_at(const struct file *f, uint64_t at,
		    struct tr_chunk_header *h, struct tr_error *err)
{
	uint8_t bytes[TR_CHUNK_HEADER];
	ssize_t r;

	if (f->part.size - at < sizeof bytes)
		return 0;
	r = tr_part_read(&f->part, bytes, sizeof bytes, at);
	if (r < 0) {
		char name[TR_CHUNK_NAME];

		tr_chunk_name(name, f->number);
		return tr_fail_errno(err, "%s", name);
	}
	if ((size_t)r < sizeof bytes)
		return 0;
	if (tr_chunk_decode(bytes, h, err) < 0)
		return err->code == TR_EFEATURE ? -1 : 0;
	return h->stored_size <= f->part.size - at - sizeof bytes;
}

static void note_chunk(struct tr_scan *s, const struct file *f, uint64_t at,
		       const struct tr_chunk_header *h)
{
	TR_GROW(s->refs, s->n, s->cap);
	s->refs[s->n++] = tr_chunk_ref(h, f->number, at);
}

/* The first whole chunk in the window's n bytes, which stand at `base`;
 * 1 with *at set, 0 when there is none. */
static int search_window(const struct file *f, uint64_t base, size_t n,
			 uint64_t *at, struct tr_error *err)
{
	const uint8_t *p = f->window, *end = p + n;

	while ((p = memmem(p, (size_t)(end - p), TR_CHUNK_MAGIC, 4)) != NULL) {
		struct tr_chunk_header h;
		int r = chunk_at(f, base + (uint64_t)(p - f->window), &h, err);

		if (r != 0) {
			*at = base + (uint64_t)(p - f->window);
			return r;
		}
		p++;
	}
	return 0;
}

/* The offset of the next whole chunk from `from` on, or the file's size. */
static int resync(struct file *f, uint64_t from, uint64_t *at,
		  struct tr_error *err)
{
	size_t room = f->part.size < WINDOW ? (size_t)f->part.size : WINDOW;

	if (!f->window)
		f->window = tr_alloc(room);
	while (f->part.size - from >= TR_CHUNK_HEADER) {
		ssize_t n = tr_part_read(&f->part, f->window, room, from);
		int r;

		if (n < 4)
			break;
		r = search_window(f, from, (size_t)n, at, err);
		if (r != 0)
			return r < 0 ? -1 : 0;
		from += (uint64_t)n - 3; /* a magic across the border */
	}
	*at = f->part.size;
	return 0;
}

static int scan_file(struct file *f, struct tr_scan *s, struct tr_error *err)
{
	uint64_t at = 0;

	while (at < f->part.size) {
		struct tr_chunk_header h;
		uint64_t next;
		int r = chunk_at(f, at, &h, err);

		if (r < 0)
			return -1;
		if (r > 0) {
			note_chunk(s, f, at, &h);
			at += TR_CHUNK_HEADER + h.stored_size;
			continue;
		}
		if (resync(f, at + 1, &next, err) < 0)
			return -1;
		s->lost += next - at;
		at = next;
	}
	return 0;
}

static int scan_number(const struct tr_home *p, uint32_t number,
		       struct tr_scan *s, struct tr_error *err)
{
	struct file f = {.number = number};
	int r;

	if (tr_chunk_file_open(p, number, &f.part, err) < 0) {
		s->missing = true;
		return err->code == TR_ESYS && err->sys_errno == ENOENT ? 0 :
									  -1;
	}
	r = scan_file(&f, s, err);
	free(f.window);
	tr_part_close(&f.part);
	return r;
}

int tr_scan(const struct tr_home *p, struct tr_scan *s, struct tr_error *err)
{
	struct numbers l;
	int r = 0;

	*s = (struct tr_scan){0};
	if (find_numbers(p, &l, err) < 0)
		return -1;
	s->missing = l.n == 0 || l.v[l.n - 1] != l.n - 1;
	/* Not every number up to the last: that may be any. */
	for (size_t i = 0; r == 0 && i < l.n; i++)
		r = scan_number(p, l.v[i], s, err);
	free(l.v);
	if (r < 0)
		free(s->refs);
	return r;
}
