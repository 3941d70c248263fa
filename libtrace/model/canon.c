/* What of an event is the program's doing, independent of the run. */
#include "libtrace/model/canon_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/model/syscalls.h"

struct task {
	uint64_t name;
	unsigned children;
	unsigned files; /* that it has created exclusively */
};

/* A process that is not recorded. */
#define OUTSIDE 2

unsigned tr_ignore_by_name(const char *name)
{
	static const struct {
		const char *name;
		unsigned bit;
	} all[] = {
#define X(NAME, bit, text) {text, TR_IGNORE_##NAME},
		TR_IGNORABLE(X)
#undef X
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].bit;
	return 0;
}

void tr_canon_release(struct tr_canon *c)
{
	TR_TABLE_EACH(&c->tasks, s)
		free(s->value);
	TR_TABLE_EACH(&c->files, f)
		free(f->value);
	TR_TABLE_EACH(&c->names, n)
		free(n->value);
	TR_TABLE_EACH(&c->contents, k)
		free(k->value);
	tr_table_release(&c->contents);
	tr_table_release(&c->names);
	tr_table_release(&c->tasks);
	tr_table_release(&c->pids);
	tr_table_release(&c->files);
}

/* ---- tasks ---- */

uint64_t tr_canon_combine(uint64_t a, uint64_t b)
{
	const uint64_t both[2] = {a, b};

	return XXH3_64bits(both, sizeof both);
}

static struct task *add_task(struct tr_canon *c, uint32_t id, uint32_t parent)
{
	struct task *t = tr_alloc(sizeof *t);
	struct task *p = parent ? tr_table_get(&c->tasks, parent) : NULL;

	uint64_t ordinal = c->ordinals ?
		(uintptr_t)tr_table_get(c->ordinals, id) : 0;

	if (!ordinal)
		ordinal = p ? ++p->children : ++c->roots;
	t->name = tr_canon_combine(p ? p->name : 0, ordinal);
	tr_table_set(&c->tasks, id, t);
	return t;
}

uint64_t tr_canon_task(struct tr_canon *c, uint32_t id)
{
	const struct task *t = tr_table_get(&c->tasks, id);

	return (t ? t : add_task(c, id, 0))->name;
}

static void learn_pid(struct tr_canon *c, uint64_t pid, uint32_t task)
{
	struct task *t = tr_table_get(&c->tasks, task);

	if (pid)
		tr_table_set(&c->pids, pid, t);
}

static void learn_task(struct tr_canon *c, const struct tr_event *ev)
{
	if (!tr_table_get(&c->tasks, ev->task))
		add_task(c, ev->task,
			 (uint32_t)tr_event_get(ev, TR_F_PARENT));
	/* The thread's own id last: for a leader both are the same. */
	if (tr_event_get(ev, TR_F_PID) == tr_event_get(ev, TR_F_TID))
		learn_pid(c, tr_event_get(ev, TR_F_PID), ev->task);
	learn_pid(c, tr_event_get(ev, TR_F_TID), ev->task);
}

static void learn_file(struct tr_canon *c, const struct tr_event *ev)
{
	uint64_t id = tr_event_get(ev, TR_F_FILE);

	if (!tr_table_get(&c->files, id))
		tr_table_set(&c->files, id,
			     tr_strndup(ev->text.len ? ev->text.data : "",
					ev->text.len));
}

void tr_canon_content(struct tr_canon *c, uint64_t file,
		      const uint8_t sha256[32])
{
	uint64_t *content = tr_table_get(&c->contents, file);

	if (!content) {
		content = tr_alloc(sizeof *content);
		tr_table_set(&c->contents, file, content);
	}
	*content = tr_get_le64(sha256);
}

/* ---- names of created files ---- */

static void learn_name(struct tr_canon *c, uint32_t task, const char *path,
		       size_t n)
{
	uint64_t key = XXH3_64bits(path, n);
	struct tr_canon_created *f = tr_table_get(&c->names, key);
	struct task *t = tr_table_get(&c->tasks, task);

	if (!t)
		t = add_task(c, task, 0);
	if (!f) {
		f = tr_alloc(sizeof *f);
		tr_table_set(&c->names, key, f);
	}
	f->name = tr_canon_combine(t->name, ++t->files);
}

/* The argument that names what the call creates and must not exist, or -1. */
static int created_argument(const struct tr_event *ev)
{
	const struct tr_regs *r = &ev->regs;

	switch (tr_event_get(ev, TR_F_NR)) {
	case SYS_open:
		return (r->rsi & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ?
		       0 : -1;
	case SYS_openat:
		return (r->rdx & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ?
		       1 : -1;
	case SYS_mkdir:
	case SYS_mknod:
		return 0;
	case SYS_mkdirat:
	case SYS_mknodat:
		return 1;
	}
	return -1;
}

static void learn_created(struct tr_canon *c, const struct tr_event *ev)
{
	int index = created_argument(ev);

	if (index < 0 || (int64_t)tr_event_get(ev, TR_F_RESULT) < 0)
		return;
	for (size_t i = 0; i < ev->narg; i++)
		if (ev->arg[i].index == index && ev->arg[i].is_string)
			learn_name(c, ev->task, ev->arg[i].bytes.data,
				   ev->arg[i].bytes.len);
}

void tr_canon_learn(struct tr_canon *c, const struct tr_event *ev)
{
	uint32_t child = (uint32_t)tr_event_get(ev, TR_F_CHILD);

	switch ((unsigned)ev->type) {
	case TR_EV_START:
	case TR_EV_STATE:
	case TR_EV_IMAGE:
		learn_task(c, ev);
		break;
	case TR_EV_CLONE:
	case TR_EV_SYSCALL:
		if (child && !tr_table_get(&c->tasks, child))
			add_task(c, child, ev->task);
		if (c->ignore & TR_IGNORE_NAMES && !c->described)
			learn_created(c, ev);
		break;
	case TR_EV_FILE:
		learn_file(c, ev);
		break;
	default:
		break;
	}
}

uint64_t tr_canon_pid(const struct tr_canon *c, int64_t pid)
{
	const struct task *t;

	if (pid == 0 || pid == -1 || !(c->ignore & TR_IGNORE_PIDS))
		return (uint64_t)pid;
	t = tr_table_get(&c->pids, (uint64_t)(pid < 0 ? -pid : pid));
	/* A negative number is a process group's (kill(2), waitpid(2)). */
	return tr_canon_combine(t ? t->name : OUTSIDE, pid < 0);
}

/* Standard input, output and error keep their numbers everywhere. */
uint64_t tr_canon_fd(const struct tr_canon *c, int64_t fd)
{
	return c->ignore & TR_IGNORE_FDS && fd > 2 ? 3 : (uint64_t)fd;
}

/* ---- results and other events ---- */

enum result_class {
	RESULT_NUMBER,
	RESULT_ADDRESS,
	RESULT_PID,
	RESULT_CHILD, /* a pid, of a task that may not have started yet */
	RESULT_TIME,
	RESULT_FD,
	RESULT_NONE,  /* whatever was in the register */
};

static enum result_class result_class(uint64_t nr)
{
	switch (nr) {
	case SYS_mmap:
	case SYS_mremap:
	case SYS_brk:
	case SYS_shmat:
		return RESULT_ADDRESS;
	case SYS_getpid:
	case SYS_gettid:
	case SYS_getppid:
	case SYS_getpgrp:
	case SYS_getpgid:
	case SYS_getsid:
	case SYS_setsid:
	case SYS_set_tid_address:
	case SYS_wait4:
		return RESULT_PID;
	case SYS_fork:
	case SYS_vfork:
	case SYS_clone:
	case SYS_clone3:
		return RESULT_CHILD;
	case SYS_time:
	case SYS_times:
	case SYS_alarm:
		return RESULT_TIME;
	case SYS_open:
	case SYS_openat:
	case SYS_openat2:
	case SYS_creat:
	case SYS_dup:
	case SYS_dup2:
	case SYS_dup3:
	case SYS_socket:
	case SYS_accept:
	case SYS_accept4:
	case SYS_epoll_create:
	case SYS_epoll_create1:
	case SYS_eventfd:
	case SYS_eventfd2:
	case SYS_signalfd:
	case SYS_signalfd4:
	case SYS_timerfd_create:
	case SYS_inotify_init:
	case SYS_inotify_init1:
	case SYS_memfd_create:
	case SYS_pidfd_open:
		return RESULT_FD;
	case SYS_rt_sigreturn:
		return RESULT_NONE;
	}
	return RESULT_NUMBER;
}

static bool is_error(int64_t v)
{
	return v < 0 && v > -4096;
}

static uint64_t result_value(const struct tr_canon *c, uint64_t nr, int64_t v)
{
	enum result_class class = result_class(nr);

	if (class == RESULT_NONE)
		return 0;
	if (is_error(v) || v == 0)
		return (uint64_t)v;
	switch (class) {
	case RESULT_PID:
		return tr_canon_pid(c, v);
	case RESULT_FD:
		return tr_canon_fd(c, v);
	case RESULT_ADDRESS:
		return c->ignore & TR_IGNORE_ADDRESSES ? TR_CANON_SOME : (uint64_t)v;
	case RESULT_CHILD:
		return c->ignore & TR_IGNORE_PIDS ? TR_CANON_SOME : (uint64_t)v;
	case RESULT_TIME:
		return c->ignore & TR_IGNORE_TIMES ? TR_CANON_SOME : (uint64_t)v;
	default:
		return (uint64_t)v;
	}
}

static void put_result(const struct tr_canon *c, const struct tr_event *ev,
		       tr_canon_fn *fn, void *arg)
{
	uint64_t nr = tr_event_get(ev, TR_F_NR);
	int64_t v = (int64_t)tr_event_get(ev, TR_F_RESULT);
	const struct tr_canon_field f = {
		.kind = "result", .name = "result",
		.value = result_value(c, nr, v), .show = TR_SHOW_RESULT,
		.number = (uint64_t)v,
	};

	fn(arg, &f);
}

static void put_text(const char *kind, const char *name, const char *s,
		     size_t n, tr_canon_fn *fn, void *arg)
{
	const struct tr_canon_field f = {
		.kind = kind, .name = name, .value = XXH3_64bits(s, n),
		.show = TR_SHOW_TEXT, .bytes = {s, n},
	};

	fn(arg, &f);
}

/* A file of an incomplete recording may have no digest: it equals no other. */
static void put_content(const struct tr_canon *c, uint32_t file,
			const char *path, tr_canon_fn *fn, void *arg)
{
	const uint64_t *content = tr_table_get(&c->contents, file);
	const struct tr_canon_field f = {
		.kind = "data", .name = "contents of a file",
		.value = content ? *content : 0, .show = TR_SHOW_TEXT,
		.bytes = {path, strlen(path)},
	};

	fn(arg, &f);
}

/* Mapped files by path; which addresses they got is the run's affair. */
static void put_files(const struct tr_canon *c, const struct tr_event *ev,
		      tr_canon_fn *fn, void *arg)
{
	for (size_t i = 0; i < ev->nmap && !c->described; i++) {
		const char *path = tr_table_get(&c->files, ev->map[i].file);

		if (!ev->map[i].file || !path)
			continue;
		put_text("data", "mapped file", path, strlen(path), fn, arg);
		if (!(c->ignore & TR_IGNORE_FILES))
			put_content(c, ev->map[i].file, path, fn, arg);
	}
}

static void put_number(const char *kind, const char *name,
		       enum tr_canon_show show, uint64_t v, tr_canon_fn *fn,
		       void *arg)
{
	const struct tr_canon_field f = {
		.kind = kind, .name = name, .value = v, .show = show,
		.number = v,
	};

	fn(arg, &f);
}

/* si_code, behind si_signo and si_errno, says who sent it (sigaction(2)). */
static void put_signal(const struct tr_canon *c, const struct tr_event *ev,
		       tr_canon_fn *fn, void *arg)
{
	put_number("signal", "signal", TR_SHOW_SIGNAL,
		   tr_event_get(ev, TR_F_SIGNO), fn, arg);
	put_number("signal", "signal action", TR_SHOW_DEC,
		   tr_event_get(ev, TR_F_ACTION), fn, arg);
	if (ev->siginfo.len >= 12 && !c->described)
		put_number("signal", "si_code", TR_SHOW_DEC,
			   (uint64_t)(int32_t)tr_get_le32(
				   (const uint8_t *)ev->siginfo.data + 8),
			   fn, arg);
}

void tr_canon_rest(const struct tr_canon *c, const struct tr_event *ev,
		   tr_canon_fn *fn, void *arg)
{
	switch ((unsigned)ev->type) {
	case TR_EV_SYSCALL:
		put_result(c, ev, fn, arg);
		put_files(c, ev, fn, arg);
		break;
	case TR_EV_IMAGE:
		put_text("data", "program",
			 ev->text.len ? ev->text.data : "", ev->text.len, fn,
			 arg);
		put_files(c, ev, fn, arg);
		break;
	case TR_EV_SIGNAL:
		put_signal(c, ev, fn, arg);
		break;
	case TR_EV_INSN:
		put_number("type", "instruction", TR_SHOW_DEC,
			   tr_event_get(ev, TR_F_INSN), fn, arg);
		break;
	case TR_EV_EXIT:
		put_number("status", "exit status", TR_SHOW_STATUS,
			   tr_event_get(ev, TR_F_STATUS), fn, arg);
		break;
	case TR_EV_STATE:
		put_number("state", "registers", TR_SHOW_HEX,
			   tr_event_get(ev, TR_F_REGISTERS), fn, arg);
		put_number("state", "vector registers", TR_SHOW_HEX,
			   tr_event_get(ev, TR_F_VECTOR), fn, arg);
		put_number("state", "memory", TR_SHOW_HEX,
			   tr_event_get(ev, TR_F_ROOT), fn, arg);
		break;
	default:
		break;
	}
}

bool tr_canon_ignores(const struct tr_canon *c, const struct tr_event *ev)
{
	bool handlers = c->ignore & TR_IGNORE_SIGNALS;

	switch ((unsigned)ev->type) {
	case TR_EV_FILE:
	case TR_EV_NOTE:
	case TR_EV_DIGEST:
	case TR_EV_END:
	case TR_EV_STOP: /* what a debugger does is not the program's doing */
	case TR_EV_POKE:
	case TR_EV_STATE: /* memory holds pids, times and random bytes */
	case TR_EV_ASYNC: /* no program says when these come */
		return true;
	case TR_EV_SIGNAL: /* some the program does not notice */
		return tr_event_get(ev, TR_F_ACTION) == TR_SIG_NONE ||
		       (handlers &&
			tr_event_get(ev, TR_F_ACTION) == TR_SIG_HANDLER);
	case TR_EV_INSN: /* gives the program nothing */
		return tr_event_get(ev, TR_F_INSN) == TR_INSN_XSAVEC;
	case TR_EV_SYSCALL:
		return handlers && tr_event_get(ev, TR_F_NR) == SYS_rt_sigreturn;
	default:
		return ev->stream == 0;
	}
}

/* ---- data ---- */

/* Where the buffer is, or 0: everything the call wrote is data. */
static bool data_buffer(const struct tr_event *call, uint64_t *start)
{
	switch (tr_event_get(call, TR_F_NR)) {
	case SYS_read:
	case SYS_pread64:
	case SYS_recvfrom:
	case SYS_getdents:
	case SYS_getdents64:
	case SYS_readlink:
		*start = call->regs.rsi;
		return true;
	case SYS_readlinkat:
		*start = call->regs.rdx;
		return true;
	case SYS_getcwd:
		*start = call->regs.rdi;
		return true;
	case SYS_readv:
	case SYS_preadv:
	case SYS_preadv2:
		*start = 0;
		return true;
	}
	return false;
}

/* "pipe:[12345]", "socket:[12345]": the number is an inode's. */
static size_t link_text_length(const struct tr_event *call,
			       const uint8_t *p, size_t n)
{
	uint64_t nr = tr_event_get(call, TR_F_NR);
	const uint8_t *cut;

	if ((nr != SYS_readlink && nr != SYS_readlinkat) || n == 0 ||
	    p[0] == '/')
		return n;
	cut = memmem(p, n, ":[", 2);
	return cut ? (size_t)(cut - p) : n;
}

struct tr_bytes tr_canon_data(const struct tr_canon *c,
			      const struct tr_event *call,
			      const struct tr_mem *mem)
{
	int64_t result = (int64_t)tr_event_get(call, TR_F_RESULT);
	struct tr_bytes none = {NULL, 0}, d = mem->bytes;
	uint64_t start;

	if (c->described || c->ignore & TR_IGNORE_DATA ||
	    call->type != TR_EV_SYSCALL || result <= 0 ||
	    !data_buffer(call, &start))
		return none;
	if (start) {
		uint64_t skip = mem->addr - start;

		if (mem->addr < start || skip >= (uint64_t)result)
			return none;
		if (d.len > (uint64_t)result - skip)
			d.len = (size_t)((uint64_t)result - skip);
	}
	d.len = link_text_length(call, d.data, d.len);
	return d;
}

bool tr_canon_is_dirents(const struct tr_event *call)
{
	return tr_event_get(call, TR_F_NR) == SYS_getdents64;
}
