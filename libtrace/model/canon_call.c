/* What of a system call's arguments is the program's doing. */
#include <string.h>
#include <sys/syscall.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/model/canon_impl.h"
#include "libtrace/model/syscalls.h"

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
		f.value = tr_canon_fd(c, (int32_t)v);
		break;
	case TR_ARG_PID:
		v = (uint64_t)(int32_t)v;
		f.value = tr_canon_pid(c, (int32_t)v);
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
			f.value = v != 0 ? TR_CANON_SOME : 0;
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
		const struct tr_canon_created *f;

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

			tr_buf_put_varint(&b, is_fd ? tr_canon_fd(c, v) :
					  tr_canon_pid(c, v));
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
		tr_canon_combine(in->hash, in->len);
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
	uint64_t v = TR_CANON_SOME;
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
