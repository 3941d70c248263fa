/* The arguments of a recorded system call. */
#include "libtrace/model/shown.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "libtrace/model/tables.h"
#include "libtrace/model/values.h"

/* The first bytes of memory that was read or written, and its whole length. */
struct piece {
	const uint8_t *p;
	size_t n;
	uint64_t whole;
};

/* What the event holds from addr on among the memory it wrote. */
static bool written_at(const struct tr_event *ev, uint64_t addr,
		       struct piece *out)
{
	for (size_t i = 0; i < ev->nmem; i++) {
		const struct tr_mem *m = &ev->mem[i];

		if (addr < m->addr || addr - m->addr >= m->bytes.len)
			continue;
		out->p = (const uint8_t *)m->bytes.data + (addr - m->addr);
		out->n = m->bytes.len - (size_t)(addr - m->addr);
		return true;
	}
	return false;
}

/* Memory read for the argument; any argument when index is negative. */
static const struct tr_arg *read_at(const struct tr_event *ev, int index,
				    uint64_t addr)
{
	for (size_t i = 0; i < ev->narg; i++)
		if ((index < 0 || ev->arg[i].index == index) &&
		    ev->arg[i].addr == addr)
			return &ev->arg[i];
	return NULL;
}

/* The model's view of the caller's memory: what the event recorded of it. */
static bool event_memory(void *ctx, uint64_t addr, void *buf, size_t n)
{
	const struct tr_shown_call *c = ctx;
	struct piece w;

	if (!c->entering && written_at(c->ev, addr, &w) && w.n >= n) {
		memcpy(buf, w.p, n);
		return true;
	}
	for (size_t i = 0; i < c->ev->narg; i++) {
		const struct tr_arg *a = &c->ev->arg[i];

		if (addr < a->addr || addr - a->addr > a->bytes.len ||
		    a->bytes.len - (addr - a->addr) < n)
			continue;
		memcpy(buf, (const uint8_t *)a->bytes.data + (addr - a->addr),
		       n);
		return true;
	}
	return false;
}

void tr_shown_init(struct tr_shown_call *c, const struct tr_event *ev)
{
	const struct tr_regs *r = &ev->regs;
	uint64_t nr = tr_event_get(ev, TR_F_NR);
	struct tr_ranges in = {0};

	*c = (struct tr_shown_call){
		.ev = ev,
		.sys = tr_sys_lookup(nr),
		.call = {
			.nr = nr,
			.args = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9},
			.result = (int64_t)tr_event_get(ev, TR_F_RESULT),
			.read = event_memory,
			.ctx = c,
		},
		.entering = true,
	};
	tr_call_enter(&c->call, &in);
	tr_ranges_release(&in);
	c->entering = false;
	if (tr_event_has(ev, TR_F_RESULT))
		(void)tr_call_exit(&c->call, &c->out);
}

void tr_shown_release(struct tr_shown_call *c)
{
	tr_ranges_release(&c->out);
}

unsigned tr_shown_nargs(const struct tr_shown_call *c)
{
	if (!tr_event_has(c->ev, TR_F_REGS))
		return 0;
	return c->sys ? c->sys->nargs : 6;
}

/* What the call wrote at addr for the argument, or what it read there. */
static bool piece_at(const struct tr_shown_call *c, unsigned i, uint64_t addr,
		     struct piece *out)
{
	const struct tr_arg *a;

	for (size_t k = 0; k < c->out.n; k++) {
		const struct tr_range *r = &c->out.r[k];

		if (r->arg != i || r->addr != addr ||
		    !written_at(c->ev, addr, out))
			continue;
		out->whole = r->len;
		if (out->n > r->len)
			out->n = (size_t)r->len;
		return true;
	}
	a = read_at(c->ev, (int)i, addr);
	if (!a)
		return false;
	*out = (struct piece){a->bytes.data, a->bytes.len, a->len};
	return true;
}

/* Bytes that have no structure; JSON says where and how many they are. */
static void show_piece(struct tr_sink *s, uint64_t addr, const struct piece *m,
		       size_t most)
{
	size_t n = m->n < most ? m->n : most;

	if (s->text) {
		tr_sink_bytes(s, m->p, n, m->whole);
		return;
	}
	tr_sink_object(s);
	tr_sink_hex(tr_sink_key(s, "addr"), addr);
	tr_sink_uint(tr_sink_key(s, "size"), m->whole);
	tr_sink_bytes(tr_sink_key(s, "data"), m->p, n, m->whole);
	tr_sink_end(s);
}

/* Of an address nothing is known but its number. */
static void show_address(struct tr_sink *s, uint64_t addr)
{
	if (addr == 0)
		tr_sink_null(s);
	else
		tr_sink_hex(s, addr);
}

static void show_path(const struct tr_shown_call *c, unsigned i,
		      struct tr_sink *s)
{
	const struct tr_arg *a = read_at(c->ev, (int)i, c->call.args[i]);

	if (a)
		tr_sink_bytes(s, a->bytes.data, a->bytes.len, a->len);
	else
		show_address(s, c->call.args[i]);
}

static size_t count_strings(const struct tr_event *ev, unsigned i)
{
	size_t n = 0;

	for (size_t k = 0; k < ev->narg; k++)
		n += ev->arg[k].index == i && ev->arg[k].is_string;
	return n;
}

/* The environment is long and seldom of interest: its size only. */
static void show_strings(const struct tr_shown_call *c, unsigned i,
			 struct tr_sink *s)
{
	size_t n = count_strings(c->ev, i);

	if (n == 0) {
		show_address(s, c->call.args[i]);
		return;
	}
	if (strcmp(c->sys->arg[i].name, "envp") == 0) {
		tr_sink_symbol(s, "0x%" PRIx64 " /* %zu vars */",
			       c->call.args[i], n);
		return;
	}
	tr_sink_array(s);
	for (size_t k = 0; k < c->ev->narg; k++) {
		const struct tr_arg *a = &c->ev->arg[k];

		if (a->index == i && a->is_string)
			tr_sink_bytes(s, a->bytes.data, a->bytes.len, a->len);
	}
	tr_sink_end(s);
}

/* fcntl(2): the third argument is a number for most commands. */
static bool show_fcntl(const struct tr_shown_call *c, struct tr_sink *s)
{
	uint64_t v = c->call.args[2];

	switch ((uint32_t)c->call.args[1]) {
	case F_SETFD:
		tr_show_named_flags(s, "fd", (uint32_t)v);
		return true;
	case F_SETFL:
		tr_show_named_flags(s, "open", (uint32_t)v);
		return true;
	case F_SETSIG:
		tr_show_signal(s, (int)v);
		return true;
	default:
		return false;
	}
}

/* Calls whose argument is a number or an address, by the command. */
static bool may_take_number(uint64_t nr)
{
	return nr == __NR_fcntl || nr == __NR_ioctl || nr == __NR_prctl ||
	       nr == __NR_semctl;
}

/* An argument of such a call that turned out to name no memory. */
static void show_word(const struct tr_shown_call *c, unsigned i,
		      struct tr_sink *s)
{
	uint64_t v = c->call.args[i];

	if (c->call.nr == __NR_fcntl && show_fcntl(c, s))
		return;
	if (v < 65536)
		tr_sink_uint(s, v);
	else
		tr_sink_hex(s, v);
}

static void show_buffer(const struct tr_shown_call *c, unsigned i,
			struct tr_sink *s)
{
	const struct tr_sys_arg *a = &c->sys->arg[i];
	const char *name = a->struct_name;
	uint64_t addr = c->call.args[i];
	struct piece m;

	if (name && strcmp(name, "addr") == 0) {
		show_address(s, addr);
	} else if (addr != 0 && piece_at(c, i, addr, &m)) {
		/* Four bytes are an int for nearly every command. */
		if (c->call.nr == __NR_ioctl && m.whole == 4)
			name = "int";
		if (!name || !tr_show_struct(s, name, m.p, m.n, m.whole))
			show_piece(s, addr, &m, TR_SHOWN_BYTES);
	} else if (a->size.kind == TR_SIZE_CODE &&
		   may_take_number(c->call.nr)) {
		show_word(c, i, s);
	} else {
		show_address(s, addr);
	}
}

static void show_vector_element(const struct tr_shown_call *c, unsigned i,
				uint64_t base, uint64_t len, struct tr_sink *s)
{
	struct piece m = {.p = (const uint8_t *)"", .whole = len};
	bool known = base != 0 && piece_at(c, i, base, &m);

	if (!s->text) {
		show_piece(s, base, &m, TR_SHOWN_BYTES);
		return;
	}
	tr_sink_object(s);
	tr_sink_key(s, "iov_base");
	if (known)
		show_piece(s, base, &m, TR_SHOWN_BYTES);
	else
		show_address(s, base);
	tr_sink_uint(tr_sink_key(s, "iov_len"), len);
	tr_sink_end(s);
}

/* The events hold the first bytes of the array, hence its first elements. */
static void show_vector(const struct tr_shown_call *c, unsigned i,
			uint64_t addr, uint64_t count, struct tr_sink *s)
{
	const struct tr_arg *a = addr ? read_at(c->ev, (int)i, addr) : NULL;
	uint64_t shown = a ? a->bytes.len / 16 : 0;

	if (!a) {
		show_address(s, addr);
		return;
	}
	if (shown > count)
		shown = count;
	tr_sink_array(s);
	for (uint64_t k = 0; k < shown; k++) {
		const uint8_t *p = (const uint8_t *)a->bytes.data + 16 * k;

		show_vector_element(c, i, tr_get_le64(p), tr_get_le64(p + 8),
				    s);
	}
	if (shown < count)
		tr_sink_symbol(s, "... %" PRIu64 " more", count - shown);
	tr_sink_end(s);
}

/* struct msghdr: offsets as in effects.c. */
static void show_message(const struct tr_shown_call *c, unsigned i,
			 struct tr_sink *s)
{
	uint64_t addr = c->call.args[i], name;
	const struct tr_arg *a = addr ? read_at(c->ev, (int)i, addr) : NULL;
	const uint8_t *p;
	struct piece m;

	if (!a || a->bytes.len < 56) {
		show_address(s, addr);
		return;
	}
	p = a->bytes.data;
	name = tr_get_le64(p);
	tr_sink_object(s);
	if (name && piece_at(c, i, name, &m) && m.n >= 2)
		tr_show_struct(tr_sink_key(s, "msg_name"), "sockaddr", m.p,
			       m.n, m.whole);
	tr_sink_key(s, "msg_iov");
	show_vector(c, i, tr_get_le64(p + 16), tr_get_le64(p + 24), s);
	if (piece_at(c, i, addr, &m) && m.n >= 52)
		p = m.p;
	tr_sink_uint(tr_sink_key(s, "msg_controllen"), tr_get_le64(p + 40));
	tr_show_named_flags(tr_sink_key(s, "msg_flags"), "msg",
			    tr_get_le32(p + 48));
	tr_sink_end(s);
}

/* The low byte of the flags is the signal sent at the end: clone(2). */
static void show_flags(const struct tr_shown_call *c, unsigned i,
		       struct tr_sink *s)
{
	const struct tr_flag_set *set = c->sys->arg[i].flags;
	uint32_t v = (uint32_t)c->call.args[i];
	const char *name = tr_signal_name((int)(v & 0xff));
	TR_AUTOBUF struct tr_buf text = {0};
	struct tr_sink flags = {.text = &text};

	if (c->call.nr != __NR_clone || !name) {
		tr_show_flags(s, set, v);
		return;
	}
	if (v & ~0xffu) {
		tr_show_flags(&flags, set, v & ~0xffu);
		tr_put(&text, "|");
	}
	tr_put(&text, "%s", name);
	tr_sink_symbol(s, "%.*s", (int)text.len, (const char *)text.data);
}

static void show_scalar(const struct tr_sys_arg *a, uint64_t v,
			struct tr_sink *s)
{
	switch (a->type) {
	case TR_ARG_UINT:
		tr_sink_uint(s, (uint32_t)v);
		break;
	case TR_ARG_LONG:
		tr_sink_int(s, (int64_t)v);
		break;
	case TR_ARG_SIZE:
		tr_sink_uint(s, v);
		break;
	case TR_ARG_DIRFD:
		if ((int32_t)v == AT_FDCWD)
			tr_sink_symbol(s, "AT_FDCWD");
		else
			tr_sink_int(s, (int32_t)v);
		break;
	case TR_ARG_SIGNAL:
		tr_show_signal(s, (int32_t)v);
		break;
	case TR_ARG_MODE:
		tr_sink_octal(s, (uint32_t)v);
		break;
	case TR_ARG_PTR:
		show_address(s, v);
		break;
	default:
		tr_sink_int(s, (int32_t)v);
		break;
	}
}

void tr_shown_arg(const struct tr_shown_call *c, unsigned i, struct tr_sink *s)
{
	const struct tr_sys_arg *a;

	if (!c->sys) {
		tr_sink_hex(s, c->call.args[i]);
		return;
	}
	a = &c->sys->arg[i];
	switch (a->type) {
	case TR_ARG_PATH:
		show_path(c, i, s);
		break;
	case TR_ARG_STRV:
		show_strings(c, i, s);
		break;
	case TR_ARG_BUF:
		show_buffer(c, i, s);
		break;
	case TR_ARG_IOVEC:
		show_vector(c, i, c->call.args[i],
			    c->call.args[a->size.arg], s);
		break;
	case TR_ARG_MSG:
		show_message(c, i, s);
		break;
	case TR_ARG_FLAGS:
		show_flags(c, i, s);
		break;
	default:
		show_scalar(a, c->call.args[i], s);
		break;
	}
}

/* The flags of open(2) in the same call, or ~0 when there are none. */
static uint32_t open_flags(const struct tr_shown_call *c)
{
	for (unsigned i = 0; i < c->sys->nargs; i++) {
		const struct tr_flag_set *set = c->sys->arg[i].flags;

		if (set && strcmp(set->name, "open") == 0)
			return (uint32_t)c->call.args[i];
	}
	return ~0u;
}

static bool fcntl_takes_nothing(uint32_t cmd)
{
	return cmd == F_GETFD || cmd == F_GETFL || cmd == F_GETOWN ||
	       cmd == F_GETSIG || cmd == F_GETLEASE || cmd == F_GETPIPE_SZ ||
	       cmd == F_GET_SEALS;
}

bool tr_shown_unused(const struct tr_shown_call *c, unsigned i)
{
	if (!c->sys)
		return false;
	if (c->call.nr == __NR_fcntl && i == 2)
		return fcntl_takes_nothing((uint32_t)c->call.args[1]);
	return c->sys->arg[i].type == TR_ARG_MODE &&
	       !(open_flags(c) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)));
}
