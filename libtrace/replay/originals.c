/*
 * Pages of stored files that are not what they were: found with the help of the
 * original, where that is still there, and believed when the recorded digest
 * of the mapping says so.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/page_hash.h"
#include "libtrace/tracee/pagemap.h"

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Zeros behind the end, as in memory. */
static bool read_page(int fd, uint64_t offset, uint8_t page[TR_PAGE])
{
	memset(page, 0, TR_PAGE);
	return tr_pread_full(fd, page, TR_PAGE, (off_t)offset) >= 0;
}

/* The hash of the page as it was, in *was; false when it is the same. */
static bool is_changed(int original, int stored, uint64_t offset,
		       uint64_t *was)
{
	uint8_t a[TR_PAGE], b[TR_PAGE];

	if (!read_page(original, offset, a) || !read_page(stored, offset, b) ||
	    memcmp(a, b, TR_PAGE) == 0)
		return false;
	*was = tr_page_hash(a);
	return true;
}

/* The file that the vessel has mapped where the recording had the original. */
static int open_stored(const struct rtask *t, const struct tr_map *m,
		       uint64_t *offset)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct tr_error ignored;
	const struct tr_vma *v;

	if (tr_vmas_read(t->tid, &vmas, &ignored) < 0)
		return -1;
	v = tr_vmas_find(&vmas, m->start);
	if (!v || !v->ino || v->end < m->end)
		return -1;
	*offset = v->offset + (m->start - v->start);
	return open_file(v->name);
}

size_t rep_changed_pages(const struct rtask *t, const struct tr_map *m,
			 uint64_t recorded, uint64_t own,
			 struct tr_page_hash *page, size_t room)
{
	TR_AUTOFREE char *name = tr_printf("%.*s", (int)m->name.len,
					   (const char *)m->name.data);
	TR_AUTOCLOSE int original = *name == '/' ? open_file(name) : -1;
	uint64_t offset, was;
	TR_AUTOCLOSE int stored = original < 0 ? -1
					       : open_stored(t, m, &offset);
	size_t n = 0;

	for (uint64_t a = m->start; stored >= 0 && a < m->end; a += TR_PAGE) {
		if (!is_changed(original, stored, offset + (a - m->start),
				&was))
			continue;
		own += tr_page_term(a, was) -
		       tr_page_term(a, tr_digest_page(t->as->digest, a));
		if (n < room)
			page[n] = (struct tr_page_hash){a, was};
		n++;
	}
	return own == recorded ? n : 0;
}
