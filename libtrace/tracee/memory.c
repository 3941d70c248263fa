/* Memory of a traced task. */
#include "libtrace/tracee/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

int tr_memory_write_pieces(pid_t tid, const struct tr_piece *p, size_t n)
{
	TR_AUTOCLOSE int fd = open_mem(tid, O_WRONLY);

	if (fd < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (tr_pwrite_all(fd, p[i].bytes, p[i].n,
				  (off_t)p[i].addr) < 0)
			return -1;
	return 0;
}
