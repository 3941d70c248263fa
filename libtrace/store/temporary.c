/* Temporary files and directories. */
#include "libtrace/store/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/store/remove.h"

/* Directories in a trace in the directory. */
#define DEPTH 2

static const char *where(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && dir[0] == '/' ? dir : "/var/tmp";
}

/* O_TMPFILE is not there on every filesystem (open(2)). */
int tr_temporary_file(struct tr_error *err)
{
	TR_AUTOFREE char *name = tr_printf("%s/trace-XXXXXX", where());
	int fd = open(where(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return tr_fail_errno(err, "%s: temporary file", where());
	unlink(name);
	return fd;
}

/*
 * In a process that is nobody's child and in a session of its own, so that no
 * signal of the terminal ends it: read until the last writer is gone.
 */
static _Noreturn void wait_and_remove(int from, const char *path)
{
	char byte;

	setsid();
	if (fork() != 0)
		_exit(0);
	/* Whoever reads our output waits for nothing but the tool. */
	dup2(from, 0);
	for (int fd = 1; fd < 3; fd++)
		dup2(0, fd);
	closefrom(3);
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	tr_remove_dir(AT_FDCWD, path, DEPTH);
	_exit(0);
}

static int start_keeper(struct tr_temporary *t, struct tr_error *err)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return tr_fail_errno(err, "pipe");
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		wait_and_remove(ends[0], t->path);
	}
	close(ends[0]);
	t->keeper = ends[1];
	if (pid < 0)
		return tr_fail_errno(err, "fork");
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

int tr_temporary_make(struct tr_temporary *t, struct tr_error *err)
{
	*t = (struct tr_temporary){
		tr_printf("%s/trace-XXXXXX", where()), -1};
	if (!mkdtemp(t->path)) {
		tr_fail_errno(err, "%s: temporary directory", where());
		free(t->path);
		t->path = NULL;
		return -1;
	}
	if (start_keeper(t, err) == 0)
		return 0;
	tr_temporary_remove(t);
	return -1;
}

void tr_temporary_remove(struct tr_temporary *t)
{
	if (!t->path)
		return;
	tr_remove_dir(AT_FDCWD, t->path, DEPTH);
	if (t->keeper >= 0)
		close(t->keeper);
	free(t->path);
	*t = (struct tr_temporary){0};
}
