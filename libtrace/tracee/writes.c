/* Tracking the pages that a process writes. */
#include "libtrace/tracee/writes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/tracee/remote.h"

/* What headers of older distributions lack. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define PIDFD_THREAD_FLAG O_EXCL /* Linux 6.9 */
#define FEATURE_WP_ASYNC ((uint64_t)1 << 15) /* Linux 6.7 */

static pid_t thread_group(pid_t tid)
{
	TR_AUTOFREE char *path = tr_printf("/proc/%d/status", (int)tid);
	TR_AUTOFCLOSE FILE *f = fopen(path, "re");
	char line[128];
	int tgid;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Tgid: %d", &tgid) == 1)
			return tgid;
	return -1;
}

/*
 * Descriptor `fd` of the task as one of ours.  Where the kernel cannot name a
 * thread, the process stands for it: threads that unshared their descriptors
 * show when what was taken turns out to be something else.
 */
static int take(pid_t tid, int fd)
{
	TR_AUTOCLOSE int pidfd = (int)syscall(SYS_pidfd_open, tid,
					      PIDFD_THREAD_FLAG);
	TR_AUTOCLOSE int process = -1;

	if (pidfd < 0)
		process = (int)syscall(SYS_pidfd_open, thread_group(tid), 0);
	return (int)syscall(SYS_pidfd_getfd, pidfd < 0 ? process : pidfd, fd,
			    0);
}

/* -1 with errno set when it is no userfaultfd or cannot do this. */
static int set_up(int fd)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_WP_ASYNC};

	if (tr_fault("userfaultfd"))
		return -1;
	return ioctl(fd, UFFDIO_API, &api);
}

/* User mode only: no privilege is needed, and in asynchronous mode faults in
 * the kernel are resolved all the same (do_wp_page in mm/memory.c). */
int tr_writes_open(pid_t tid, struct tr_error *err)
{
	int64_t remote, closed;
	int fd, why;

	if (tr_remote_call(tid, &remote, SYS_userfaultfd,
			   O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY, 0, 0,
			   0, 0, 0, err) < 0)
		return -1;
	if (remote < 0)
		return tr_fail(err, TR_EUNSUPPORTED, "userfaultfd: %s",
			       strerror((int)-remote));
	fd = take(tid, (int)remote);
	why = fd < 0 || set_up(fd) < 0 ? errno : 0;
	if (tr_remote_call(tid, &closed, SYS_close, (uint64_t)remote, 0, 0, 0,
			   0, 0, err) < 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (!why)
		return fd;
	if (fd >= 0)
		close(fd);
	return tr_fail(err, TR_EUNSUPPORTED, "userfaultfd: %s", strerror(why));
}

int tr_writes_register(int fd, uint64_t start, uint64_t end)
{
	struct uffdio_register reg = {
		.range = {start, end - start},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg);
}
