/* Memory of a traced task. */
#include "libtrace/tracee/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"

static int open_mem(pid_t tid, int flags)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/mem", (int)tid);
	return open(path, flags | O_CLOEXEC);
}

static struct iovec vec(uint64_t addr, size_t n)
{
	return (struct iovec){(void *)(uintptr_t)addr, n};
}

size_t tr_memory_read_some(pid_t tid, uint64_t addr, void *buf, size_t n)
{
	size_t got = 0;

	/* A transfer stops at the first page that is not readable. */
	while (got < n) {
		struct iovec local = {(char *)buf + got, n - got};
		struct iovec remote = vec(addr + got, n - got);
		ssize_t r = process_vm_readv(tid, &local, 1, &remote, 1, 0);

		if (r <= 0)
			break;
		got += (size_t)r;
	}
	if (got < n) {
		TR_AUTOCLOSE int fd = open_mem(tid, O_RDONLY);
		ssize_t r = fd < 0 ? -1 : tr_pread_full(fd, (char *)buf + got,
							n - got,
							(off_t)(addr + got));

		if (r > 0)
			got += (size_t)r;
	}
	return got;
}

static const struct tr_window_page *page_of(struct tr_window *w, uint64_t addr)
{
	struct tr_window_page *p;

	for (unsigned i = 0; i < TR_WINDOW_PAGES; i++)
		if (addr && w->page[i].addr == addr)
			return &w->page[i];
	p = &w->page[w->next++ % TR_WINDOW_PAGES];
	p->addr = addr;
	p->readable = tr_memory_read(w->tid, addr, p->bytes,
				     sizeof p->bytes) == 0;
	return p;
}

size_t tr_window_read(struct tr_window *w, uint64_t addr, void *buf, size_t n)
{
	const struct tr_window_page *p;
	uint64_t at = addr % sizeof p->bytes;

	if (n > sizeof p->bytes - at)
		return tr_memory_read_some(w->tid, addr, buf, n);
	p = page_of(w, addr - at);
	if (!p->readable)
		return 0;
	memcpy(buf, p->bytes + at, n);
	return n;
}

int tr_memory_read(pid_t tid, uint64_t addr, void *buf, size_t n)
{
	if (tr_memory_read_some(tid, addr, buf, n) == n)
		return 0;
	errno = EFAULT;
	return -1;
}

int tr_memory_write(pid_t tid, uint64_t addr, const void *buf, size_t n)
{
	struct iovec local = {(void *)(uintptr_t)buf, n};
	struct iovec remote = vec(addr, n);
	ssize_t r = process_vm_writev(tid, &local, 1, &remote, 1, 0);

	if (r == (ssize_t)n)
		return 0;
	TR_AUTOCLOSE int fd = open_mem(tid, O_WRONLY);
	if (fd < 0)
		return -1;
	return tr_pwrite_all(fd, buf, n, (off_t)addr);
}

static int by_address(const void *a, const void *b)
{
	const struct tr_piece *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Write n pieces that lie in one page. */
static int write_in_page(int fd, const struct tr_piece *p, size_t n)
{
	const struct tr_piece *last = &p[n - 1];
	size_t len = (size_t)(last->addr + last->n - p->addr);
	uint8_t span[4096];

	if (n == 1)
		return tr_pwrite_all(fd, p->bytes, len, (off_t)p->addr);
	if (tr_pread_full(fd, span, len, (off_t)p->addr) != (ssize_t)len)
		return -1;
	for (size_t i = 0; i < n; i++)
		memcpy(span + (p[i].addr - p->addr), p[i].bytes, p[i].n);
	return tr_pwrite_all(fd, span, len, (off_t)p->addr);
}

int tr_memory_write_pieces(pid_t tid, struct tr_piece *p, size_t n)
{
	TR_AUTOCLOSE int fd = n ? open_mem(tid, O_RDWR) : -1;
	size_t first = 0;

	if (n == 0)
		return 0;
	if (fd < 0)
		return -1;
	qsort(p, n, sizeof *p, by_address);
	while (first < n) {
		uint64_t page = p[first].addr & ~UINT64_C(4095);
		size_t end = first + 1;

		while (end < n && p[end].addr + p[end].n <= page + 4096)
			end++;
		if (write_in_page(fd, p + first, end - first) < 0)
			return -1;
		first = end;
	}
	return 0;
}
