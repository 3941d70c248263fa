/* Comparing two traces: loading the events that differ and saying how. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "libtrace/base/alloc.h"
#include "libtrace/model/compare_impl.h"
#include "libtrace/model/describe.h"
#include "libtrace/model/parse.h"
#include "libtrace/model/sink.h"
#include "libtrace/model/syscalls.h"

/* Text of one value in a difference. */
#define VALUE_MAX 72

/* With copies of their bytes. */
struct fields {
	struct tr_canon_field *f;
	size_t n, cap;
};

/* struct linux_dirent64: d_ino, d_off (8 bytes each), d_reclen, d_type, name */
struct tr_bytes tr_compare_dirents(struct tr_bytes d, struct tr_buf *names)
{
	const uint8_t *p = d.data;
	size_t left = d.len;

	while (left > 19) {
		size_t reclen = tr_get_le16(p + 16);

		if (reclen <= 19 || reclen > left)
			break;
		tr_buf_put(names, p + 18,
			   1 + strnlen((const char *)p + 19, reclen - 19));
		tr_buf_put_u8(names, 0);
		p += reclen;
		left -= reclen;
	}
	return (struct tr_bytes){names->data, names->len};
}

/* ---- values as text ---- */

static bool is_call(const struct tr_event *ev)
{
	return ev->type == TR_EV_SYSCALL || ev->type == TR_EV_ENTER ||
	       ev->type == TR_EV_CLONE;
}

static const char *call_name(uint64_t nr, char buf[32])
{
	const struct tr_sys *sys = tr_sys_lookup(nr);

	snprintf(buf, 32, "syscall %" PRIu64, nr);
	return sys ? sys->name : buf;
}

static void name_event(const struct tr_event *ev, char *out, size_t n)
{
	char buf[32];
	uint64_t sig = tr_event_get(ev, TR_F_SIGNO);
	const char *name = tr_signal_name((int)sig);

	if (is_call(ev))
		snprintf(out, n, "%s",
			 call_name(tr_event_get(ev, TR_F_NR), buf));
	else if (ev->type == TR_EV_SIGNAL)
		snprintf(out, n, "signal %s", name ? name : "?");
	else
		snprintf(out, n, "%s", tr_event_type_name(ev->type));
}

/* In quotes as tr_sink_bytes has them, as many as n characters can hold. */
static void show_bytes(const struct tr_bytes *b, uint64_t len, char *out,
		       size_t n)
{
	TR_AUTOBUF struct tr_buf text = {0};
	const uint8_t *p = b->data;
	size_t i;

	for (i = 0; i < b->len && text.len + 16 < n; i++)
		tr_put_escaped(&text, p[i], i + 1 < b->len ? p[i + 1] : -1);
	snprintf(out, n, "\"%.*s\"%s", (int)text.len,
		 text.data ? (const char *)text.data : "",
		 len > i ? "..." : "");
}

static void show_result(int64_t v, char *out, size_t n)
{
	const char *name = v < 0 && v > -4096 ? tr_errno_name((int)-v) : NULL;

	if (name)
		snprintf(out, n, "-1 %s", name);
	else
		snprintf(out, n, "%" PRId64, v);
}

static void show_status(uint64_t v, char *out, size_t n)
{
	int status = (int)v;
	const char *name = tr_signal_name(WTERMSIG(status));

	if (WIFEXITED(status))
		snprintf(out, n, "exited with %d", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		snprintf(out, n, "killed by %s", name ? name : "?");
	else
		snprintf(out, n, "status 0x%x", (unsigned)status);
}

static void show(const struct tr_canon_field *f, char *out, size_t n)
{
	const char *name;
	char buf[32];

	switch (f->show) {
	case TR_SHOW_SYSCALL:
		snprintf(out, n, "%s", call_name(f->number, buf));
		break;
	case TR_SHOW_HEX:
		snprintf(out, n, "0x%" PRIx64, f->number);
		break;
	case TR_SHOW_TEXT:
		show_bytes(&f->bytes, f->bytes.len, out, n);
		break;
	case TR_SHOW_JSON:
		snprintf(out, n, "%.*s", (int)f->bytes.len,
			 (const char *)f->bytes.data);
		break;
	case TR_SHOW_BYTES:
		show_bytes(&f->bytes, f->number, out, n);
		break;
	case TR_SHOW_RESULT:
		show_result((int64_t)f->number, out, n);
		break;
	case TR_SHOW_SIGNAL:
		name = tr_signal_name((int)f->number);
		snprintf(out, n, "%s", name ? name : "?");
		break;
	case TR_SHOW_STATUS:
		show_status(f->number, out, n);
		break;
	default:
		snprintf(out, n, "%" PRId64, (int64_t)f->number);
	}
}

/* ---- fields ---- */

static void collect(void *arg, const struct tr_canon_field *f)
{
	struct fields *all = arg;

	TR_GROW(all->f, all->n, all->cap);
	all->f[all->n] = *f;
	all->f[all->n++].bytes.data = tr_memdup(f->bytes.data, f->bytes.len);
}

static void fields_release(struct fields *all)
{
	for (size_t i = 0; i < all->n; i++)
		free((void *)(uintptr_t)all->f[i].bytes.data);
	free(all->f);
}

static void collect_all(const struct tr_compare_view *v, struct fields *all)
{
	const struct tr_event *ev = v->event;

	if (is_call(ev) && v->args)
		tr_canon_described(v->canon, ev, v->args, false, collect, all);
	else if (is_call(ev))
		tr_canon_call(v->canon, v->enter ? v->enter : ev, collect, all);
	tr_canon_rest(v->canon, ev, collect, all);
	if (ev->type == TR_EV_SYSCALL && v->data)
		tr_canon_described(v->canon, ev, v->data, true, collect, all);
}

static void set(struct tr_difference *d, const char *kind, const char *name,
		const struct tr_event *ev, const char *left, const char *right)
{
	char event[48];

	name_event(ev, event, sizeof event);
	d->kind = kind;
	snprintf(d->what, sizeof d->what, "%s of %s: %s, %s", name, event, left,
		 right);
}

static void describe_field(const struct tr_canon_field *l,
			   const struct tr_canon_field *r,
			   const struct tr_event *ev, struct tr_difference *d)
{
	char left[VALUE_MAX] = "none", right[VALUE_MAX] = "none";
	const struct tr_canon_field *f = l ? l : r;

	if (l)
		show(l, left, sizeof left);
	if (r)
		show(r, right, sizeof right);
	if (f->show == TR_SHOW_SYSCALL || f->show == TR_SHOW_STATUS) {
		d->kind = f->kind;
		snprintf(d->what, sizeof d->what, "%s: %s, %s", f->name, left,
			 right);
		return;
	}
	set(d, f->kind, f->name, ev, left, right);
}

/*
 * The first field that differs; false when all agree.  Both lists are of the
 * same kind of event, so that a missing field is one of a repeated kind.
 */
static bool describe_fields(const struct tr_compare_view *left,
			    const struct tr_compare_view *right,
			    struct tr_difference *d)
{
	struct fields l = {0}, r = {0};
	const struct tr_canon_field *x, *y;
	size_t i = 0;

	collect_all(left, &l);
	collect_all(right, &r);
	while (i < l.n && i < r.n && l.f[i].value == r.f[i].value &&
	       strcmp(l.f[i].name, r.f[i].name) == 0)
		i++;
	x = i < l.n ? &l.f[i] : NULL;
	y = i < r.n ? &r.f[i] : NULL;
	if (x && y && strcmp(x->name, y->name) != 0)
		y = NULL;
	if (x || y)
		describe_field(x, y, left->event, d);
	fields_release(&l);
	fields_release(&r);
	return x || y;
}

/* ---- data ---- */

/* The data of one event, piece by piece. */
struct stream {
	const struct tr_compare_view *v;
	struct tr_cursor *cur;
	const struct tr_event *ev; /* it or a `more` of it, NULL at the end */
	size_t next;               /* piece of ev */
	struct tr_bytes now;       /* what is left of the current one */
	struct tr_buf names;
};

static int stream_fill(struct stream *t, struct tr_error *err)
{
	while (t->now.len == 0) {
		int n;

		if (t->ev && t->next < t->ev->nmem) {
			t->now = tr_canon_data(t->v->canon, t->v->event,
					       &t->ev->mem[t->next++]);
			t->names.len = 0;
			if (t->now.len && tr_canon_is_dirents(t->v->event))
				t->now = tr_compare_dirents(t->now, &t->names);
			continue;
		}
		n = tr_cursor_next(t->cur, &t->ev, err);
		t->next = 0;
		if (n < 0)
			return -1;
		if (n == 0 || t->ev->number != t->v->event->number)
			return 0;
	}
	return 1;
}

/* Skip what both begin with; 0 when one has ended, 1 at a difference. */
static int skip_common(struct stream *l, struct stream *r, uint64_t *at,
		       struct tr_error *err)
{
	for (;;) {
		int x = stream_fill(l, err), y = stream_fill(r, err);
		const uint8_t *p = l->now.data, *q = r->now.data;
		size_t n = l->now.len < r->now.len ? l->now.len : r->now.len;
		size_t i = 0;

		if (x < 0 || y < 0)
			return -1;
		if (!x || !y)
			return 0;
		while (i < n && p[i] == q[i])
			i++;
		*at += i;
		l->now = (struct tr_bytes){p + i, l->now.len - i};
		r->now = (struct tr_bytes){q + i, r->now.len - i};
		if (i < n)
			return 1;
	}
}

static void show_data(const struct stream *t, char out[VALUE_MAX])
{
	struct tr_bytes some = {t->now.data, t->now.len < 16 ? t->now.len : 16};

	if (t->now.len == 0)
		snprintf(out, VALUE_MAX, "end");
	else
		show_bytes(&some, t->now.len, out, VALUE_MAX);
}

static int describe_data(const struct tr_compare_view *left,
			 const struct tr_compare_view *right,
			 struct tr_difference *d, struct tr_error *err)
{
	struct stream l = {.v = left}, r = {.v = right};
	char name[40], x[VALUE_MAX], y[VALUE_MAX];
	uint64_t at = 0;
	int n;

	l.cur = tr_cursor_from(left->in->reader, left->event->number);
	r.cur = tr_cursor_from(right->in->reader, right->event->number);
	n = skip_common(&l, &r, &at, err);
	if (n >= 0) {
		show_data(&l, x);
		show_data(&r, y);
		snprintf(name, sizeof name, "%s %" PRIu64,
			 tr_canon_is_dirents(left->event) ?
			 "data at name byte" : "data at byte", at);
		set(d, "data", name, left->event, x, y);
	}
	tr_cursor_free(l.cur);
	tr_cursor_free(r.cur);
	tr_buf_release(&l.names);
	tr_buf_release(&r.names);
	return n < 0 ? -1 : 0;
}

/* ---- views ---- */

/* One line: an event, and the JSON of its arguments. */
static int parse(struct tr_compare_view *v, int i, const char *line, size_t n,
		 struct tr_error *err)
{
	v->json[i] = tr_json_parse(line, n, v->in->name, err);
	if (!v->json[i] ||
	    tr_event_parse(v->json[i], &v->parsed[i], &v->text[i], err) < 0)
		return -1;
	return 0;
}

static int parse_lines(struct tr_compare_view *v, const char *line,
		       struct tr_error *err)
{
	const char *second = strchr(line, '\n');

	if (second && parse(v, 1, line, (size_t)(second - line), err) < 0)
		return -1;
	line = second ? second + 1 : line;
	if (parse(v, 0, line, strlen(line), err) < 0)
		return -1;
	v->event = &v->parsed[0];
	v->enter = second ? &v->parsed[1] : NULL;
	return 0;
}

int tr_compare_view_init(struct tr_compare_view *v,
			 const struct tr_compare_item *item,
			 const struct tr_event *event,
			 const struct tr_event *enter, struct tr_error *err)
{
	v->event = event;
	v->enter = enter;
	if (item->line && parse_lines(v, item->line, err) < 0)
		return -1;
	if (!v->canon->described)
		return 0;
	if (!item->line)
		v->json[0] = tr_describe_json(event, false);
	if (!item->line && enter)
		v->json[1] = tr_describe_json(enter, false);
	v->data = tr_json_get(v->json[0], "args");
	v->args = tr_json_get(v->json[v->json[1] ? 1 : 0], "args");
	return 0;
}

void tr_compare_view_release(struct tr_compare_view *v)
{
	for (int i = 0; i < 2; i++) {
		if (v->json[i])
			tr_json_free(v->json[i]);
		free(v->text[i]);
	}
}

/* ---- the difference ---- */

int tr_compare_describe(const struct tr_compare_view *left,
			const struct tr_compare_view *right,
			struct tr_difference *d, struct tr_error *err)
{
	const struct tr_event *l = left->event, *r = right->event;
	char x[48], y[48];

	name_event(l, x, sizeof x);
	name_event(r, y, sizeof y);
	if (is_call(l) != is_call(r) || (!is_call(l) && l->type != r->type)) {
		d->kind = "type";
		snprintf(d->what, sizeof d->what, "event: %s, %s", x, y);
		return 0;
	}
	if (describe_fields(left, right, d)) {
		if (l->type == TR_EV_STATE)
			tr_compare_name_memory(left, right, d);
		return 0;
	}
	if (l->type != r->type) {
		set(d, "result", "result", l,
		    l->type == TR_EV_SYSCALL ? "returned" : "did not return",
		    r->type == TR_EV_SYSCALL ? "returned" : "did not return");
		return 0;
	}
	if (left->canon->described) {
		d->kind = "data";
		snprintf(d->what, sizeof d->what, "%s: not told apart by what "
			 "JSON says", x);
		return 0;
	}
	return describe_data(left, right, d, err);
}

void tr_compare_describe_one(const struct tr_compare_view *v, bool missing,
			     struct tr_difference *d)
{
	char name[48];

	name_event(v->event, name, sizeof name);
	d->kind = missing ? "missing" : "extra";
	snprintf(d->what, sizeof d->what, "%s of task %u: only in the %s trace",
		 name, v->event->task, missing ? "left" : "right");
}
