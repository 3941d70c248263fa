/* Processes to replay in. */
#include "libtrace/tracee/vessel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/tracee/filter.h"
#include "libtrace/tracee/remote.h"
#include "libtrace/tracee/tracee.h"

#define TASK_END 0x7ffffffff000ul /* TASK_SIZE_MAX with 4-level page tables */

static void reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < 65; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * The C library registered a restartable-sequence area (rseq(2)), which the
 * kernel would go on writing to after it is unmapped, with SIGSEGV.
 */
static void unregister_rseq(void)
{
	char *area = (char *)__builtin_thread_pointer() + __rseq_offset;

	if (__rseq_size)
		syscall(SYS_rseq, area, sizeof(struct rseq),
			RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
}

/* Files are opened at this descriptor by the image code. */
#define FIRST_FREE 3

/* The child: becomes what the header says, tells so on `ready`, and waits. */
static void become_vessel(int trace_dirfd, int ready)
{
	struct rlimit no_core = {0, 0};
	void *code;
	int null;

	setsid();
	reset_signals();
	unregister_rseq();
	setrlimit(RLIMIT_CORE, &no_core);
	null = open("/dev/null", O_RDWR);
	if (null < 0 || fchdir(trace_dirfd) < 0 ||
	    dup2(ready, FIRST_FREE) < 0 || dup2(null, 0) < 0 ||
	    dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(2);
	syscall(SYS_close_range, FIRST_FREE + 1, ~0u, 0);
	code = mmap((void *)TR_INJECT_BASE, TR_INJECT_END - TR_INJECT_BASE,
		    PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE |
		    MAP_NORESERVE, -1, 0);
	if (code != (void *)TR_INJECT_BASE)
		_exit(2);
	memcpy(code, tr_inject_start,
	       (size_t)(tr_inject_end - tr_inject_start));
	memcpy((void *)TR_INJECT_CALLS, tr_calls_start,
	       (size_t)(tr_calls_end - tr_calls_start));
	if (mprotect(code, TR_INJECT_SCRATCH - TR_INJECT_CODE,
		     PROT_READ | PROT_EXEC) < 0 ||
	    personality(ADDR_NO_RANDOMIZE) < 0)
		_exit(2);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	if (write(FIRST_FREE, "r", 1) != 1)
		_exit(2);
	close(FIRST_FREE);
	for (;;)
		pause();
}

/* Unmap all but the engine pages; from then on all calls but those of the
 * injected code stop. */
static int empty(pid_t tid, struct tr_error *err)
{
	struct sock_filter code[TR_FILTER_LEN];
	struct sock_fprog prog = {.len = TR_FILTER_LEN};
	struct tr_batch b = {.n = 0};
	uint64_t at;

	tr_filter_fill(code);
	prog.filter = (void *)(uintptr_t)tr_batch_data(&b, code, sizeof code);
	at = tr_batch_data(&b, &prog, sizeof prog);
	tr_batch_add(&b, SYS_munmap, 0x1000, TR_INJECT_BASE - 0x1000, 0, 0, 0, 0);
	tr_batch_add(&b, SYS_munmap, TR_INJECT_END, TASK_END - TR_INJECT_END, 0,
		     0, 0, 0);
	tr_batch_add(&b, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	tr_batch_add(&b, SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, at, 0,
		     0, 0);
	if (tr_batch_run(tid, &b, err) < 0)
		return -1;
	if (b.call[0].result || b.call[1].result)
		return tr_fail(err, TR_ESYS, "cannot empty an address space");
	if (b.call[3].result)
		return tr_fail(err, TR_EUNSUPPORTED, "cannot install a seccomp "
			       "filter here: %s",
			       strerror((int)-b.call[3].result));
	return 0;
}

/* One byte, then the end: the child is ready and has closed its descriptor. */
static bool wait_ready(int fd)
{
	char bytes[2];

	return tr_read_full(fd, bytes, sizeof bytes) == 1;
}

pid_t tr_vessel_first(int trace_dirfd, struct tr_error *err)
{
	int ready[2], status;
	pid_t child;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return tr_fail_errno(err, "pipe");
	child = fork();
	if (child == 0)
		become_vessel(trace_dirfd, ready[1]);
	close(ready[1]);
	TR_AUTOCLOSE int ready_end = ready[0];
	if (child < 0)
		return tr_fail_errno(err, "fork");
	if (!wait_ready(ready_end)) {
		tr_fail(err, TR_EUNSUPPORTED, "the engine's pages cannot be "
			"mapped at 0x%lx here", TR_INJECT_BASE);
		goto failed;
	}
	if (tr_tracee_seize(child, false) < 0) {
		tr_fail_errno(err, "cannot trace a child process (is ptrace "
			      "forbidden here?)");
		goto failed;
	}
	if (tr_tracee_resume(child, TR_RESUME_INTERRUPT, 0) < 0 ||
	    tr_tracee_wait(child, &status, 0) < 0) {
		tr_fail_errno(err, "stopping a child process");
		goto failed;
	}
	if (empty(child, err) == 0)
		return child;
failed:
	tr_vessel_end(child);
	return -1;
}

void tr_vessel_end(pid_t tid)
{
	int status;

	kill(tid, SIGKILL);
	/* Stops that were pending are reported before the death. */
	while (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status))
		kill(tid, SIGKILL);
}

int tr_vessel_pin(pid_t tid, int64_t cpu)
{
	cpu_set_t set;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return -1;
	CPU_ZERO(&set);
	CPU_SET((int)cpu, &set);
	return sched_setaffinity(tid, sizeof set, &set);
}

void tr_vessel_limit_stack(pid_t tid, uint64_t bytes)
{
	struct rlimit rl;

	if (prlimit(tid, RLIMIT_STACK, NULL, &rl) < 0)
		return;
	rl.rlim_cur = bytes < rl.rlim_max ? bytes : rl.rlim_max;
	prlimit(tid, RLIMIT_STACK, &rl, NULL);
}
