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

int tr_memory_write_pieces(pid_t tid, struct tr_piece *p, size_t n)
{
	uint8_t joined[4096];
	TR_AUTOCLOSE int fd = n ? open_mem(tid, O_WRONLY) : -1;

	if (n == 0)
		return 0;
	if (fd < 0)
		return -1;
	qsort(p, n, sizeof *p, by_address);
	for (size_t i = 0; i < n;) {
		const void *bytes = p[i].bytes;
		uint64_t addr = p[i].addr;
		size_t len = p[i++].n;

		while (i < n && p[i].addr == addr + len &&
		       len + p[i].n <= sizeof joined) {
			if (bytes != joined)
				memcpy(joined, bytes, len);
			bytes = joined;
			memcpy(joined + len, p[i].bytes, p[i].n);
			len += p[i++].n;
		}
		if (tr_pwrite_all(fd, bytes, len, (off_t)addr) < 0)
			return -1;
	}
	return 0;
}
