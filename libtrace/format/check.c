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
	if (tr_manifest_read_at(c->home, &c->manifest, err) == 0) {
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
}

static int check(struct tr_checker *c, bool stored, struct tr_error *err)
{
	int r;

	*c->stats = (struct tr_check_stats){0};
	r = check_manifest(c, err);
	if (r == 0) {
		tr_check_chunks(c);
		if (c->have_manifest)
			tr_check_events(c);
		if (stored)
			tr_check_stored(c);
		tr_check_names(c);
	}
	release(c);
	return r;
}

static int check_directory(const char *path, bool stored, tr_problem_fn *fn,
			   void *arg, struct tr_check_stats *stats,
			   struct tr_error *err)
{
	struct tr_home p = TR_HOME_DIRECTORY(open(path,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct tr_checker c = {.path = path, .home = &p, .fn = fn, .arg = arg,
			       .stats = stats};
	int r;

	*stats = (struct tr_check_stats){0};
	if (p.dirfd < 0 && errno == ENOTDIR)
		return tr_fail(err, TR_ENOTRACE, "%s: not a trace (a trace is "
			       "a directory)", path);
	if (p.dirfd < 0)
		return tr_fail_errno(err, "%s", path);
	r = check(&c, stored, err);
	tr_home_release(&p);
	return r;
}

int tr_check(const char *path, tr_problem_fn *fn, void *arg,
	     struct tr_check_stats *stats, struct tr_error *err)
{
	return check_directory(path, true, fn, arg, stats, err);
}

int tr_check_events_of(const char *path, tr_problem_fn *fn, void *arg,
		       struct tr_check_stats *stats, struct tr_error *err)
{
	return check_directory(path, false, fn, arg, stats, err);
}

int tr_check_home(const struct tr_home *home, const char *path,
		   tr_problem_fn *fn, void *arg, struct tr_check_stats *stats,
		   struct tr_error *err)
{
	struct tr_checker c = {.path = path, .home = home, .fn = fn,
			       .arg = arg, .stats = stats};

	return check(&c, true, err);
}
