/* Removing traces that have expired. */
#include "libtrace/store/prune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/format/manifest.h"
#include "libtrace/store/remove.h"

#define PREFIX ".pruned-"

struct job {
	const char *dir;
	int fd;
	int64_t now_ns;
	bool remove;
	tr_prune_fn *fn;
	void *arg;
};

/* When the trace expires; 0: never, or it is none, or in use. */
static int64_t expiry(int at, const char *name)
{
	TR_AUTOCLOSE int fd = openat(at, name, O_RDONLY | O_DIRECTORY |
				     O_NOFOLLOW | O_CLOEXEC);
	struct tr_manifest m;
	struct tr_error ignored;
	int64_t when;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
	    tr_manifest_read(fd, &m, &ignored) < 0)
		return 0;
	when = m.expires_ns;
	tr_manifest_release(&m);
	return when;
}

/* A rename first: nobody finds a half of it under its name. */
static int remove_trace(const struct job *j, const char *name,
			struct tr_error *err)
{
	char hidden[NAME_MAX + 1];

	snprintf(hidden, sizeof hidden, PREFIX "%.200s", name);
	tr_remove_dir(j->fd, hidden, 1);
	if (renameat(j->fd, name, j->fd, hidden) < 0)
		return tr_fail_errno(err, "%s/%s", j->dir, name);
	if (tr_fault("prune"))
		return tr_fail_errno(err, "%s/%s", j->dir, name);
	tr_remove_dir(j->fd, hidden, 1);
	if (faccessat(j->fd, hidden, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return tr_fail(err, TR_ESYS, "%s/%s: not everything in it could "
			       "be removed", j->dir, hidden);
	return 0;
}

static int consider(const struct job *j, const char *name, struct tr_error *err)
{
	TR_AUTOFREE char *path = tr_printf("%s/%s", j->dir, name);
	struct tr_pruned p = {.path = path};

	if (strncmp(name, PREFIX, strlen(PREFIX)) == 0) {
		if (j->remove)
			tr_remove_dir(j->fd, name, 1);
		return 0;
	}
	p.expires_ns = expiry(j->fd, name);
	if (name[0] == '.' || p.expires_ns == 0 || p.expires_ns > j->now_ns)
		return 0;
	if (j->remove && remove_trace(j, name, err) < 0)
		return -1;
	j->fn(j->arg, &p);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names first: the directory changes while they are worked on. */
static int read_names(DIR *d, char ***names, size_t *n)
{
	const struct dirent *e;
	size_t cap = 0;

	while (errno = 0, (e = readdir(d)) != NULL) {
		TR_GROW(*names, *n, cap);
		(*names)[(*n)++] = tr_strdup(e->d_name);
	}
	if (*n)
		qsort(*names, *n, sizeof **names, by_name);
	return errno ? -1 : 0;
}

int tr_prune(const char *dir, int64_t now_ns, bool remove, tr_prune_fn *fn,
	     void *arg, struct tr_error *err)
{
	struct job j = {dir, -1, now_ns, remove, fn, arg};
	DIR *d = opendir(dir);
	char **names = NULL;
	size_t n = 0;
	int r = 0;

	if (!d || read_names(d, &names, &n) < 0)
		r = tr_fail_errno(err, "%s", dir);
	j.fd = d ? dirfd(d) : -1;
	for (size_t i = 0; i < n; i++) {
		if (r == 0)
			r = consider(&j, names[i], err);
		free(names[i]);
	}
	free(names);
	if (d)
		closedir(d);
	return r;
}
