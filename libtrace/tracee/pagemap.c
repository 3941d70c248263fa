/* Which pages of a mapping are there. */
#include "libtrace/tracee/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"

/* PAGEMAP_SCAN of Linux 6.7 (include/uapi/linux/fs.h), which the headers of
 * older distributions lack. */
struct page_region {
	uint64_t start, end, categories;
};

struct pm_scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages,
		category_inverted, category_mask, category_anyof_mask,
		return_mask;
};

#define SCAN _IOWR('f', 16, struct pm_scan_arg)
#define SCAN_WP_MATCHING 1u
#define IS_WPALLOWED ((uint64_t)1 << 0)
#define IS_WRITTEN ((uint64_t)1 << 1)
#define IS_FILE ((uint64_t)1 << 2)
#define IS_PRESENT ((uint64_t)1 << 3)
#define IS_SWAPPED ((uint64_t)1 << 4)
#define IS_PFNZERO ((uint64_t)1 << 5)
#define IS_GUARD ((uint64_t)1 << 8) /* Linux 6.15 */
#define SCAN_REGIONS 512u

int tr_pagemap_open(pid_t tid, struct tr_error *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/pagemap", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? tr_fail_errno(err, "%s", path) : fd;
}

/*
 * The next pages from *at on that are there, up to *to; false when there are
 * none.  A mapping can be a terabyte of holes.  Without PAGEMAP_SCAN all the
 * rest is a candidate.
 */
static bool next_present(int fd, uint64_t *at, uint64_t *to, uint64_t end)
{
	struct page_region found;
	struct pm_scan_arg arg = {
		.size = sizeof arg, .start = *at, .end = end,
		.vec = (uintptr_t)&found, .vec_len = 1,
		.category_anyof_mask = IS_PRESENT | IS_SWAPPED,
		.return_mask = IS_PRESENT | IS_SWAPPED,
	};
	int n = tr_fault("pagemap-scan") ? -1 : ioctl(fd, SCAN, &arg);

	*to = end;
	if (n > 0) {
		*at = found.start;
		*to = found.end;
	}
	return n != 0;
}

static int walk_run(int fd, uint64_t start, uint64_t end, tr_pagemap_fn *run,
		    void *ctx, struct tr_error *err)
{
	uint64_t entries[TR_PM_RUN];

	for (uint64_t a = start; a < end;) {
		size_t n = (end - a) / TR_PAGE;

		if (n > TR_PM_RUN)
			n = TR_PM_RUN;
		if (tr_pread_full(fd, entries, n * sizeof *entries,
				  (off_t)(a / TR_PAGE * sizeof *entries)) !=
		    (ssize_t)(n * sizeof *entries))
			return tr_fail_errno(err, "pagemap of 0x%" PRIx64, a);
		if (run(ctx, a, entries, n, err) < 0)
			return -1;
		a += n * TR_PAGE;
	}
	return 0;
}

int tr_pagemap_walk(int fd, uint64_t start, uint64_t end, tr_pagemap_fn *run,
		    void *ctx, struct tr_error *err)
{
	uint64_t to;

	for (; start < end && next_present(fd, &start, &to, end); start = to)
		if (walk_run(fd, start, to, run, ctx, err) < 0)
			return -1;
	return 0;
}

void tr_own_runs_release(struct tr_own_runs *runs)
{
	free(runs->r);
	*runs = (struct tr_own_runs){0};
}

static void add_own(struct tr_own_runs *runs, const struct tr_own_run *add)
{
	struct tr_own_run *last = runs->n ? &runs->r[runs->n - 1] : NULL;

	if (last && last->end == add->start && last->written == add->written &&
	    last->zero == add->zero) {
		last->end = add->end;
		return;
	}
	TR_GROW(runs->r, runs->n, runs->cap);
	runs->r[runs->n++] = *add;
}

/* One PAGEMAP_SCAN from *at on; moves *at behind what it has seen. */
static int scan(int fd, uint64_t *at, uint64_t end, bool protect, bool any,
		struct tr_own_runs *runs)
{
	struct page_region found[SCAN_REGIONS];
	struct pm_scan_arg arg = {
		.size = sizeof arg, .start = *at, .end = end,
		.flags = protect ? SCAN_WP_MATCHING : 0,
		.vec = (uintptr_t)found, .vec_len = SCAN_REGIONS,
		/* Not the page cache's, but for `any`; and there or swapped
		 * out. */
		.category_inverted = any ? 0 : IS_FILE,
		.category_mask = any ? 0 : IS_FILE,
		.category_anyof_mask = IS_PRESENT | IS_SWAPPED,
		.return_mask = IS_WRITTEN | IS_PFNZERO,
	};
	int n = tr_fault("pagemap-scan") ? -1 : ioctl(fd, SCAN, &arg);

	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++)
		add_own(runs, &(struct tr_own_run){
			found[i].start, found[i].end,
			found[i].categories & IS_WRITTEN,
			found[i].categories & IS_PFNZERO});
	*at = arg.walk_end;
	return 0;
}

static int own_entries(void *ctx, uint64_t addr, const uint64_t *entries,
		       size_t n, struct tr_error *err)
{
	(void)err;
	for (size_t i = 0; i < n; i++, addr += TR_PAGE)
		if ((entries[i] & TR_PM_EXISTS) && !(entries[i] & TR_PM_FILE))
			add_own(ctx, &(struct tr_own_run){
				addr, addr + TR_PAGE, true, false});
	return 0;
}

int tr_pagemap_own(int fd, uint64_t start, uint64_t end, bool protect,
		   struct tr_own_runs *runs, struct tr_error *err)
{
	size_t before = runs->n;
	uint64_t at = start;

	while (at < end) {
		if (scan(fd, &at, end, protect, false, runs) == 0)
			continue;
		if (errno == EINTR)
			continue;
		if (errno != ENOTTY && errno != EINVAL && errno != EOPNOTSUPP)
			return tr_fail_errno(err, "PAGEMAP_SCAN at 0x%" PRIx64,
					     at);
		if (protect)
			return tr_fail(err, TR_EUNSUPPORTED,
				       "this kernel has no PAGEMAP_SCAN");
		runs->n = before;
		return tr_pagemap_walk(fd, start, end, own_entries, runs, err);
	}
	if (protect)
		return 0;
	for (size_t i = before; i < runs->n; i++)
		runs->r[i].written = true;
	return 0;
}

bool tr_pagemap_has_guards(int fd, uint64_t start, uint64_t end)
{
	struct page_region found;
	struct pm_scan_arg arg = {
		.size = sizeof arg, .start = start, .end = end,
		.vec = (uintptr_t)&found, .vec_len = 1, .max_pages = 1,
		.category_mask = IS_GUARD, .return_mask = IS_GUARD,
	};

	return ioctl(fd, SCAN, &arg) > 0;
}

/* Is there a page of the category?  1, 0, -1. */
static int any_page(int fd, uint64_t start, uint64_t end, uint64_t category)
{
	struct page_region found;
	struct pm_scan_arg arg = {
		.size = sizeof arg, .start = start, .end = end,
		.vec = (uintptr_t)&found, .vec_len = 1, .max_pages = 1,
		.category_mask = category,
		.category_anyof_mask = IS_PRESENT | IS_SWAPPED,
		.return_mask = IS_PRESENT | IS_SWAPPED,
	};

	return tr_fault("pagemap-scan") ? -1 : ioctl(fd, SCAN, &arg);
}

int tr_pagemap_tracked(int fd, uint64_t start, uint64_t end)
{
	return any_page(fd, start, end, IS_WPALLOWED);
}

bool tr_pagemap_any(int fd, uint64_t start, uint64_t end)
{
	return any_page(fd, start, end, 0) != 0;
}

int tr_pagemap_open_to_writes(int fd, uint64_t start, uint64_t end,
			      struct tr_own_runs *runs, struct tr_error *err)
{
	struct page_region found[SCAN_REGIONS];

	while (start < end) {
		struct pm_scan_arg arg = {
			.size = sizeof arg, .start = start, .end = end,
			.vec = (uintptr_t)found, .vec_len = SCAN_REGIONS,
			.category_mask = IS_WRITTEN, .return_mask = IS_WRITTEN,
		};
		int n = ioctl(fd, SCAN, &arg);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tr_fail_errno(err, "PAGEMAP_SCAN at 0x%" PRIx64,
					     start);
		for (int i = 0; i < n; i++)
			add_own(runs, &(struct tr_own_run){
				found[i].start, found[i].end, true, false});
		start = arg.walk_end;
	}
	return 0;
}

static int present_entries(void *ctx, uint64_t addr, const uint64_t *entries,
			   size_t n, struct tr_error *err)
{
	(void)err;
	for (size_t i = 0; i < n; i++, addr += TR_PAGE)
		if (entries[i] & TR_PM_EXISTS)
			add_own(ctx, &(struct tr_own_run){
				addr, addr + TR_PAGE, true, false});
	return 0;
}

int tr_pagemap_present(int fd, uint64_t start, uint64_t end,
		       struct tr_own_runs *runs, struct tr_error *err)
{
	uint64_t at = start;

	while (at < end)
		if (scan(fd, &at, end, false, true, runs) < 0 &&
		    errno != EINTR) {
			runs->n = 0;
			return tr_pagemap_walk(fd, start, end, present_entries,
					       runs, err);
		}
	return 0;
}
