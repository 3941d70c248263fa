/* Default names of traces. */
#include "cmd/cli/trace_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"

#define NAME_LIMIT 200 /* bytes of a command's name; NAME_MAX is 255 */

/* The XDG base directory specification: a relative path is to be ignored. */
static char *base_directory(const char *variable, const char *in_home,
			    const char *end)
{
	const char *base = getenv(variable), *home = getenv("HOME");

	if (base && base[0] == '/')
		return tr_printf("%s/%s", base, end);
	if (home && home[0] == '/')
		return tr_printf("%s/%s/%s", home, in_home, end);
	return NULL;
}

char *cli_trace_name_base(struct tr_error *err)
{
	char *base = base_directory("XDG_DATA_HOME", ".local/share", "trace");

	if (!base)
		tr_fail(err, TR_EINVAL, "no trace directory given, and neither "
			"XDG_DATA_HOME nor HOME is an absolute path");
	return base;
}

char *cli_trace_name_cache(void)
{
	return base_directory("XDG_CACHE_HOME", ".cache", "trace/code");
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 || errno != ENOENT;
}

char *cli_trace_name_new(const char *command, unsigned *n, struct tr_error *err)
{
	TR_AUTOFREE char *base = cli_trace_name_base(err);
	const char *slash = strrchr(command, '/');
	const char *name = slash ? slash + 1 : command;

	if (!base || tr_make_dirs(base, 0700, err) < 0)
		return NULL;
	if (!*name)
		name = "trace";
	for (;; (*n)++) {
		TR_AUTOFREE char *path = tr_printf("%s/%.*s-%u", base,
						   NAME_LIMIT, name, *n);

		if (!exists(path))
			return tr_strdup(path);
		if (*n == UINT32_MAX) {
			tr_fail(err, TR_EEXIST, "%s: no free name", base);
			return NULL;
		}
	}
}

int cli_trace_name_set_latest(const char *path, struct tr_error *err)
{
	const char *name = strrchr(path, '/') + 1;
	TR_AUTOFREE char *link = tr_printf("%.*slatest", (int)(name - path), path);
	TR_AUTOFREE char *tmp = tr_printf("%s.%ld", link, (long)getpid());

	unlink(tmp);
	if (symlink(name, tmp) < 0)
		return tr_fail_errno(err, "%s", tmp);
	if (rename(tmp, link) < 0) {
		tr_fail_errno(err, "%s", link);
		unlink(tmp);
		return -1;
	}
	return 0;
}

char *cli_trace_name_pick(const char *operand, struct tr_error *err)
{
	TR_AUTOFREE char *base = NULL, *latest = NULL;
	struct stat st;

	if (operand)
		return tr_strdup(operand);
	base = cli_trace_name_base(err);
	if (!base)
		return NULL;
	latest = tr_printf("%s/latest", base);
	if (stat(latest, &st) == 0)
		return tr_strdup(latest);
	if (errno == ENOENT)
		tr_fail(err, TR_ENOTRACE, "no trace given and none recorded "
			"in %s yet", base);
	else
		tr_fail_errno(err, "%s", latest);
	return NULL;
}
