/* Traces where they are: finding the parts of one in an archive. */
#include "libtrace/store/open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/home.h"
#include "libtrace/store/member.h"
#include "libtrace/store/tape.h"
#include "libtrace/store/temporary.h"

/* Bytes that a compressed archive may expand to. */
#define MAX_EXPANDED ((uint64_t)64 << 30)

void tr_archive_name_release(struct tr_archive_name *n)
{
	free(n->file);
	*n = (struct tr_archive_name){0};
}

bool tr_archive_name(const char *path, struct tr_archive_name *n)
{
	struct stat st;
	char *slash;

	n->file = tr_strdup(path);
	n->trace = NULL;
	if (stat(n->file, &st) == 0 && S_ISREG(st.st_mode))
		return true;
	slash = strrchr(n->file, '/');
	if (slash && slash != n->file && slash[1]) {
		*slash = '\0';
		n->trace = slash + 1;
		if (stat(n->file, &st) == 0 && S_ISREG(st.st_mode))
			return true;
	}
	tr_archive_name_release(n);
	return false;
}

/* All members of the archive, with the traces they belong to. */
struct found {
	struct member {
		struct tr_member m;
		uint64_t start, size;
		bool readable;
	} *members;
	size_t n, cap;
};

static const struct member *find_member(const struct found *f,
					const struct tr_member *m)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->members[i].m.kind == m->kind &&
		    f->members[i].m.number == m->number &&
		    strcmp(f->members[i].m.trace, m->trace) == 0)
			return &f->members[i];
	return NULL;
}

static int add_member(struct found *f, struct tr_tape_in *tape,
		      const struct tr_tape_member *in, struct tr_error *err)
{
	struct member k = {.size = in->size, .readable = !in->sparse};
	const struct member *target;
	struct tr_member of;

	if (!tr_member_parse(in->path, &k.m))
		return tr_fail(err, TR_EHOSTILE, "member %llu has a name that "
			       "no packed trace has",
			       (unsigned long long)tr_tape_members(tape));
	if (in->type == TR_TAPE_LINK) {
		target = tr_member_parse(in->target, &of) ?
			 find_member(f, &of) : NULL;
		if (!target)
			return tr_fail(err, TR_EHOSTILE, "member %llu is a link "
				       "to nothing before it", (unsigned long
				       long)tr_tape_members(tape));
		k.start = target->start;
		k.size = target->size;
		k.readable = target->readable;
	} else if (!tr_tape_position(tape, &k.start)) {
		return tr_fail(err, TR_EHOSTILE, "compressed twice");
	} else if (in->type != (tr_member_is_dir(&k.m) ? TR_TAPE_DIR :
				TR_TAPE_FILE)) {
		return tr_fail(err, TR_EHOSTILE, "member %llu is of the wrong "
			       "type", (unsigned long long)
			       tr_tape_members(tape));
	}
	TR_GROW(f->members, f->n, f->cap);
	f->members[f->n++] = k;
	return 0;
}

static int read_members(struct found *f, int fd, struct tr_error *err)
{
	struct tr_tape_in *tape = tr_tape_open(fd, true, err);
	struct tr_tape_member m;
	int r;

	if (!tape)
		return -1;
	while ((r = tr_tape_next(tape, &m, err)) > 0) {
		r = add_member(f, tape, &m, err);
		if (r < 0)
			break;
	}
	tr_tape_close(tape);
	return r;
}

/* The trace meant: the one named, or the only one. */
static int choose(const struct found *f, const char *wanted,
		  const char **trace, struct tr_error *err)
{
	*trace = NULL;
	for (size_t i = 0; i < f->n; i++) {
		const char *t = f->members[i].m.trace;

		if (wanted && strcmp(t, wanted) != 0)
			continue;
		if (*trace && strcmp(*trace, t) != 0)
			return tr_fail(err, TR_EINVAL, "several traces: add "
				       "the name of one, as in ARCHIVE/%s", t);
		*trace = t;
	}
	return *trace ? 0 : tr_fail(err, TR_ENOTRACE, "no trace %s in the "
				    "archive", wanted ? wanted : "");
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tr_home_entry *)a)->name,
		      ((const struct tr_home_entry *)b)->name);
}

static void take_members(struct tr_home *p, const struct found *f,
			 const char *trace)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct member *k = &f->members[i];
		struct tr_home_entry *e;

		if (strcmp(k->m.trace, trace) != 0 ||
		    k->m.kind == TR_MEMBER_TRACE)
			continue;
		TR_GROW(p->entries, p->n, p->cap);
		e = &p->entries[p->n++];
		*e = (struct tr_home_entry){.start = k->start, .size = k->size,
					     .readable = k->readable};
		tr_member_rest(&k->m, e->name);
	}
	if (p->n)
		qsort(p->entries, p->n, sizeof *p->entries, by_name);
}

/* The archive; a compressed one as a plain one in a temporary file. */
static int open_plain(const char *file, struct tr_error *err)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), expanded, r;

	if (fd < 0)
		return tr_fail_errno(err, "cannot open");
	expanded = tr_temporary_file(err);
	r = expanded < 0 ? -1 :
	    tr_tape_decompress(fd, expanded, MAX_EXPANDED, err);
	if (r <= 0 && expanded >= 0)
		close(expanded);
	if (r != 0)
		close(fd);
	if (r < 0)
		return -1;
	fd = r ? expanded : fd;
	if (lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	close(fd);
	return tr_fail_errno(err, "seek");
}

static int open_archive(struct tr_home *p, const struct tr_archive_name *n,
			struct tr_error *err)
{
	struct found f = {0};
	const char *trace;
	int r;

	*p = (struct tr_home){.dirfd = -1, .archive = -1};
	p->archive = open_plain(n->file, err);
	if (p->archive < 0)
		return -1;
	r = read_members(&f, p->archive, err);
	if (r == 0)
		r = choose(&f, n->trace, &trace, err);
	if (r == 0)
		take_members(p, &f, trace);
	else
		tr_home_release(p);
	free(f.members);
	return r;
}

/* 1 an archive, now open; 0 something else; -1. */
static int find(struct tr_home *p, const char *path, struct tr_error *err)
{
	struct tr_archive_name n;
	int r;

	if (!tr_archive_name(path, &n))
		return 0;
	r = open_archive(p, &n, err);
	tr_archive_name_release(&n);
	return r < 0 ? tr_error_prefix(err, "%s", path) : 1;
}

struct tr_reader *tr_trace_open(const char *path, struct tr_error *err)
{
	struct tr_home p;
	int r = find(&p, path, err);

	if (r < 0)
		return NULL;
	return r ? tr_reader_open_home(&p, path, err) :
		   tr_reader_open(path, err);
}

int tr_trace_check(const char *path, tr_problem_fn *fn, void *arg,
		   struct tr_check_stats *stats, struct tr_error *err)
{
	struct tr_home p;
	int r = find(&p, path, err);

	if (r < 0)
		return -1;
	if (r == 0)
		return tr_check(path, fn, arg, stats, err);
	r = tr_check_home(&p, path, fn, arg, stats, err);
	tr_home_release(&p);
	return r;
}
