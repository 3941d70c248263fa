/* Extensions of the kernel that a program may find missing: each is used if it
 * is there, and works then; if it is not, the errno says so. */
#include <asm/prctl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <fcntl.h>

#include "check.h"

static int missing(long result, int error)
{
	return result == -1 && (errno == ENOSYS || errno == error);
}

/* Reads through a ring that the kernel and the program share. */
static void asynchronous_io(void)
{
	aio_context_t ctx = 0;
	char buf[8] = "";
	struct iocb cb = {.aio_lio_opcode = IOCB_CMD_PREAD,
			  .aio_buf = (unsigned long)buf, .aio_nbytes = 4};
	struct iocb *cbs = &cb;
	struct io_event ev;
	long r = syscall(SYS_io_setup, 8, &ctx);

	if (missing(r, ENOSYS))
		return;
	CHECK(r == 0);
	cb.aio_fildes = (unsigned)open("/proc/self/exe", O_RDONLY);
	CHECK(syscall(SYS_io_submit, ctx, 1, &cbs) == 1);
	CHECK(syscall(SYS_io_getevents, ctx, 1, 1, &ev, NULL) == 1);
	CHECK(ev.res == 4 && memcmp(buf, "\177ELF", 4) == 0);
	CHECK(syscall(SYS_io_destroy, ctx) == 0);
}

/* Memory that only the program itself can read. */
static void secret_memory(void)
{
	int fd = (int)syscall(447, 0); /* memfd_secret */
	char *p;

	if (missing(fd, ENOSYS))
		return;
	CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	strcpy(p, "secret\n");
	CHECK(strlen(p) == 7);
}

/* The segments of the program's own: none. */
static void local_descriptors(void)
{
	char table[64];
	long r = syscall(SYS_modify_ldt, 0, table, sizeof table);

	CHECK(missing(r, ENOSYS) || (int)r == 0);
}

static void protection_keys(void)
{
	int key = pkey_alloc(0, PKEY_DISABLE_WRITE);
	int *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	*p = 7;
	/* Key -1 is no key: mprotect(2). */
	CHECK(pkey_mprotect(p, 4096, PROT_READ, -1) == 0 && *p == 7);
	if (missing(key, ENOSPC) || (key == -1 && errno == EINVAL))
		return;
	CHECK(key > 0);
	CHECK(pkey_mprotect(p, 4096, PROT_READ | PROT_WRITE, key) == 0);
	CHECK(pkey_set(key, 0) == 0);
	*p = 8;
	CHECK(*p == 8 && pkey_free(key) == 0);
}

/* Memory that the kernel may take away. */
static void lazy_memory(void)
{
	char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *q;

	CHECK(p != MAP_FAILED);
	memset(p, 1, 65536);
	CHECK(madvise(p, 65536, 8 /* MADV_FREE */) == 0 || errno == EINVAL);
	memset(p, 2, 65536);
	CHECK(p[65535] == 2);
	q = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		 8 /* MAP_DROPPABLE */ | MAP_ANONYMOUS, -1, 0);
	CHECK(q != MAP_FAILED || errno == EINVAL);
	CHECK(madvise(p, 65536, MADV_DONTNEED) == 0 && p[65535] == 0);
}

static void own_advice(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v = {p, 4096};
	int self = (int)syscall(434, getpid(), 0); /* pidfd_open */

	CHECK(p != MAP_FAILED);
	strcpy(p, "x");
	if (self < 0)
		return;
	/* process_madvise: since 6.13 it may discard one's own memory. */
	if (syscall(440, self, &v, 1, MADV_DONTNEED, 0) == 4096)
		CHECK(p[0] == 0);
	else
		CHECK((errno == EINVAL || errno == ENOSYS) && p[0] == 'x');
}

static void processor_state(void)
{
	unsigned long v = 0;

	CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, &v) == 0 && v != 0);
	v = 0;
	if (syscall(SYS_arch_prctl, 0x5005, &v) == 0) /* ARCH_SHSTK_STATUS */
		CHECK(v == 0);
	if (syscall(SYS_arch_prctl, 0x1022, &v) == 0) /* .._GET_XCOMP_PERM */
		CHECK(v & 1);
	CHECK(syscall(SYS_arch_prctl, 0x7777, &v) == -1 && errno == EINVAL);
}

/* A program that holds keys lets nobody look into it. */
static void not_dumpable(void)
{
	CHECK(prctl(PR_GET_DUMPABLE) == 1);
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0);
	CHECK(access("/etc/passwd", R_OK) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_GET_DUMPABLE) == 1);
	CHECK(prctl(PR_SET_DUMPABLE, 3) == -1 && errno == EINVAL);
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
}

int main(void)
{
	asynchronous_io();
	secret_memory();
	local_descriptors();
	protection_keys();
	lazy_memory();
	own_advice();
	processor_state();
	not_dumpable();
	puts("ok");
	return 0;
}
