/* Memory images: capture and restoration. */
#include "libtrace/tracee/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/pagemap.h"
#include "libtrace/tracee/remote.h"

void tr_image_release(struct tr_image *im)
{
	for (size_t i = 0; i < im->nmap; i++)
		free((void *)(uintptr_t)im->map[i].name.data);
	for (size_t i = 0; i < im->nmem; i++)
		free((void *)(uintptr_t)im->mem[i].bytes.data);
	free(im->map);
	free(im->mem);
	*im = (struct tr_image){0};
}

static bool is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* Append one page, to the last piece when it continues it. */
static void add_page(struct tr_image *im, uint64_t addr, const uint8_t *page)
{
	struct tr_mem *last = im->nmem ? &im->mem[im->nmem - 1] : NULL;

	if (last && last->addr + last->bytes.len == addr &&
	    last->bytes.len + TR_PAGE <= TR_MEM_PIECE) {
		uint8_t *data = tr_realloc((void *)(uintptr_t)last->bytes.data,
					   last->bytes.len + TR_PAGE);

		memcpy(data + last->bytes.len, page, TR_PAGE);
		last->bytes.data = data;
		last->bytes.len += TR_PAGE;
		return;
	}
	TR_GROW(im->mem, im->nmem, im->mem_cap);
	im->mem[im->nmem++] = (struct tr_mem){
		addr, {tr_memdup(page, TR_PAGE), TR_PAGE}};
}

struct capture {
	pid_t tid;
	int pagemap;
	bool from_file; /* the mapping being captured has a stored file */
	struct tr_image *im;
};

/* Keep the pages that hold what the stored file does not. */
static int capture_run(void *ctx, uint64_t addr, const uint64_t *entries,
		       size_t n, struct tr_error *err)
{
	const struct capture *c = ctx;
	uint8_t page[TR_PAGE];

	for (size_t i = 0; i < n; i++, addr += TR_PAGE) {
		if (!(entries[i] & TR_PM_EXISTS) ||
		    (c->from_file && (entries[i] & TR_PM_FILE)))
			continue;
		if (tr_memory_read(c->tid, addr, page, TR_PAGE) < 0)
			return tr_fail_errno(err, "task %d: page 0x%" PRIx64,
					     (int)c->tid, addr);
		if (c->from_file || !is_zero(page, TR_PAGE))
			add_page(c->im, addr, page);
	}
	return 0;
}

static bool is_engine_or_kernel(const struct tr_vma *v)
{
	return tr_is_engine(v->start, v->end) ||
	       strncmp(v->name, "[vvar", 5) == 0 ||
	       strcmp(v->name, "[vdso]") == 0 ||
	       strcmp(v->name, "[vsyscall]") == 0;
}

static int capture_mapping(struct capture *c, const struct tr_vma *v,
			   tr_image_file_fn *file, void *ctx,
			   struct tr_error *err)
{
	struct tr_image *im = c->im;
	int64_t id = v->ino ? file(ctx, c->tid, v, err) : 0;
	struct tr_map m = {
		.start = v->start, .end = v->end, .prot = v->prot,
		.flags = v->flags, .file = (uint32_t)id,
		.offset = id > 0 ? v->offset : 0,
		.name = {tr_strdup(v->name), strlen(v->name)},
	};

	if (id < 0) {
		free((void *)(uintptr_t)m.name.data);
		return -1;
	}
	if (id == 0)
		m.flags |= MAP_ANONYMOUS;
	if (strcmp(v->name, "[stack]") == 0)
		m.flags |= MAP_GROWSDOWN;
	TR_GROW(im->map, im->nmap, im->map_cap);
	im->map[im->nmap++] = m;
	c->from_file = id > 0;
	return tr_pagemap_walk(c->pagemap, v->start, v->end, capture_run, c,
			       err);
}

int tr_image_capture(pid_t tid, tr_image_file_fn *file, void *ctx,
		     struct tr_image *im, struct tr_error *err)
{
	TR_AUTOCLOSE int pagemap = tr_pagemap_open(tid, err);
	struct capture c = {.tid = tid, .pagemap = pagemap, .im = im};
	TR_AUTOVMAS struct tr_vmas vmas = {0};

	if (pagemap < 0 || tr_vmas_read(tid, &vmas, err) < 0)
		return -1;
	for (size_t i = 0; i < vmas.n; i++)
		if (!is_engine_or_kernel(&vmas.v[i]) &&
		    capture_mapping(&c, &vmas.v[i], file, ctx, err) < 0)
			return -1;
	return 0;
}

/* The flags a recorded mapping is made again with. */
static uint64_t map_flags(const struct tr_map *m)
{
	return MAP_FIXED | MAP_NORESERVE | (m->flags & MAP_GROWSDOWN) |
	       (m->file ? 0 : MAP_ANONYMOUS) |
	       (m->flags & MAP_SHARED ? MAP_SHARED : MAP_PRIVATE);
}

/* The descriptor that openat(2) gives in a process with 0, 1 and 2 open. */
#define BATCH_FD 3

/* A path of a batch is at most this long. */
#define PATH_ROOM 48

static int batch_open(struct tr_batch *b, const struct tr_map *m,
		      const struct tr_image_source *source,
		      struct tr_error *err)
{
	bool is_shared = m->flags & MAP_SHARED;
	char own[PATH_ROOM];
	const char *path = own;

	snprintf(own, sizeof own, "files/%u", m->file);
	if (is_shared)
		path = source->shared(source->ctx, m->file, err);
	if (!path)
		return -1;
	/* A name in the trace must be a file: no link out of it, and no pipe,
	 * whose opening would wait for a writer. */
	tr_batch_add(b, SYS_openat, (uint64_t)AT_FDCWD,
		     tr_batch_string(b, path),
		     is_shared ? O_RDWR : O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
		     0, 0, 0);
	return 0;
}

static int batch_map(struct tr_batch *b, const struct tr_map *m,
		     const struct tr_image_source *source, struct tr_error *err)
{
	if (m->file && batch_open(b, m, source, err) < 0)
		return -1;
	tr_batch_add(b, SYS_mmap, m->start, m->end - m->start, m->prot,
		     map_flags(m), m->file ? BATCH_FD : (uint64_t)-1, m->offset);
	if (m->file)
		tr_batch_add(b, SYS_close, BATCH_FD, 0, 0, 0, 0, 0);
	return 0;
}

void tr_image_batch(struct tr_batch *b, const struct tr_map *m)
{
	struct tr_error none; /* only sources fail */
	unsigned i = b->n;

	if (batch_map(b, m, NULL, &none) < 0)
		return;
	if (m->file)
		b->call[i++].result = BATCH_FD;
	b->call[i++].result = (int64_t)m->start;
	if (m->file)
		b->call[i].result = 0;
}

static int check_batch(const struct tr_batch *b, const struct tr_map *first,
		       struct tr_error *err)
{
	const struct tr_map *m = first;

	for (unsigned i = 0; i < b->n; i++) {
		const struct tr_inject_call *c = &b->call[i];

		if (c->nr == SYS_openat && c->result != BATCH_FD)
			return tr_fail(err, TR_ESYS,
				       "files/%u: %s", m->file,
				       c->result < 0 ? strerror((int)-c->result)
				       : "unexpected descriptor");
		if (c->nr != SYS_mmap)
			continue;
		if (c->result != (int64_t)m->start)
			return tr_fail(err, TR_ESYS,
				       "mapping 0x%" PRIx64 "-0x%" PRIx64 ": %s",
				       m->start, m->end,
				       strerror((int)-c->result));
		m++;
	}
	return 0;
}

int tr_image_map(pid_t tid, const struct tr_map *map, size_t n,
		 const struct tr_image_source *source, struct tr_error *err)
{
	for (size_t i = 0; i < n;) {
		TR_AUTOFREE struct tr_batch *b = tr_alloc(sizeof *b);
		size_t first = i;

		for (; i < n && b->n + 3 <= TR_REMOTE_MAX &&
		       b->data_len + PATH_ROOM <= TR_REMOTE_DATA_SIZE; i++)
			if (batch_map(b, &map[i], source, err) < 0)
				return -1;
		if (tr_batch_run(tid, b, err) < 0 ||
		    check_batch(b, &map[first], err) < 0)
			return -1;
	}
	return 0;
}
