/* Starting the program to record. */
#include "libtrace/tracee/spawn.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/tracee/filter.h"
#include "libtrace/tracee/tracee.h"

/* 0 when path can be executed by this recorder. */
static int check_program(const char *path, struct tr_error *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return tr_fail(err, errno == EACCES ? TR_ENOEXEC : TR_ENOPROG,
			       "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return tr_fail(err, TR_ENOEXEC, "%s: not a regular file", path);
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
		return tr_fail(err, TR_ENOEXEC, "%s: %s", path,
			       strerror(errno));
	TR_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr eh;
	if (fd >= 0 && tr_read_full(fd, &eh, sizeof eh) == sizeof eh &&
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) == 0 &&
	    (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_machine != EM_X86_64))
		return tr_fail(err, TR_ENOEXEC,
			       "%s: not an x86-64 program; only 64-bit x86 "
			       "programs can be recorded", path);
	return 0;
}

char *tr_find_program(const char *name, struct tr_error *err)
{
	const char *env = getenv("PATH");
	TR_AUTOFREE char *path = tr_strdup(env ? env : "/bin:/usr/bin");
	struct tr_error first = {0};
	char *save = NULL;

	if (!*name) {
		tr_fail(err, TR_ENOPROG, "'': No such file or directory");
		return NULL;
	}
	if (strchr(name, '/'))
		return check_program(name, err) < 0 ? NULL : tr_strdup(name);
	for (char *dir = strtok_r(path, ":", &save); dir;
	     dir = strtok_r(NULL, ":", &save)) {
		TR_AUTOFREE char *full = tr_printf("%s/%s", dir, name);

		if (check_program(full, err) == 0)
			return tr_strdup(full);
		if (err->code != TR_ENOPROG && !first.code)
			first = *err;
	}
	if (first.code)
		*err = first;
	else
		tr_fail(err, TR_ENOPROG, "%s: command not found", name);
	return NULL;
}

static int install_filter(void)
{
	struct sock_filter code[TR_FILTER_LEN];
	struct sock_fprog prog = {TR_FILTER_LEN, code};

	tr_filter_fill(code);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0)
		return 0;
	/* Without CAP_SYS_ADMIN the kernel wants no_new_privs first. */
	if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* The child: what it does is not recorded, only what it turns into. */
static void become_program(const struct tr_spawn *s, int go, int report)
{
	char byte;
	int failed;

	if (s->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(s->cpu, &set);
		sched_setaffinity(0, sizeof set, &set);
	}
	if (personality(ADDR_NO_RANDOMIZE) < 0 || tr_read_full(go, &byte, 1) != 1)
		goto out;
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	if (install_filter() < 0)
		goto out;
	execv(s->path, (char *const *)(uintptr_t)s->argv);
	if (errno == ENOEXEC) {
		size_t n = 0;
		const char **sh;

		while (s->argv[n])
			n++;
		sh = tr_alloc((n + 2) * sizeof *sh);
		sh[0] = "/bin/sh";
		sh[1] = s->path;
		for (size_t i = 1; i < n; i++)
			sh[i + 1] = s->argv[i];
		execv(sh[0], (char *const *)(uintptr_t)sh);
		errno = ENOEXEC;
	}
out:
	failed = errno;
	if (write(report, &failed, sizeof failed) < 0)
		_exit(126);
	_exit(126);
}

/*
 * Take the child through its exec: it is traced already, so that its system
 * calls before and including the exec stop at the filter and are let through.
 * Returns when it has stopped at the exec event.
 */
static int run_to_exec(pid_t child)
{
	int status;

	for (;;) {
		if (tr_tracee_wait(child, &status, 0) < 0)
			return -1;
		if (!WIFSTOPPED(status)) {
			errno = ECHILD;
			return -1;
		}
		if (tr_stop_event(status) == PTRACE_EVENT_EXEC)
			return 0;
		if (tr_tracee_resume(child, TR_RESUME_CONT,
				     tr_stop_event(status) ? 0
				     : WSTOPSIG(status)) < 0)
			return -1;
	}
}

pid_t tr_spawn(const struct tr_spawn *s, struct tr_error *err)
{
	int go[2], report[2], failed = 0;
	pid_t child;

	if (pipe2(go, O_CLOEXEC) < 0)
		return tr_fail_errno(err, "pipe");
	if (pipe2(report, O_CLOEXEC) < 0) {
		tr_fail_errno(err, "pipe");
		close(go[0]);
		close(go[1]);
		return -1;
	}
	child = fork();
	if (child == 0) {
		close(go[1]);
		become_program(s, go[0], report[1]);
	}
	close(go[0]);
	close(report[1]);
	TR_AUTOCLOSE int go_end = go[1];
	TR_AUTOCLOSE int report_end = report[0];
	if (child < 0)
		return tr_fail_errno(err, "fork");
	if (tr_tracee_seize(child, true) < 0) {
		tr_fail_errno(err, "cannot trace a child process (is ptrace "
			      "forbidden here?)");
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		return -1;
	}
	if (write(go_end, "g", 1) == 1 && run_to_exec(child) == 0)
		return child;
	if (tr_read_full(report_end, &failed, sizeof failed) != sizeof failed)
		failed = ECHILD;
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	if (failed == ENOENT) /* the file itself is there */
		return tr_fail(err, TR_ENOPROG, "%s: its interpreter was not "
			       "found", s->path);
	return tr_fail(err, TR_ENOEXEC, "%s: %s", s->path, strerror(failed));
}

static sigjmp_buf trapped;

static void on_trap(int sig)
{
	(void)sig;
	siglongjmp(trapped, 1);
}

bool tr_tsc_traps(void)
{
	const struct sigaction act = {.sa_handler = on_trap};
	struct sigaction old;
	volatile bool traps = true;
	int before = PR_TSC_ENABLE;

	/* Of this thread alone. */
	prctl(PR_GET_TSC, &before, 0, 0, 0);
	sigaction(SIGSEGV, &act, &old);
	if (sigsetjmp(trapped, 1) == 0) {
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
		(void)__rdtsc();
		traps = false;
	}
	prctl(PR_SET_TSC, before, 0, 0, 0);
	sigaction(SIGSEGV, &old, NULL);
	return traps;
}
