/* Digests of an address space. */
#include "libtrace/tracee/digest.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/file_pages.h"
#include "libtrace/tracee/hash_pages.h"
#include "libtrace/tracee/page_hash.h"
#include "libtrace/tracee/pagemap.h"
#include "libtrace/tracee/writes.h"

#define ADDRESS_END 0x7ffffffff000ul /* TASK_SIZE_MAX, 4-level page tables */
#define NODE_PAGES 512u
#define NODE_BYTES ((uint64_t)NODE_PAGES * TR_PAGE)
#define SHARED_BLOCK (64u * TR_PAGE)
/* Until it is measured: what protecting pages of one page table takes. */
#define PROTECT_NS 10000u

struct tr_digester {
	struct tr_file_pages *files;
	cpu_set_t cpus;
	uint8_t block[SHARED_BLOCK];
};

/* The hashes of an aligned range of pages. */
struct node {
	uint64_t base;  /* its first page's address */
	uint64_t sum;   /* of the pages' terms */
	unsigned used;  /* pages whose hash is not 0 */
	uint64_t hash[NODE_PAGES];
};

/* A page's hash was another; quiet: that is no news (tr_digest_changed). */
struct change {
	uint64_t addr, before;
	size_t order;
	bool quiet;
};

struct tr_digest {
	struct tr_digester *shared;
	int writes;     /* tracks them, or -1 */
	bool refused;   /* tracking is impossible here */
	struct node **node; /* ascending by base */
	size_t nnodes, node_cap;
	uint64_t root;
	struct change *change; /* since the mark, some of them twice */
	size_t nchanges, change_cap, merged;
	struct tr_page_hash *changed; /* the list that was asked for */
	struct tr_digest_mapping *map;
	size_t nmaps, map_cap;
	struct tr_digest_work work;
	/* ns spent on reading open pages that had not changed, since pages were
	 * last protected, and what that cost for each part of a node */
	uint64_t wasted, protect_ns;
	/* of the update in progress */
	const struct tr_digest_task *task;
	int pagemap;
	bool is_open; /* what is taken now is not protected */
	struct tr_vmas vmas;
	struct tr_page_pieces pieces;
};

struct tr_digester *tr_digester_new(void)
{
	struct tr_digester *s = tr_alloc(sizeof *s);

	s->files = tr_file_pages_new();
	if (sched_getaffinity(0, sizeof s->cpus, &s->cpus) < 0)
		CPU_SET(0, &s->cpus);
	return s;
}

void tr_digester_free(struct tr_digester *s)
{
	if (!s)
		return;
	tr_file_pages_free(s->files);
	free(s);
}

struct tr_digest *tr_digest_new(struct tr_digester *shared)
{
	struct tr_digest *d = tr_alloc(sizeof *d);

	d->shared = shared;
	d->writes = -1;
	d->protect_ns = PROTECT_NS;
	return d;
}

static void forget_mappings(struct tr_digest *d)
{
	for (size_t i = 0; i < d->nmaps; i++)
		free(d->map[i].name);
	d->nmaps = 0;
}

void tr_digest_free(struct tr_digest *d)
{
	if (!d)
		return;
	if (d->writes >= 0)
		close(d->writes);
	for (size_t i = 0; i < d->nnodes; i++)
		free(d->node[i]);
	free(d->node);
	free(d->change);
	free(d->changed);
	forget_mappings(d);
	free(d->map);
	free(d->pieces.p);
	free(d);
}

/* The first node that ends behind addr. */
static size_t node_at(const struct tr_digest *d, uint64_t addr)
{
	size_t low = 0, high = d->nnodes;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (d->node[mid]->base + NODE_BYTES <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct node *find_node(const struct tr_digest *d, uint64_t addr)
{
	size_t i = node_at(d, addr);

	return i < d->nnodes && d->node[i]->base <= addr ? d->node[i] : NULL;
}

static struct node *make_node(struct tr_digest *d, uint64_t addr)
{
	size_t i = node_at(d, addr);
	struct node *n;

	TR_GROW(d->node, d->nnodes, d->node_cap);
	memmove(&d->node[i + 1], &d->node[i],
		(d->nnodes - i) * sizeof *d->node);
	d->nnodes++;
	n = d->node[i] = tr_alloc(sizeof *n);
	n->base = addr & ~(NODE_BYTES - 1);
	return n;
}

static unsigned index_in(const struct node *n, uint64_t addr)
{
	return (unsigned)((addr - n->base) / TR_PAGE);
}

static int by_address(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Of several changes of a page keep what it was at first and how it is now. */
static void merge_changes(struct tr_digest *d)
{
	size_t kept = 0;

	qsort(d->change, d->nchanges, sizeof *d->change, by_address);
	for (size_t i = 0; i < d->nchanges; i++) {
		const struct change c = d->change[i];

		if (kept && d->change[kept - 1].addr == c.addr)
			d->change[kept - 1].quiet = c.quiet;
		else
			d->change[kept++] = c;
	}
	d->nchanges = d->merged = kept;
	for (size_t i = 0; i < kept; i++)
		d->change[i].order = i;
}

#define MERGE_FROM 65536u

static void note_change(struct tr_digest *d, uint64_t addr, uint64_t before,
			bool quiet)
{
	if (d->nchanges >= MERGE_FROM && d->nchanges >= 2 * d->merged)
		merge_changes(d);
	TR_GROW(d->change, d->nchanges, d->change_cap);
	d->change[d->nchanges] = (struct change){addr, before, d->nchanges,
						 quiet};
	d->nchanges++;
}

/* False when it is what it was. */
static bool set_page(struct tr_digest *d, uint64_t addr, uint64_t hash,
		     bool quiet)
{
	struct node *n = find_node(d, addr);
	uint64_t old, change;

	if (!n && hash == 0)
		return false;
	if (!n)
		n = make_node(d, addr);
	old = n->hash[index_in(n, addr)];
	if (old == hash)
		return false;
	change = tr_page_term(addr, hash) - tr_page_term(addr, old);
	n->hash[index_in(n, addr)] = hash;
	n->sum += change;
	n->used += (hash != 0) - (old != 0);
	d->root += change;
	note_change(d, addr, old, quiet);
	return true;
}

/* The pages of [start, end) are zeros now; `gone`: with their mapping. */
static void clear_pages(struct tr_digest *d, uint64_t start, uint64_t end,
			bool gone)
{
	for (size_t i = node_at(d, start);
	     i < d->nnodes && d->node[i]->base < end; i++) {
		const struct node *n = d->node[i];
		uint64_t a = n->base < start ? start : n->base;
		uint64_t b = n->base + NODE_BYTES;

		if (b > end)
			b = end;
		for (; n->used && a < b; a += TR_PAGE)
			set_page(d, a, 0, gone);
	}
}

static void drop_empty_nodes(struct tr_digest *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->nnodes; i++) {
		if (d->node[i]->used)
			d->node[kept++] = d->node[i];
		else
			free(d->node[i]);
	}
	d->nnodes = kept;
}

static bool is_covered(const struct tr_digest *d, const struct tr_vma *v)
{
	if (tr_is_engine(v->start, v->end))
		return false;
	if (v->start >= d->task->hide_start && v->end <= d->task->hide_end)
		return false;
	return strncmp(v->name, "[vvar", 5) != 0 &&
	       strcmp(v->name, "[vdso]") != 0 &&
	       strcmp(v->name, "[vsyscall]") != 0;
}

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Huge pages and private mappings of /dev/zero show as files and are none. */
static bool is_anonymous(const struct tr_vma *v)
{
	return !v->ino || starts_with(v->name, "/anon_hugepage") ||
	       (starts_with(v->name, "/dev/zero") &&
		!(v->flags & MAP_SHARED));
}

/* Reading a device's memory could have effects. */
static bool is_device(const struct tr_vma *v)
{
	return starts_with(v->name, "/dev/") &&
	       !starts_with(v->name, "/dev/shm/") &&
	       !starts_with(v->name, "/dev/zero");
}

/* Can stores through a shared mapping change the file unseen? */
static bool is_written_shared(const struct tr_digest *d, const struct tr_vma *v)
{
	for (size_t i = 0; i < d->vmas.n; i++) {
		const struct tr_vma *o = &d->vmas.v[i];

		if ((o->flags & MAP_SHARED) && (o->prot & PROT_WRITE) &&
		    o->ino == v->ino && o->major == v->major &&
		    o->minor == v->minor)
			return true;
	}
	return false;
}

/* Read the pages later; `expect`: hashes with which they are no news, owned by
 * the list from here on, or NULL. */
static void want_pages(struct tr_digest *d, const struct tr_vma *v,
		       uint64_t start, uint64_t end, uint64_t *expect)
{
	struct tr_page_pieces *ps = &d->pieces;

	if (start >= end)
		return;
	TR_GROW(ps->p, ps->n, ps->cap);
	ps->p[ps->n++] = (struct tr_page_piece){
		start, (end - start) / TR_PAGE, v->ino != 0, d->is_open,
		expect};
	ps->pages += (end - start) / TR_PAGE;
}

/* What a private mapping holds where the process has no page of its own. */
struct backing {
	const struct tr_vma *v;
	bool anonymous;
	struct tr_file_hashes file; /* without hashes: read the pages */
};

static uint64_t backing_hash(const struct backing *b, uint64_t addr)
{
	uint64_t i = (addr - b->v->start + b->v->offset) / TR_PAGE;

	return b->file.hash && i < b->file.n ? b->file.hash[i] : 0;
}

/* Where a page of the file is mapped, but not outside [start, end). */
static uint64_t extent_start(const struct backing *b, size_t page,
			     uint64_t start, uint64_t end)
{
	uint64_t offset = (uint64_t)page * TR_PAGE;
	uint64_t addr = offset < b->v->offset ? 0
			: b->v->start + (offset - b->v->offset);

	if (addr < start)
		return start;
	return addr < end ? addr : end;
}

static void take_backing(struct tr_digest *d, const struct backing *b,
			 uint64_t start, uint64_t end)
{
	if (b->anonymous) {
		clear_pages(d, start, end, false);
		return;
	}
	if (!b->file.hash) {
		want_pages(d, b->v, start, end, NULL);
		return;
	}
	for (size_t i = 0; i < b->file.nextents; i++) {
		uint64_t from = extent_start(b, b->file.extent[i].from, start,
					     end);
		uint64_t to = extent_start(b, b->file.extent[i].to, start, end);

		clear_pages(d, start, from, true);
		for (; from < to; from += TR_PAGE)
			set_page(d, from, backing_hash(b, from), true);
		start = to;
	}
	clear_pages(d, start, end, true);
}

/* Copies of the file's hashes: the originals may be gone when they are used. */
static uint64_t *expected(const struct backing *b, uint64_t start, uint64_t end)
{
	uint64_t *hash;

	if (!b->file.hash)
		return NULL;
	hash = tr_alloc((end - start) / TR_PAGE * sizeof *hash);
	for (uint64_t a = start; a < end; a += TR_PAGE)
		hash[(a - start) / TR_PAGE] = backing_hash(b, a);
	return hash;
}

/* One run of pages of the process's own. */
static void take_run(struct tr_digest *d, const struct backing *b,
		     const struct tr_own_run *run)
{
	if (run->zero)
		clear_pages(d, run->start, run->end, false);
	else
		want_pages(d, b->v, run->start, run->end,
			   expected(b, run->start, run->end));
}

/* The part of the run that is in the mapping; false when there is none. */
static bool clip(const struct tr_own_run *run, const struct tr_vma *v,
		 struct tr_own_run *out)
{
	*out = *run;
	if (out->start < v->start)
		out->start = v->start;
	if (out->end > v->end)
		out->end = v->end;
	return out->start < out->end;
}

/* From the mapping's own pages. */
static void take_private(struct tr_digest *d, const struct tr_vma *v,
			 const struct tr_own_run *run, size_t n)
{
	struct backing b = {.v = v, .anonymous = is_anonymous(v)};
	uint64_t at = v->start;
	struct tr_own_run part;

	if (!b.anonymous && !is_written_shared(d, v) &&
	    !tr_file_pages_get(d->shared->files, d->task->tid, v, &b.file))
		b.file.hash = NULL;
	for (size_t i = 0; i < n; i++) {
		if (!clip(&run[i], v, &part))
			continue;
		take_backing(d, &b, at, part.start);
		take_run(d, &b, &part);
		at = part.end;
	}
	take_backing(d, &b, at, v->end);
}

/* The pages of a shared mapping that begin at addr, from the file itself. */
static void take_block(struct tr_digest *d, uint64_t addr, size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		uint64_t a = addr + i * TR_PAGE;
		uint64_t hash = tr_page_hash(d->shared->block + i * TR_PAGE);

		set_page(d, a, hash, false);
	}
	d->work.pages_read += pages;
}

/*
 * A shared mapping is what its file is.  Holes are passed by: reading them
 * through the mapping would fill a file in memory with pages.
 */
static void take_shared_file(struct tr_digest *d, const struct tr_vma *v,
			     int fd)
{
	off_t size = lseek(fd, 0, SEEK_END), at = (off_t)v->offset;
	off_t end = at + (off_t)(v->end - v->start);
	uint64_t done = v->start;

	if (end > size)
		end = size;
	while (at < end) {
		off_t data = lseek(fd, at, SEEK_DATA);
		uint64_t addr;
		ssize_t got;

		at = data < 0 ? end : data & ~(off_t)(TR_PAGE - 1);
		if (at >= end)
			break;
		addr = v->start + (uint64_t)(at - (off_t)v->offset);
		clear_pages(d, done, addr, false);
		memset(d->shared->block, 0, SHARED_BLOCK);
		got = tr_pread_full(fd, d->shared->block,
				    end - at < (off_t)SHARED_BLOCK
				    ? (size_t)(end - at) : SHARED_BLOCK, at);
		if (got <= 0)
			break;
		got = (got + TR_PAGE - 1) / TR_PAGE;
		take_block(d, addr, (size_t)got);
		at += got * TR_PAGE;
		done = addr + (uint64_t)got * TR_PAGE;
	}
	clear_pages(d, done, v->end, false);
}

/* More shared memory than this is read only where the process has seen it. */
#define SHARED_WHOLE ((uint64_t)256 << 20)

/*
 * Shared memory whose file cannot be opened.  Reading a hole makes a page, so
 * that what is large, and then perhaps full of holes, is only read where this
 * process has pages of it: its accesses decide that, which replay repeats.
 */
static void take_shared_memory(struct tr_digest *d, const struct tr_vma *v)
{
	struct tr_own_runs runs = {0};
	struct tr_error ignored;
	uint64_t at = v->start;

	if (v->end - v->start <= SHARED_WHOLE ||
	    tr_pagemap_present(d->pagemap, v->start, v->end, &runs,
			       &ignored) < 0) {
		want_pages(d, v, v->start, v->end, NULL);
		return;
	}
	for (size_t i = 0; i < runs.n; i++) {
		clear_pages(d, at, runs.r[i].start, false);
		want_pages(d, v, runs.r[i].start, runs.r[i].end, NULL);
		at = runs.r[i].end;
	}
	clear_pages(d, at, v->end, false);
	tr_own_runs_release(&runs);
}

static void take_shared(struct tr_digest *d, const struct tr_vma *v)
{
	TR_AUTOCLOSE int fd = tr_vma_open(d->task->tid, v);

	if (fd >= 0 && !tr_pagemap_has_guards(d->pagemap, v->start, v->end))
		take_shared_file(d, v, fd);
	else if (!is_device(v))
		take_shared_memory(d, v);
}

/*
 * Private mappings of files are not tracked: few of their pages are the
 * process's own, while every page that is only read would cost a fault
 * (uffd_disable_fault_around in include/linux/userfaultfd_k.h), pages that are
 * dropped leave a mark behind that looks unwritten (zap_pte_range in
 * mm/memory.c), and MADV_GUARD_INSTALL on such marks never returns
 * (madvise_guard_install in mm/madvise.c restarts for ever).
 */
static bool is_worth_tracking(const struct tr_vma *v)
{
	return !v->ino;
}

/* A mapping that has no pages, or is not tracked yet because it is new, was
 * moved (mremap_userfaultfd_prep in fs/userfaultfd.c) or cannot be.  Its pages
 * count as written. */
static int take_untracked(struct tr_digest *d, const struct tr_vma *v,
			  struct tr_error *err)
{
	struct tr_own_runs runs = {0};
	bool tracked = d->writes >= 0 && is_worth_tracking(v) &&
		       tr_writes_register(d->writes, v->start, v->end) == 0;
	int r = tr_pagemap_own(d->pagemap, v->start, v->end, tracked, &runs,
			       err);

	if (r == 0)
		take_private(d, v, runs.r, runs.n);
	tr_own_runs_release(&runs);
	return r;
}

/* What the kernel cannot do is not tried again. */
static void refuse(struct tr_digest *d)
{
	if (d->writes >= 0)
		close(d->writes);
	d->writes = -1;
	d->refused = true;
}

static bool is_tracked(struct tr_digest *d, const struct tr_vma *v)
{
	int r = 0;

	if (d->writes >= 0 && is_worth_tracking(v))
		r = tr_pagemap_tracked(d->pagemap, v->start, v->end);
	if (r < 0)
		refuse(d);
	return r > 0;
}

/* Pages went together with the page table that held them, or with their huge
 * page: older kernels say nothing of what has no table (pagemap_scan_pte_hole
 * in fs/proc/task_mmu.c).  A node is as large as a table. */
static void clear_holes(struct tr_digest *d, const struct tr_vma *v)
{
	for (size_t i = node_at(d, v->start);
	     i < d->nnodes && d->node[i]->base < v->end; i++) {
		uint64_t a = d->node[i]->base, b = a + NODE_BYTES;

		if (a < v->start)
			a = v->start;
		if (b > v->end)
			b = v->end;
		if (d->node[i]->used && !tr_pagemap_any(d->pagemap, a, b))
			clear_pages(d, a, b, false);
	}
}

/* A part of a tracked mapping that is not protected: all of it is taken. */
static int take_open(struct tr_digest *d, const struct tr_vma *v,
		     const struct tr_own_run *open, struct tr_own_runs *own,
		     struct tr_error *err)
{
	struct tr_vma part = *v;

	part.start = open->start;
	part.end = open->end;
	own->n = 0;
	if (tr_pagemap_own(d->pagemap, part.start, part.end, false, own,
			   err) < 0)
		return -1;
	d->is_open = true;
	take_private(d, &part, own->r, own->n);
	d->is_open = false;
	return 0;
}

static int take_tracked(struct tr_digest *d, const struct tr_vma *v,
			struct tr_error *err)
{
	struct tr_own_runs open = {0}, own = {0};
	int r = tr_pagemap_open_to_writes(d->pagemap, v->start, v->end, &open,
					  err);

	for (size_t i = 0; i < open.n && r == 0; i++)
		r = take_open(d, v, &open.r[i], &own, err);
	if (r == 0)
		clear_holes(d, v);
	tr_own_runs_release(&open);
	tr_own_runs_release(&own);
	return r;
}

/* The first piece behind `i` that is not of the same node, or not open. */
static size_t same_node(const struct tr_digest *d, size_t i)
{
	const struct tr_page_piece *p = d->pieces.p;
	size_t k = i + 1;

	while (k < d->pieces.n && p[k].open &&
	       p[k].addr / NODE_BYTES == p[i].addr / NODE_BYTES)
		k++;
	return k;
}

/* Protect the open pages that were just read, all of one page table at a time:
 * what is dear are the flushes of the translations, of which each takes one. */
static int protect(struct tr_digest *d, struct tr_error *err)
{
	const struct tr_page_piece *p = d->pieces.p;
	uint64_t begin = tr_now_ns(), parts = 0;
	struct tr_own_runs ignored = {0};
	size_t next;
	int r = 0;

	for (size_t i = 0; i < d->pieces.n && r == 0; i = next) {
		next = p[i].open ? same_node(d, i) : i + 1;
		if (!p[i].open)
			continue;
		ignored.n = 0;
		parts++;
		r = tr_pagemap_own(d->pagemap, p[i].addr, p[next - 1].addr +
				   p[next - 1].pages * TR_PAGE, true, &ignored,
				   err);
	}
	tr_own_runs_release(&ignored);
	if (parts)
		d->protect_ns = (tr_now_ns() - begin) / parts;
	d->wasted = 0;
	return r;
}

/*
 * Open pages are read at every update; a protected one costs the protection
 * and, when it is written, a fault, each as dear as reading some dozens of
 * pages.  So pages stay open, those that are written again and again for good,
 * until as much time has gone into reading others in vain as protecting takes.
 */
static int protect_if_due(struct tr_digest *d, struct tr_error *err)
{
	const struct tr_page_piece *p = d->pieces.p;
	uint64_t parts = 0;

	for (size_t i = 0; i < d->pieces.n;
	     i = p[i].open ? same_node(d, i) : i + 1)
		parts += p[i].open;
	return parts && d->wasted > parts * d->protect_ns ? protect(d, err) : 0;
}

static bool continues(const struct tr_vma *a, const struct tr_vma *b)
{
	return a->end == b->start && a->prot == b->prot &&
	       a->flags == b->flags && a->ino == b->ino &&
	       a->major == b->major && a->minor == b->minor &&
	       strcmp(a->name, b->name) == 0 &&
	       (!a->ino || a->offset + (a->end - a->start) == b->offset);
}

static void list_mappings(struct tr_digest *d)
{
	const struct tr_vma *last = NULL;

	forget_mappings(d);
	for (size_t i = 0; i < d->vmas.n; i++) {
		const struct tr_vma *v = &d->vmas.v[i];

		if (!is_covered(d, v))
			continue;
		if (last && continues(last, v)) {
			d->map[d->nmaps - 1].end = v->end;
		} else {
			TR_GROW(d->map, d->nmaps, d->map_cap);
			d->map[d->nmaps++] = (struct tr_digest_mapping){
				v->start, v->end, v->prot, v->flags,
				tr_strdup(v->name)};
		}
		last = v;
	}
}

/* All mappings in ascending order; what lies between them is gone. */
static int take_mappings(struct tr_digest *d, struct tr_error *err)
{
	uint64_t at = 0;

	for (size_t i = 0; i < d->vmas.n; i++) {
		const struct tr_vma *v = &d->vmas.v[i];
		int r = 0;

		if (!is_covered(d, v))
			continue;
		clear_pages(d, at, v->start, true);
		at = v->end;
		if (v->flags & MAP_SHARED)
			take_shared(d, v);
		else if (is_tracked(d, v))
			r = take_tracked(d, v, err);
		else
			r = take_untracked(d, v, err);
		if (r < 0)
			return -1;
	}
	clear_pages(d, at, UINT64_MAX, true);
	return 0;
}

/* Read what must be read. */
static void take_pieces(struct tr_digest *d)
{
	TR_AUTOFREE uint64_t *hash = tr_alloc((d->pieces.pages + 1) *
					      sizeof *hash);
	uint64_t begin = tr_now_ns(), ns, same = 0;
	size_t k = 0;

	tr_hash_pages(d->task, &d->shared->cpus, &d->pieces, hash);
	ns = tr_now_ns() - begin;
	d->work.pages_read += d->pieces.pages;
	for (size_t i = 0; i < d->pieces.n; i++) {
		const struct tr_page_piece *p = &d->pieces.p[i];

		for (size_t j = 0; j < p->pages; j++, k++)
			if (!set_page(d, p->addr + j * TR_PAGE, hash[k],
				      p->expect && p->expect[j] == hash[k]))
				same += p->open;
	}
	if (same)
		d->wasted += ns * same / d->pieces.pages;
}

static void forget_pieces(struct tr_digest *d)
{
	for (size_t i = 0; i < d->pieces.n; i++)
		free(d->pieces.p[i].expect);
	d->pieces.n = d->pieces.pages = 0;
}

/* Track from here on, if that is possible; if not, it is not tried again. */
static int start_tracking(struct tr_digest *d, struct tr_error *err)
{
	if (d->writes >= 0 || d->refused || !d->task->may_call)
		return 0;
	d->writes = tr_writes_open(d->task->tid, err);
	d->refused = d->writes < 0;
	return d->refused && err->code != TR_EUNSUPPORTED ? -1 : 0;
}

static int update(struct tr_digest *d, struct tr_error *err)
{
	TR_AUTOCLOSE int pagemap = tr_pagemap_open(d->task->tid, err);
	int r;

	d->pagemap = pagemap;
	if (pagemap < 0 || tr_vmas_read(d->task->tid, &d->vmas, err) < 0)
		return -1;
	r = take_mappings(d, err);
	if (r == 0) {
		take_pieces(d);
		list_mappings(d);
		r = protect_if_due(d, err);
	}
	forget_pieces(d);
	return r;
}

int tr_digest_update(struct tr_digest *d, const struct tr_digest_task *t,
		     bool track, struct tr_error *err)
{
	int r;

	d->task = t;
	d->work = (struct tr_digest_work){0};
	r = track ? start_tracking(d, err) : 0;
	if (r == 0)
		r = update(d, err);
	tr_vmas_release(&d->vmas);
	d->vmas = (struct tr_vmas){0};
	d->task = NULL;
	d->work.tracked = d->writes >= 0;
	drop_empty_nodes(d);
	return r;
}

#define LARGE_PAGES 16384u

bool tr_digest_is_large(const struct tr_digest *d)
{
	return d->work.tracked || d->work.pages_read >= LARGE_PAGES;
}

uint64_t tr_digest_root(const struct tr_digest *d)
{
	return d->root;
}

uint64_t tr_digest_page(const struct tr_digest *d, uint64_t addr)
{
	const struct node *n = find_node(d, addr);

	return n ? n->hash[index_in(n, addr)] : 0;
}

uint64_t tr_digest_range(const struct tr_digest *d, uint64_t start,
			 uint64_t end)
{
	uint64_t sum = 0;

	for (size_t i = node_at(d, start);
	     i < d->nnodes && d->node[i]->base < end; i++) {
		const struct node *n = d->node[i];
		uint64_t a = n->base < start ? start : n->base;

		if (a == n->base && a + NODE_BYTES <= end) {
			sum += n->sum;
			continue;
		}
		for (; a < n->base + NODE_BYTES && a < end; a += TR_PAGE)
			sum += tr_page_term(a, n->hash[index_in(n, a)]);
	}
	return sum;
}

const struct tr_page_hash *tr_digest_changed(struct tr_digest *d, size_t *n)
{
	merge_changes(d);
	d->changed = tr_realloc(d->changed,
				(d->nchanges + 1) * sizeof *d->changed);
	*n = 0;
	for (size_t i = 0; i < d->nchanges; i++) {
		const struct change *c = &d->change[i];
		uint64_t now = tr_digest_page(d, c->addr);

		if (!c->quiet && now != c->before)
			d->changed[(*n)++] = (struct tr_page_hash){c->addr, now};
	}
	return d->changed;
}

void tr_digest_mark(struct tr_digest *d)
{
	d->nchanges = d->merged = 0;
}

const struct tr_digest_mapping *tr_digest_mappings(const struct tr_digest *d,
						   size_t *n)
{
	*n = d->nmaps;
	return d->map;
}

struct tr_digest_work tr_digest_last_work(const struct tr_digest *d)
{
	return d->work;
}

uint64_t tr_digest_regs(const struct tr_regs *regs)
{
	struct tr_regs r = *regs;

	r.orig_rax = 0;
	return XXH3_64bits(&r, sizeof r);
}
