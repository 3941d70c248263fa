/* What descriptors stand for. */
#include "libtrace/model/paths.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/table.h"
#include "libtrace/model/syscalls.h"

/* Traces are not to be trusted: a descriptor above this is not remembered, and
 * nothing new is when all tables together have this many places. */
#define MAX_FD 65536
#define MAX_PLACES ((size_t)16 << 20)

struct entry {
	char *path; /* NULL: not open, or not known */
	bool cloexec;
};

/* A table of descriptors (CLONE_FILES shares it). */
struct files {
	unsigned users;
	struct entry *fd;
	size_t n;
	size_t *places; /* of all tables */
};

struct task {
	struct files *files;
	char *cwd;
	char *path; /* that a call which has begun was given */
};

struct tr_paths {
	struct tr_table tasks; /* by id */
	size_t places;
	char *cwd;
	char *shown;
};

struct tr_paths *tr_paths_new(const char *cwd)
{
	struct tr_paths *p = tr_alloc(sizeof *p);

	p->cwd = tr_strdup(cwd ? cwd : "");
	return p;
}

/* ---- tables ---- */

static void files_leave(struct files *f)
{
	if (--f->users > 0)
		return;
	for (size_t i = 0; i < f->n; i++)
		free(f->fd[i].path);
	*f->places -= f->n;
	free(f->fd);
	free(f);
}

static struct files *files_new(size_t *places)
{
	struct files *f = tr_alloc(sizeof *f);

	f->users = 1;
	f->places = places;
	return f;
}

static void files_set(struct files *f, int64_t fd, const char *path,
		      bool cloexec)
{
	if (fd < 0 || fd >= MAX_FD || ((size_t)fd >= f->n && !path))
		return;
	if ((size_t)fd >= f->n) {
		size_t n = (size_t)fd + 16;

		if (*f->places + n - f->n > MAX_PLACES)
			return;
		*f->places += n - f->n;
		f->fd = tr_realloc(f->fd, n * sizeof *f->fd);
		memset(f->fd + f->n, 0, (n - f->n) * sizeof *f->fd);
		f->n = n;
	}
	/* The path may be the entry's own. */
	char *copy = path ? tr_strdup(path) : NULL;

	free(f->fd[fd].path);
	f->fd[fd] = (struct entry){copy, cloexec};
}

static const char *files_get(const struct files *f, int64_t fd)
{
	return fd >= 0 && (uint64_t)fd < f->n ? f->fd[fd].path : NULL;
}

static struct files *files_copy(const struct files *f)
{
	struct files *copy = files_new(f->places);

	for (size_t i = 0; i < f->n; i++)
		files_set(copy, (int64_t)i, f->fd[i].path, f->fd[i].cloexec);
	return copy;
}

static struct task *task_of(struct tr_paths *p, uint32_t id)
{
	struct task *t = tr_table_get(&p->tasks, id);

	if (!t) {
		t = tr_alloc(sizeof *t);
		t->files = files_new(&p->places);
		t->cwd = tr_strdup(p->cwd);
		tr_table_set(&p->tasks, id, t);
	}
	return t;
}

static void task_leave(struct task *t)
{
	if (t->files)
		files_leave(t->files);
	free(t->cwd);
	free(t->path);
	*t = (struct task){0};
}

void tr_paths_free(struct tr_paths *p)
{
	if (!p)
		return;
	TR_TABLE_EACH(&p->tasks, s) {
		task_leave(s->value);
		free(s->value);
	}
	tr_table_release(&p->tasks);
	free(p->cwd);
	free(p->shown);
	free(p);
}

/* ---- paths ---- */

static uint64_t argument(const struct tr_event *ev, unsigned i)
{
	const struct tr_regs *r = &ev->regs;
	const uint64_t args[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8,
				  r->r9};

	return args[i];
}

static int64_t fd_argument(const struct tr_event *ev, unsigned i)
{
	return (int32_t)argument(ev, i);
}

/* The string that argument i named; owned by the caller, or NULL. */
static char *string_argument(const struct tr_event *ev, unsigned i)
{
	for (size_t k = 0; k < ev->narg; k++)
		if (ev->arg[k].index == i && ev->arg[k].is_string)
			return tr_strndup(ev->arg[k].bytes.data,
					  ev->arg[k].bytes.len);
	return NULL;
}

static char *join(const char *dir, const char *path)
{
	if (*path == '/' || !dir || !*dir)
		return tr_strdup(path);
	return tr_printf("%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/",
			 path);
}

/* Which arguments a call's path and its directory are in. */
static bool path_arguments(uint64_t nr, int *path, int *dir)
{
	*dir = -1;
	*path = 0;
	switch (nr) {
	case SYS_open:
	case SYS_creat:
	case SYS_chdir:
	case SYS_memfd_create:
		return true;
	case SYS_openat:
	case SYS_openat2:
		*dir = 0;
		*path = 1;
		return true;
	}
	return false;
}

/* The path a call was given, made absolute. */
static char *path_of(const struct task *t, const struct tr_event *ev)
{
	TR_AUTOFREE char *given = NULL;
	const char *base = t->cwd;
	int path, dir;

	if (!path_arguments(tr_event_get(ev, TR_F_NR), &path, &dir))
		return NULL;
	given = string_argument(ev, (unsigned)path);
	if (!given)
		return NULL;
	if (tr_event_get(ev, TR_F_NR) == SYS_memfd_create)
		return tr_printf("memfd:%s", given);
	if (dir >= 0 && fd_argument(ev, (unsigned)dir) != AT_FDCWD)
		base = files_get(t->files, fd_argument(ev, (unsigned)dir));
	return join(base, given);
}

/* ---- calls ---- */

/* Two descriptors that the call wrote to memory. */
static void learn_two(struct task *t, const struct tr_event *ev,
		      const char *kind, uint64_t flags)
{
	TR_AUTOFREE char *name = tr_printf("%s:[%" PRIu64 "]", kind,
					   ev->number);

	for (size_t i = 0; i < ev->nmem; i++) {
		const uint8_t *m = ev->mem[i].bytes.data;

		if (ev->mem[i].bytes.len != 8)
			continue;
		files_set(t->files, (int32_t)tr_get_le32(m), name,
			  flags & O_CLOEXEC);
		files_set(t->files, (int32_t)tr_get_le32(m + 4), name,
			  flags & O_CLOEXEC);
	}
}

static void learn_named(struct task *t, const struct tr_event *ev, int64_t fd,
			const char *kind, uint64_t flags)
{
	TR_AUTOFREE char *name = tr_printf("%s:[%" PRIu64 "]", kind,
					   ev->number);

	files_set(t->files, fd, name, flags & O_CLOEXEC);
}

static void learn_dup(struct task *t, int64_t from, int64_t to, bool cloexec)
{
	if (from != to)
		files_set(t->files, to, files_get(t->files, from), cloexec);
}

static void learn_fcntl(struct task *t, const struct tr_event *ev, int64_t fd,
			int64_t result)
{
	switch ((int)argument(ev, 1)) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		learn_dup(t, fd, result,
			  (int)argument(ev, 1) == F_DUPFD_CLOEXEC);
		break;
	case F_SETFD:
		if (files_get(t->files, fd))
			t->files->fd[fd].cloexec = argument(ev, 2) & FD_CLOEXEC;
		break;
	default:
		break;
	}
}

static void learn_close_range(struct task *t, const struct tr_event *ev)
{
	uint64_t first = argument(ev, 0), last = (uint32_t)argument(ev, 1);

	for (uint64_t i = first; i <= last && i < t->files->n; i++) {
		/* CLOSE_RANGE_CLOEXEC of <linux/close_range.h> */
		if (argument(ev, 2) & 4)
			t->files->fd[i].cloexec = true;
		else
			files_set(t->files, (int64_t)i, NULL, false);
	}
}

static void learn_cwd(struct task *t, const char *path)
{
	if (!path)
		return;
	free(t->cwd);
	t->cwd = tr_strdup(path);
}

/* A call that succeeded; `path` is what it was given. */
static void learn_call(struct task *t, const struct tr_event *ev,
		       const char *path)
{
	int64_t result = (int64_t)tr_event_get(ev, TR_F_RESULT);
	int64_t fd = fd_argument(ev, 0);

	switch (tr_event_get(ev, TR_F_NR)) {
	case SYS_open:
		files_set(t->files, result, path, argument(ev, 1) & O_CLOEXEC);
		break;
	case SYS_openat:
		files_set(t->files, result, path, argument(ev, 2) & O_CLOEXEC);
		break;
	case SYS_creat:
	case SYS_openat2: /* its flags are in memory: taken for kept */
		files_set(t->files, result, path, false);
		break;
	case SYS_memfd_create: /* MFD_CLOEXEC is 1 */
		files_set(t->files, result, path, argument(ev, 1) & 1);
		break;
	case SYS_chdir:
		learn_cwd(t, path);
		break;
	case SYS_fchdir:
		learn_cwd(t, files_get(t->files, fd));
		break;
	case SYS_close:
		files_set(t->files, fd, NULL, false);
		break;
	case SYS_close_range:
		learn_close_range(t, ev);
		break;
	case SYS_dup:
	case SYS_dup2:
		learn_dup(t, fd, result, false);
		break;
	case SYS_dup3:
		learn_dup(t, fd, result, argument(ev, 2) & O_CLOEXEC);
		break;
	case SYS_fcntl:
		learn_fcntl(t, ev, fd, result);
		break;
	case SYS_pipe:
		learn_two(t, ev, "pipe", 0);
		break;
	case SYS_pipe2:
		learn_two(t, ev, "pipe", argument(ev, 1));
		break;
	case SYS_socketpair:
		learn_two(t, ev, "socket", argument(ev, 1));
		break;
	case SYS_socket:
		learn_named(t, ev, result, "socket", argument(ev, 1));
		break;
	case SYS_accept:
		learn_named(t, ev, result, "socket", 0);
		break;
	case SYS_accept4:
		learn_named(t, ev, result, "socket", argument(ev, 3));
		break;
	case SYS_epoll_create1:
		learn_named(t, ev, result, "epoll", argument(ev, 0));
		break;
	case SYS_eventfd2:
		learn_named(t, ev, result, "eventfd", argument(ev, 1));
		break;
	case SYS_timerfd_create:
		learn_named(t, ev, result, "timerfd", argument(ev, 1));
		break;
	default:
		break;
	}
}

/* The descriptor the call is about: made, or the first that it was given. */
static int64_t subject(const struct tr_event *ev, bool *made)
{
	const struct tr_sys *sys = tr_sys_lookup(tr_event_get(ev, TR_F_NR));
	int path, dir;

	*made = path_arguments(tr_event_get(ev, TR_F_NR), &path, &dir) &&
		ev->type == TR_EV_SYSCALL &&
		tr_event_get(ev, TR_F_NR) != SYS_chdir;
	if (*made)
		return (int64_t)tr_event_get(ev, TR_F_RESULT);
	for (unsigned i = 0; sys && i < sys->nargs; i++)
		if (sys->arg[i].type == TR_ARG_FD)
			return fd_argument(ev, i);
	return -1;
}

static void show(struct tr_paths *p, const char *path)
{
	free(p->shown);
	p->shown = path ? tr_strdup(path) : NULL;
}

static void learn_syscall(struct tr_paths *p, struct task *t,
			  const struct tr_event *ev)
{
	TR_AUTOFREE char *path = t->path ? t->path : path_of(t, ev);
	bool made;
	int64_t fd = subject(ev, &made);

	t->path = NULL;
	if (!made)
		show(p, files_get(t->files, fd));
	if ((int64_t)tr_event_get(ev, TR_F_RESULT) >= 0)
		learn_call(t, ev, path);
	if (made)
		show(p, files_get(t->files, fd));
}

/* execve(2) closes what is marked so, in a table of its own. */
static void learn_image(struct task *t)
{
	struct files *own = files_copy(t->files);

	files_leave(t->files);
	t->files = own;
	for (size_t i = 0; i < own->n; i++)
		if (own->fd[i].cloexec)
			files_set(own, (int64_t)i, NULL, false);
}

static void learn_clone(struct tr_paths *p, struct task *t,
			const struct tr_event *ev)
{
	struct task *child = task_of(p,
				     (uint32_t)tr_event_get(ev, TR_F_CHILD));
	struct files *shared = t->files;

	if (child == t)
		return;
	shared->users++;
	task_leave(child);
	child->cwd = tr_strdup(t->cwd);
	child->files = shared;
	if (tr_event_get(ev, TR_F_CLONE_FLAGS) & CLONE_FILES)
		return;
	child->files = files_copy(shared);
	shared->users--;
}

static void learn_enter(struct tr_paths *p, struct task *t,
			const struct tr_event *ev)
{
	bool made;

	if (!t->path)
		t->path = path_of(t, ev);
	show(p, files_get(t->files, subject(ev, &made)));
}

const char *tr_paths_event(struct tr_paths *p, const struct tr_event *ev)
{
	struct task *t;

	show(p, NULL);
	if (ev->task == 0)
		return NULL;
	t = task_of(p, ev->task);
	if (!t->files)
		return NULL; /* it has ended */
	switch ((unsigned)ev->type) {
	case TR_EV_IMAGE:
		learn_image(t);
		break;
	case TR_EV_CLONE:
		learn_enter(p, t, ev);
		learn_clone(p, t, ev);
		break;
	case TR_EV_ENTER:
		learn_enter(p, t, ev);
		break;
	case TR_EV_SYSCALL:
		learn_syscall(p, t, ev);
		break;
	case TR_EV_EXIT:
		task_leave(t);
		break;
	default:
		break;
	}
	return p->shown;
}
