/* Traces as directories. */
#include "cmd/cli/trace_dir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cli/progress.h"
#include "cmd/cli/trace_name.h"
#include "libtrace/base/alloc.h"

static void on_progress(void *arg, const struct tr_pack_progress *p)
{
	(void)arg;
	cli_progress(p->member, p->bytes);
}

/* What the archive leaves out may be in this user's traces. */
static int extract(const struct cli_trace_dir *d, int fd, char ***names,
		   struct tr_error *err)
{
	TR_AUTOFREE char *traces = cli_trace_name_base(err);
	const char *const places[] = {traces, NULL};
	const struct tr_unpack_options o = {
		.places = places, .temporary = true, .progress = on_progress,
	};
	struct tr_pack_stats stats;
	int r = tr_pack_extract(fd, d->temporary.path, &o, names, &stats, err);

	cli_progress_end();
	return r;
}

/* The trace named, or the only one. */
static const char *choose(char *const *names, const char *wanted,
			  struct tr_error *err)
{
	if (!wanted && names[0] && names[1]) {
		tr_fail(err, TR_EINVAL, "several traces: add the name of one, "
			"as in ARCHIVE/%s", names[0]);
		return NULL;
	}
	for (; *names; names++)
		if (!wanted || strcmp(*names, wanted) == 0)
			return *names;
	tr_fail(err, TR_ENOTRACE, "no trace %s in the archive", wanted);
	return NULL;
}

static int unpack(struct cli_trace_dir *d, const struct tr_archive_name *n,
		  struct tr_error *err)
{
	TR_AUTOCLOSE int fd = open(n->file, O_RDONLY | O_CLOEXEC);
	char **names = NULL;
	const char *name;

	if (fd < 0)
		return tr_fail_errno(err, "cannot open");
	if (tr_temporary_make(&d->temporary, err) < 0 ||
	    extract(d, fd, &names, err) < 0)
		return -1;
	name = choose(names, n->trace, err);
	if (name)
		d->path = tr_printf("%s/%s", d->temporary.path, name);
	for (char **s = names; *s; s++)
		free(*s);
	free(names);
	return d->path ? 0 : -1;
}

int cli_trace_dir_open(struct cli_trace_dir *d, const char *name,
		       struct tr_error *err)
{
	struct tr_archive_name n;
	int r;

	*d = (struct cli_trace_dir){0};
	if (!tr_archive_name(name, &n)) {
		d->path = tr_strdup(name);
		return 0;
	}
	r = unpack(d, &n, err);
	tr_archive_name_release(&n);
	return r < 0 ? tr_error_prefix(err, "%s", name) : 0;
}

void cli_trace_dir_release(struct cli_trace_dir *d)
{
	free(d->path);
	tr_temporary_remove(&d->temporary);
	*d = (struct cli_trace_dir){0};
}
