/* Output files made whole or not at all. */
#include "cmd/cli/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"

static const int deadly[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
static char *volatile pending; /* what a signal has to remove */

static void on_signal(int sig)
{
	if (pending)
		unlink(pending);
	/* SA_RESETHAND: this one ends the process. */
	raise(sig);
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal,
			       .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
	struct sigaction old;

	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		if (sigaction(deadly[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(deadly[i], &sa, NULL);
}

int cli_out_file_open(struct cli_out_file *f, const char *path, bool replace,
		      struct tr_error *err)
{
	struct stat st;

	*f = (struct cli_out_file){.path = path, .replace = replace, .fd = -1};
	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return tr_fail(err, TR_EEXIST, "%s: is a directory", path);
	if (!replace && lstat(path, &st) == 0)
		return tr_fail(err, TR_EEXIST, "%s: exists (use --force to "
			       "replace it)", path);
	f->tmp = tr_printf("%s.XXXXXX", path);
	/* mkostemp gives mode 0600, which is right: traces hold memory. */
	f->fd = mkostemp(f->tmp, O_CLOEXEC);
	if (f->fd < 0) {
		tr_fail_errno(err, "%s", path);
		free(f->tmp);
		return -1;
	}
	pending = f->tmp;
	catch_signals();
	return 0;
}

/* RENAME_NOREPLACE is refused with EINVAL by some filesystems: rename(2). */
static int put_in_place(const struct cli_out_file *f)
{
	if (!f->replace &&
	    renameat2(AT_FDCWD, f->tmp, AT_FDCWD, f->path, RENAME_NOREPLACE) == 0)
		return 0;
	if (!f->replace && errno != EINVAL && errno != ENOSYS)
		return -1;
	return rename(f->tmp, f->path);
}

int cli_out_file_commit(struct cli_out_file *f, struct tr_error *err)
{
	if (fsync(f->fd) < 0 || put_in_place(f) < 0) {
		tr_fail_errno(err, "%s", f->path);
		cli_out_file_abandon(f);
		return -1;
	}
	pending = NULL;
	close(f->fd);
	free(f->tmp);
	return 0;
}

void cli_out_file_abandon(struct cli_out_file *f)
{
	unlink(f->tmp);
	pending = NULL;
	close(f->fd);
	free(f->tmp);
}
