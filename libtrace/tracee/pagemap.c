/* Which pages of a mapping are there. */
#include "libtrace/tracee/pagemap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "libtrace/base/io.h"

int tr_pagemap_open(pid_t tid, struct tr_error *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/pagemap", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? tr_fail_errno(err, "%s", path) : fd;
}

int tr_pagemap_walk(int fd, uint64_t start, uint64_t end, tr_pagemap_fn *run,
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
