/* What of an event is the program's doing, independent of the run. */
#include "libtrace/model/canon.h"

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

/* A file that the program created under a name that was not there before. */
struct created {
	uint64_t name;
};

/* Values that stand for what is not compared further. */
enum {
	SOME = 1,    /* an address, a time: not zero */
	OUTSIDE = 2, /* a process that is not recorded */
};

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
	tr_table_release(&c->names);
	tr_table_release(&c->tasks);
	tr_table_release(&c->pids);
	tr_table_release(&c->files);
}

/* ---- tasks ---- */

static uint64_t combine(uint64_t a, uint64_t b)
{
	const uint64_t both[2] = {a, b};

	return XXH3_64bits(both, sizeof both);
}

static struct task *add_task(struct tr_canon *c, uint32_t id, uint32_t parent)
{
	struct task *t = tr_alloc(sizeof *t);
	struct task *p = parent ? tr_table_get(&c->tasks, parent) : NULL;

	t->name = p ? combine(p->name, ++p->children)
		    : combine(0, ++c->roots);
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

/* ---- names of created files ---- */

static void learn_name(struct tr_canon *c, uint32_t task, const char *path,
		       size_t n)
{
	uint64_t key = XXH3_64bits(path, n);
	struct created *f = tr_table_get(&c->names, key);
	struct task *t = tr_table_get(&c->tasks, task);

	if (!t)
		t = add_task(c, task, 0);
	if (!f) {
		f = tr_alloc(sizeof *f);
		tr_table_set(&c->names, key, f);
	}
	f->name = combine(t->name, ++t->files);
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

static uint64_t name_of_pid(const struct tr_canon *c, int64_t pid)
{
	const struct task *t;

	if (pid == 0 || pid == -1 || !(c->ignore & TR_IGNORE_PIDS))
		return (uint64_t)pid;
	t = tr_table_get(&c->pids, (uint64_t)(pid < 0 ? -pid : pid));
	/* A negative number is a process group's (kill(2), waitpid(2)). */
	return combine(t ? t->name : OUTSIDE, pid < 0);
}

/* ---- arguments ---- */

static uint64_t register_arg(const struct tr_event *ev, unsigned i)
{
	const struct tr_regs *r = &ev->regs;
	const uint64_t args[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8,
				  r->r9};

	return args[i];
}

/* Remaining times differ between runs; whether there is one does not. */
static bool is_timeout(const struct tr_sys_arg *a)
{
	return strstr(a->name, "timeout") != NULL;
}

static uint64_t timeout_class(int64_t v)
{
	return v < 0 ? (uint64_t)-1 : v > 0;
}

/* Standard input, output and error keep their numbers everywhere. */
static uint64_t name_of_fd(const struct tr_canon *c, int64_t fd)
{
	return c->ignore & TR_IGNORE_FDS && fd > 2 ? 3 : (uint64_t)fd;
}

static void put_scalar(const struct tr_canon *c, const struct tr_sys_arg *a,
		       uint64_t v, tr_canon_fn *fn, void *arg)
{
	struct tr_canon_field f = {
		.kind = "argument", .name = a->name, .show = TR_SHOW_DEC,
	};

	switch (a->type) {
	case TR_ARG_NONE:
		return;
	case TR_ARG_INT:
	case TR_ARG_SIGNAL:
		v = (uint64_t)(int32_t)v;
		f.value = v;
		break;
	case TR_ARG_FD:
	case TR_ARG_DIRFD:
		v = (uint64_t)(int32_t)v;
		f.value = name_of_fd(c, (int32_t)v);
		break;
	case TR_ARG_PID:
		v = (uint64_t)(int32_t)v;
		f.value = name_of_pid(c, (int32_t)v);
		break;
	case TR_ARG_UINT:
	case TR_ARG_MODE:
	case TR_ARG_FLAGS:
		v = (uint32_t)v;
		f.value = v;
		f.show = a->type == TR_ARG_UINT ? TR_SHOW_DEC : TR_SHOW_HEX;
		break;
	case TR_ARG_LONG:
	case TR_ARG_SIZE:
		f.value = v;
		break;
	default: /* pointers: there or not */
		f.value = v;
		if (c->ignore & TR_IGNORE_ADDRESSES)
			f.value = v != 0 ? SOME : 0;
		f.show = TR_SHOW_HEX;
	}
	if (c->ignore & TR_IGNORE_TIMES && is_timeout(a) &&
	    f.show == TR_SHOW_DEC)
		f.value = timeout_class((int64_t)v);
	f.number = v;
	fn(arg, &f);
}

/*
 * Buffers whose bytes are the program's output or a plain value.  Other
 * structures hold addresses or times, or memory of the caller's that the
 * kernel does not look at.
 */
static bool input_counts(const struct tr_sys_arg *a)
{
	static const char *const plain[] = {
		"sockaddr", "rlimit", "flock", "sembuf", "sched_param",
		"open_how", "text",
	};

	if (a->type == TR_ARG_PATH || a->type == TR_ARG_STRV ||
	    a->type == TR_ARG_IOVEC || a->type == TR_ARG_MSG)
		return true;
	if (a->type != TR_ARG_BUF || a->dir != TR_DIR_IN)
		return false;
	if (!a->struct_name)
		return !is_timeout(a) && !strstr(a->name, "times");
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (strcmp(a->struct_name, plain[i]) == 0)
			return true;
	return false;
}

/*
 * Digits from i on that make up a path component behind "/proc/" or "/task/",
 * which is a pid, or behind "/fd/", which is a descriptor.
 */
static size_t number_component(const char *s, size_t i, size_t n, bool *is_fd)
{
	size_t digits = 0;

	*is_fd = i >= 4 && memcmp(s + i - 4, "/fd/", 4) == 0;
	if (!*is_fd &&
	    (i < 6 || (memcmp(s + i - 6, "/proc/", 6) != 0 &&
		       memcmp(s + i - 6, "/task/", 6) != 0)))
		return 0;
	while (i + digits < n && digits < 10 && s[i + digits] >= '0' &&
	       s[i + digits] <= '9')
		digits++;
	return i + digits == n || s[i + digits] == '/' ? digits : 0;
}

static int64_t number_in(const char *s, size_t n)
{
	int64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = 10 * v + (s[i] - '0');
	return v;
}

/* The longest beginning of a path that is a created file's; its length. */
static size_t created_prefix(const struct tr_canon *c, const char *s,
			     size_t n, uint64_t *name)
{
	for (size_t i = n; i > 0; i--) {
		const struct created *f;

		if (i < n && s[i] != '/')
			continue;
		f = tr_table_get(&c->names, XXH3_64bits(s, i));
		if (!f)
			continue;
		*name = f->name;
		return i;
	}
	return 0;
}

/* The hash of a string in which pids are replaced by names of tasks, and so
 * on for what else is ignored. */
static uint64_t hash_string(const struct tr_canon *c, const char *s, size_t n)
{
	TR_AUTOBUF struct tr_buf b = {0};
	uint64_t name = 0;
	size_t i = c->names.n ? created_prefix(c, s, n, &name) : 0, digits;
	bool is_fd;

	if (i == 0 && !memmem(s, n, "/proc/", 6) && !memmem(s, n, "/fd/", 4))
		return XXH3_64bits(s, n);
	tr_buf_put_varint(&b, name);
	while (i < n) {
		digits = number_component(s, i, n, &is_fd);
		if (digits) {
			int64_t v = number_in(s + i, digits);

			tr_buf_put_varint(&b, is_fd ? name_of_fd(c, v) :
					  name_of_pid(c, v));
			i += digits;
		} else {
			tr_buf_put_u8(&b, (uint8_t)s[i++]);
		}
	}
	return XXH3_64bits(b.data, b.len);
}

static void put_input(const struct tr_canon *c, const struct tr_sys_arg *a,
		      const struct tr_arg *in, tr_canon_fn *fn, void *arg)
{
	bool whole = in->bytes.len == in->len && in->len > 0;
	struct tr_canon_field f = {
		.kind = "argument", .name = a->name,
		.show = in->is_string ? TR_SHOW_TEXT : TR_SHOW_BYTES,
		.number = in->len, .bytes = in->bytes,
	};

	if (!input_counts(a))
		return;
	f.value = in->is_string && whole ?
		hash_string(c, in->bytes.data, in->len) :
		combine(in->hash, in->len);
	fn(arg, &f);
}

void tr_canon_call(const struct tr_canon *c, const struct tr_event *ev,
		   tr_canon_fn *fn, void *arg)
{
	uint64_t nr = tr_event_get(ev, TR_F_NR);
	const struct tr_sys *sys = tr_sys_lookup(nr);
	const struct tr_canon_field number = {
		.kind = "syscall", .name = "system call", .value = nr,
		.show = TR_SHOW_SYSCALL, .number = nr,
	};

	fn(arg, &number);
	if (!sys)
		return;
	for (unsigned i = 0; i < sys->nargs && tr_event_has(ev, TR_F_REGS);
	     i++)
		put_scalar(c, &sys->arg[i], register_arg(ev, i), fn, arg);
	for (size_t i = 0; i < ev->narg; i++)
		if (ev->arg[i].index < sys->nargs)
			put_input(c, &sys->arg[ev->arg[i].index], &ev->arg[i],
				  fn, arg);
}

/* ---- arguments as JSON describes them ---- */

static void put_described_text(const char *kind, const char *name,
			       const char *s, uint64_t value, tr_canon_fn *fn,
			       void *arg)
{
	const struct tr_canon_field f = {
		.kind = kind, .name = name, .value = value,
		.show = TR_SHOW_JSON, .bytes = {s, strlen(s)},
	};

	fn(arg, &f);
}

static void add_dump(struct tr_buf *b, const struct tr_json *j)
{
	TR_AUTOFREE char *s = tr_json_dump(j);

	tr_buf_put(b, s, strlen(s));
}

/* Memory without the addresses it is at: shown.c says what there can be. */
static void add_memory(struct tr_buf *b, const struct tr_json *j)
{
	const struct tr_json *data = tr_json_get(j, "data");
	const struct tr_json *vector = tr_json_get(j, "msg_iov");
	const char *s;

	if (vector) {
		add_memory(b, vector);
	} else if (tr_json_is_array(j)) {
		for (size_t i = 0; i < tr_json_length(j); i++)
			add_memory(b, tr_json_at(j, i));
	} else if (data && tr_json_get(j, "addr")) {
		add_dump(b, data);
	} else if (tr_json_get_string(j, &s) && strncmp(s, "0x", 2) == 0 &&
		   strchr(s, ' ')) {
		tr_buf_put(b, strchr(s, ' '), strlen(strchr(s, ' ')));
	} else {
		add_dump(b, j);
	}
}

/* Is it data that the program asked for and got? */
static bool is_described_data(const struct tr_canon *c, uint64_t nr,
			      const struct tr_sys_arg *a)
{
	if (c->ignore & TR_IGNORE_DATA || a->dir != TR_DIR_OUT)
		return false;
	return nr == SYS_read || nr == SYS_pread64 || nr == SYS_recvfrom ||
	       nr == SYS_readv || nr == SYS_preadv || nr == SYS_preadv2 ||
	       nr == SYS_getcwd;
}

static bool names_memory(const struct tr_sys_arg *a, const struct tr_json *j)
{
	int64_t n;

	return (a->type == TR_ARG_PATH || a->type == TR_ARG_STRV ||
		a->type == TR_ARG_BUF || a->type == TR_ARG_IOVEC ||
		a->type == TR_ARG_MSG) &&
	       !tr_json_is_null(j) && !tr_json_get_int(j, &n);
}

static void put_described_memory(const struct tr_canon *c, const char *kind,
				 const struct tr_sys_arg *a,
				 const struct tr_json *j, tr_canon_fn *fn,
				 void *arg)
{
	TR_AUTOBUF struct tr_buf b = {0};
	const char *s;
	uint64_t v;

	add_memory(&b, j);
	v = XXH3_64bits(b.data, b.len);
	if (a->type == TR_ARG_PATH && tr_json_get_string(j, &s))
		v = hash_string(c, s, strlen(s));
	tr_buf_put_u8(&b, '\0');
	put_described_text(kind, a->name, (char *)b.data, v, fn, arg);
}

static void put_described(const struct tr_canon *c, const struct tr_sys_arg *a,
			  const struct tr_json *j, tr_canon_fn *fn, void *arg)
{
	TR_AUTOFREE char *text = NULL;
	uint64_t v = SOME;
	int64_t n;

	if (names_memory(a, j)) {
		if (!tr_json_get_hex(j, &v))
			tr_json_get_hex(tr_json_get(j, "addr"), &v);
		put_scalar(c, a, v, fn, arg);
		if (input_counts(a))
			put_described_memory(c, "argument", a, j, fn, arg);
	} else if (tr_json_get_int(j, &n)) {
		put_scalar(c, a, (uint64_t)n, fn, arg);
	} else if (tr_json_is_null(j) || tr_json_get_hex(j, &v)) {
		put_scalar(c, a, tr_json_is_null(j) ? 0 : v, fn, arg);
	} else {
		text = tr_json_dump(j);
		put_described_text("argument", a->name, text,
				   XXH3_64bits(text, strlen(text)), fn, arg);
	}
}

void tr_canon_described(const struct tr_canon *c, const struct tr_event *ev,
			const struct tr_json *args, bool data, tr_canon_fn *fn,
			void *arg)
{
	uint64_t nr = tr_event_get(ev, TR_F_NR);
	const struct tr_sys *sys = tr_sys_lookup(nr);
	const struct tr_canon_field number = {
		.kind = "syscall", .name = "system call", .value = nr,
		.show = TR_SHOW_SYSCALL, .number = nr,
	};

	if (!data)
		fn(arg, &number);
	for (unsigned i = 0; sys && i < sys->nargs; i++) {
		const struct tr_sys_arg *a = &sys->arg[i];
		const struct tr_json *j = tr_json_get(args, a->name);

		if (j && !data)
			put_described(c, a, j, fn, arg);
		else if (j && names_memory(a, j) && is_described_data(c, nr, a))
			put_described_memory(c, "data", a, j, fn, arg);
	}
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
		return name_of_pid(c, v);
	case RESULT_FD:
		return name_of_fd(c, v);
	case RESULT_ADDRESS:
		return c->ignore & TR_IGNORE_ADDRESSES ? SOME : (uint64_t)v;
	case RESULT_CHILD:
		return c->ignore & TR_IGNORE_PIDS ? SOME : (uint64_t)v;
	case RESULT_TIME:
		return c->ignore & TR_IGNORE_TIMES ? SOME : (uint64_t)v;
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

/* Mapped files by path; which addresses they got is the run's affair. */
static void put_files(const struct tr_canon *c, const struct tr_event *ev,
		      tr_canon_fn *fn, void *arg)
{
	for (size_t i = 0; i < ev->nmap && !c->described; i++) {
		const char *path = tr_table_get(&c->files, ev->map[i].file);

		if (ev->map[i].file && path)
			put_text("data", "mapped file", path, strlen(path),
				 fn, arg);
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
		return true;
	case TR_EV_SIGNAL: /* some the program does not notice */
		return tr_event_get(ev, TR_F_ACTION) == TR_SIG_NONE ||
		       (handlers &&
			tr_event_get(ev, TR_F_ACTION) == TR_SIG_HANDLER);
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
