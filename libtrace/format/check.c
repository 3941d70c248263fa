/* Is a trace whole?  The order of the checks, the manifest, and reporting. */
#include "libtrace/format/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/checker.h"

void tr_checker_report(struct tr_checker *c, enum tr_code code,
		       const char *where, int64_t offset, uint64_t event,
		       const char *fmt, ...)
{
	char what[512];
	const struct tr_problem p = {code, where, offset, event, what};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	for (char *s = what; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
	c->stats->problems++;
	if (c->fn)
		c->fn(c->arg, &p);
}

enum tr_code tr_checker_missing(const struct tr_checker *c)
{
	return c->complete ? TR_ECORRUPT : TR_EINCOMPLETE;
}

/* A damaged manifest is a finding; an unknown format cannot be judged. */
static int check_manifest(struct tr_checker *c, struct tr_error *err)
{
	if (tr_manifest_read(c->dirfd, &c->manifest, err) == 0) {
		c->have_manifest = true;
		c->complete = c->manifest.complete;
		if (!c->complete)
			tr_checker_report(c, TR_EINCOMPLETE, "manifest.json",
					  -1, 0, "the recording did not end "
					  "cleanly");
		return 0;
	}
	if (err->code != TR_ECORRUPT)
		return tr_error_prefix(err, "%s", c->path);
	tr_checker_report(c, TR_ECORRUPT, "manifest.json", -1, 0, "%s",
			  err->text);
	return 0;
}

static void release(struct tr_checker *c)
{
	TR_TABLE_EACH(&c->files, s) {
		free(((struct tr_check_file *)s->value)->path);
		free(s->value);
	}
	tr_table_release(&c->files);
	if (c->have_manifest)
		tr_manifest_release(&c->manifest);
	free(c->refs);
	close(c->dirfd);
}

static int check(const char *path, bool stored, tr_problem_fn *fn, void *arg,
		 struct tr_check_stats *stats, struct tr_error *err)
{
	struct tr_checker c = {
		.path = path, .fn = fn, .arg = arg, .stats = stats,
	};
	int r;

	*stats = (struct tr_check_stats){0};
	c.dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c.dirfd < 0 && errno == ENOTDIR)
		return tr_fail(err, TR_ENOTRACE, "%s: not a trace (a trace is "
			       "a directory)", path);
	if (c.dirfd < 0)
		return tr_fail_errno(err, "%s", path);
	r = check_manifest(&c, err);
	if (r == 0) {
		tr_check_chunks(&c);
		if (c.have_manifest)
			tr_check_events(&c);
		if (stored)
			tr_check_stored(&c);
		tr_check_names(&c);
	}
	release(&c);
	return r;
}

int tr_check(const char *path, tr_problem_fn *fn, void *arg,
	     struct tr_check_stats *stats, struct tr_error *err)
{
	return check(path, true, fn, arg, stats, err);
}

int tr_check_events_of(const char *path, tr_problem_fn *fn, void *arg,
		       struct tr_check_stats *stats, struct tr_error *err)
{
	return check(path, false, fn, arg, stats, err);
}
