/* Events as text lines and as JSON objects. */
#include "libtrace/model/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "libtrace/format/page_list.h"
#include "libtrace/format/site_list.h"
#include "libtrace/model/shown.h"
#include "libtrace/model/values.h"

#define MAX_ERRNO 4095

static uint64_t scalar(const struct tr_event *ev, enum tr_field f)
{
	return tr_event_get(ev, f);
}

static const char *origin_name(uint64_t origin)
{
	switch (origin) {
	case TR_ORIGIN_DENIED:
		return "denied";
	case TR_ORIGIN_EMULATED:
		return "emulated";
	case TR_ORIGIN_CAPTURED:
		return "captured";
	case TR_ORIGIN_BUFFERED:
		return "buffered";
	default:
		return NULL;
	}
}

static const char *reason_name(uint64_t reason)
{
	switch (reason) {
	case TR_ASYNC_SIGNAL:
		return "signal";
	case TR_ASYNC_PREEMPT:
		return "preempt";
	case TR_ASYNC_SAMPLE:
		return "sample";
	case TR_ASYNC_SPIN:
		return "spin";
	case TR_ASYNC_TRACER:
		return "tracer";
	default:
		return "?";
	}
}

static const char *reason_text(uint64_t reason)
{
	switch (reason) {
	case TR_ASYNC_SIGNAL:
		return "a signal";
	case TR_ASYNC_PREEMPT:
	case TR_ASYNC_SPIN:
		return "another task";
	case TR_ASYNC_TRACER:
		return "its tracer";
	default:
		return "a look";
	}
}

static const char *action_name(uint64_t action)
{
	switch (action) {
	case TR_SIG_HANDLER:
		return "handler";
	case TR_SIG_FATAL:
		return "fatal";
	case TR_SIG_NONE:
		return "none";
	default:
		return "?";
	}
}

/* "read", or "syscall_999" for a number without a row. */
static void put_call_name(struct tr_buf *b, const struct tr_shown_call *c)
{
	if (c->sys)
		tr_put(b, "%s", c->sys->name);
	else
		tr_put(b, "syscall_%" PRIu64, c->call.nr);
}

static bool is_error(int64_t result)
{
	return result < 0 && result >= -MAX_ERRNO;
}

/* Results that are addresses. */
static bool gives_address(uint64_t nr)
{
	return nr == __NR_mmap || nr == __NR_mremap || nr == __NR_brk ||
	       nr == __NR_shmat;
}

/* Text. */

static void put_bytes(struct tr_buf *b, const struct tr_bytes *bytes,
		      size_t most)
{
	struct tr_sink s = {.text = b};

	tr_sink_bytes(&s, bytes->data, bytes->len < most ? bytes->len : most,
		      bytes->len);
}

static void put_text_field(struct tr_buf *b, const struct tr_event *ev)
{
	if (tr_event_has(ev, TR_F_TEXT))
		put_bytes(b, &ev->text, ev->text.len);
	else
		tr_put(b, "?");
}

static void put_hex(struct tr_buf *b, const struct tr_bytes *bytes)
{
	const uint8_t *p = bytes->data;

	for (size_t i = 0; i < bytes->len; i++)
		tr_put(b, "%02x", p[i]);
}

static void put_arguments(struct tr_buf *b, const struct tr_shown_call *c)
{
	unsigned n = tr_shown_nargs(c);

	if (n == 0 && c->sys && c->sys->nargs > 0)
		tr_put(b, "...");
	for (unsigned i = 0; i < n; i++) {
		struct tr_sink s = {.text = b};

		if (tr_shown_unused(c, i))
			continue;
		if (i > 0)
			tr_put(b, ", ");
		tr_shown_arg(c, i, &s);
	}
}

static void put_result(struct tr_buf *b, const struct tr_event *ev)
{
	int64_t r = (int64_t)scalar(ev, TR_F_RESULT);
	const char *name = is_error(r) ? tr_errno_name((int)-r) : NULL;

	if (!tr_event_has(ev, TR_F_RESULT))
		tr_put(b, " = ?");
	else if (name && -r >= 512) /* a restart the kernel hides */
		tr_put(b, " = ? %s", name);
	else if (name)
		tr_put(b, " = -1 %s", name);
	else if (gives_address(scalar(ev, TR_F_NR)))
		tr_put(b, " = 0x%" PRIx64, (uint64_t)r);
	else
		tr_put(b, " = %" PRId64, r);
	name = origin_name(scalar(ev, TR_F_ORIGIN));
	if (name)
		tr_put(b, " (%s)", name);
}

static void text_syscall(struct tr_buf *b, const struct tr_event *ev)
{
	struct tr_shown_call c;

	tr_shown_init(&c, ev);
	put_call_name(b, &c);
	tr_put(b, "(");
	put_arguments(b, &c);
	if (ev->type == TR_EV_ENTER) {
		tr_put(b, " <unfinished ...>");
	} else if (ev->type == TR_EV_CLONE) {
		tr_put(b, " <unfinished ...> makes task %" PRIu64,
		       scalar(ev, TR_F_CHILD));
	} else {
		tr_put(b, ")");
		put_result(b, ev);
	}
	tr_shown_release(&c);
}

static void text_signal(struct tr_buf *b, const struct tr_event *ev)
{
	struct tr_sink s = {.text = b};

	tr_put(b, "--- ");
	tr_show_signal(&s, (int)scalar(ev, TR_F_SIGNO));
	if (tr_event_has(ev, TR_F_SIGINFO)) {
		tr_put(b, " ");
		tr_show_siginfo(&s, ev->siginfo.data, ev->siginfo.len);
	}
	tr_put(b, " (%s) ---", action_name(scalar(ev, TR_F_ACTION)));
}

static void text_exit(struct tr_buf *b, const struct tr_event *ev)
{
	int st = (int)scalar(ev, TR_F_STATUS);
	struct tr_sink s = {.text = b};

	tr_put(b, "+++ ");
	if (WIFSIGNALED(st)) {
		tr_put(b, "killed by ");
		tr_show_signal(&s, WTERMSIG(st));
		if (WCOREDUMP(st))
			tr_put(b, " (core dumped)");
	} else {
		tr_put(b, "exited with %d", WEXITSTATUS(st));
	}
	tr_put(b, " +++");
}

static void text_image(struct tr_buf *b, const struct tr_event *ev)
{
	tr_put(b, "=== image ");
	put_text_field(b, ev);
	tr_put(b, ", %zu mapping%s ===", ev->nmap, ev->nmap == 1 ? "" : "s");
}

static void text_start(struct tr_buf *b, const struct tr_event *ev)
{
	tr_put(b, "=== start of process %" PRIu64 ", thread %" PRIu64,
	       scalar(ev, TR_F_PID), scalar(ev, TR_F_TID));
	if (scalar(ev, TR_F_PARENT))
		tr_put(b, ", made by task %" PRIu64, scalar(ev, TR_F_PARENT));
	tr_put(b, " ===");
}

static void text_insn(struct tr_buf *b, const struct tr_event *ev)
{
	uint64_t insn = scalar(ev, TR_F_INSN);
	const struct tr_regs *before = &ev->regs, *after = &ev->regs_after;

	tr_put(b, "%s", tr_insn_name(insn));
	if (tr_event_has(ev, TR_F_REGS))
		tr_put(b, " at 0x%" PRIx64, before->rip);
	if (!tr_event_has(ev, TR_F_REGS_AFTER))
		return;
	if (insn == TR_INSN_RDTSC || insn == TR_INSN_RDTSCP)
		tr_put(b, " = 0x%" PRIx64, after->rdx << 32 |
		       (uint32_t)after->rax);
	else if (insn == TR_INSN_CPUID)
		tr_put(b, ", leaf 0x%" PRIx64 " = 0x%" PRIx64 " 0x%" PRIx64
		       " 0x%" PRIx64 " 0x%" PRIx64, before->rax, after->rax,
		       after->rbx, after->rcx, after->rdx);
}

/* How many sites in the file's code were known beforehand. */
static uint64_t count_known(const struct tr_event *ev)
{
	struct tr_span s = tr_span_of(&ev->known);
	struct tr_listed_site site;
	uint64_t next = 0, n = 0;

	while (tr_site_list_get(&s, &next, &site))
		n++;
	return n;
}

static void text_file(struct tr_buf *b, const struct tr_event *ev)
{
	tr_put(b, "file %" PRIu64 " ", scalar(ev, TR_F_FILE));
	put_text_field(b, ev);
	tr_put(b, ", %s, %" PRIu64 " bytes",
	       tr_method_name(scalar(ev, TR_F_METHOD)),
	       scalar(ev, TR_F_SIZE));
	if (tr_event_has(ev, TR_F_KNOWN))
		tr_put(b, ", %" PRIu64 " known sites", count_known(ev));
}

static void text_note(struct tr_buf *b, const struct tr_event *ev)
{
	tr_put(b, "note %s: ", tr_note_name(scalar(ev, TR_F_CODE)));
	if (scalar(ev, TR_F_CODE) == TR_NOTE_DOMAIN_JOINED)
		tr_put(b, "domain %" PRIu64, scalar(ev, TR_F_DOMAIN));
	else
		put_text_field(b, ev);
}

static void text_digest(struct tr_buf *b, const struct tr_event *ev)
{
	tr_put(b, "sha256 of file %" PRIu64 " is ", scalar(ev, TR_F_FILE));
	put_hex(b, &ev->sha256);
}

static void text_state(struct tr_buf *b, const struct tr_event *ev)
{
	tr_put(b, "state: memory 0x%" PRIx64 ", registers 0x%" PRIx64,
	       scalar(ev, TR_F_ROOT), scalar(ev, TR_F_REGISTERS));
	if (tr_event_has(ev, TR_F_VECTOR))
		tr_put(b, ", vector 0x%" PRIx64, scalar(ev, TR_F_VECTOR));
	if (tr_event_has(ev, TR_F_CHANGED))
		tr_put(b, "; %" PRIu64 " page%s changed",
		       scalar(ev, TR_F_CHANGED),
		       scalar(ev, TR_F_CHANGED) == 1 ? "" : "s");
}

static void put_regs(struct tr_buf *b, const char *title,
		     const struct tr_regs *r)
{
	unsigned i = 0;

	tr_put(b, "\n  %s", title);
#define X(name)                                                                \
	tr_put(b, "%s%s=0x%" PRIx64, i++ % 4 ? " " : "\n    ", #name, r->name);
	TR_REGS(X)
#undef X
}

static void put_map(struct tr_buf *b, const struct tr_map *m)
{
	tr_put(b, "\n  map 0x%" PRIx64 "-0x%" PRIx64 " %c%c%c%c", m->start,
	       m->end, m->prot & PROT_READ ? 'r' : '-',
	       m->prot & PROT_WRITE ? 'w' : '-',
	       m->prot & PROT_EXEC ? 'x' : '-',
	       m->flags & MAP_SHARED ? 's' : 'p');
	if (m->file)
		tr_put(b, " file %" PRIu32 " at 0x%" PRIx64, m->file,
		       m->offset);
	if (m->name.len) {
		tr_put(b, " ");
		put_bytes(b, &m->name, m->name.len);
	}
}

static void put_state(struct tr_buf *b, const struct tr_event *ev)
{
	struct tr_span s = tr_span_of(&ev->page_hashes);
	struct tr_page_hash page;
	uint64_t next = 0;

	for (size_t i = 0; i < ev->nmap; i++) {
		put_map(b, &ev->map[i]);
		tr_put(b, " digest 0x%" PRIx64, tr_map_digest(ev, i));
	}
	while (tr_page_list_get(&s, &next, &page))
		tr_put(b, "\n  changed page 0x%" PRIx64 " hash 0x%" PRIx64,
		       page.addr, page.hash);
}

static void put_details(struct tr_buf *b, const struct tr_event *ev)
{
	if (ev->type == TR_EV_STATE) {
		put_state(b, ev);
		return;
	}
	if (tr_event_has(ev, TR_F_DURATION))
		tr_put(b, "\n  duration %" PRIu64 " ns",
		       scalar(ev, TR_F_DURATION));
	if (tr_event_has(ev, TR_F_REGS))
		put_regs(b, "registers before", &ev->regs);
	if (tr_event_has(ev, TR_F_REGS_AFTER))
		put_regs(b, "registers after", &ev->regs_after);
	for (size_t i = 0; i < ev->narg; i++) {
		const struct tr_arg *a = &ev->arg[i];

		tr_put(b, "\n  read 0x%" PRIx64 " +%" PRIu64 " for argument %d"
		       " ", a->addr, a->len, a->index);
		put_bytes(b, &a->bytes, TR_SHOWN_BYTES);
	}
	for (size_t i = 0; i < ev->nmem; i++) {
		tr_put(b, "\n  %s 0x%" PRIx64 " +%zu ",
		       ev->type == TR_EV_ASYNC ? "saw" : "wrote",
		       ev->mem[i].addr, ev->mem[i].bytes.len);
		put_bytes(b, &ev->mem[i].bytes, TR_SHOWN_BYTES);
	}
	for (size_t i = 0; i < ev->nmap; i++)
		put_map(b, &ev->map[i]);
}

static void text_tracer(struct tr_buf *b, const struct tr_event *ev)
{
	const char *name = tr_signal_name((int)scalar(ev, TR_F_SIGNO));

	if (ev->type == TR_EV_STOP) {
		tr_put(b, "held by its tracer: %s at 0x%" PRIx64 "%s",
		       name ? name : "a signal", ev->regs.rip,
		       scalar(ev, TR_F_PLACE) == TR_PLACE_STEP
			       ? ", a step" : "");
		return;
	}
	tr_put(b, "changed by another task:");
	if (tr_event_has(ev, TR_F_REGS_AFTER))
		tr_put(b, " registers, at 0x%" PRIx64 " now",
		       ev->regs_after.rip);
	if (tr_event_has(ev, TR_F_XSTATE))
		tr_put(b, " extended state");
	if (tr_event_has(ev, TR_F_DEBUG_REGISTER))
		tr_put(b, " debug register %" PRIu64 " = 0x%" PRIx64,
		       scalar(ev, TR_F_DEBUG_REGISTER),
		       scalar(ev, TR_F_VALUE));
	for (size_t i = 0; i < ev->nmem; i++)
		tr_put(b, " %zu bytes at 0x%" PRIx64, ev->mem[i].bytes.len,
		       ev->mem[i].addr);
}

static void text_async(struct tr_buf *b, const struct tr_event *ev)
{
	tr_put(b, "async: in a computation at 0x%" PRIx64 ", for %s, %" PRIu64
	       " us", ev->regs.rip, reason_text(scalar(ev, TR_F_REASON)),
	       scalar(ev, TR_F_DURATION) / 1000);
	if (!tr_event_has(ev, TR_F_ROOT))
		tr_put(b, ", without its memory");
}

static void text_event(struct tr_buf *b, const struct tr_event *ev)
{
	switch (ev->type) {
	case TR_EV_SYSCALL:
	case TR_EV_ENTER:
	case TR_EV_CLONE:
		text_syscall(b, ev);
		break;
	case TR_EV_IMAGE:
		text_image(b, ev);
		break;
	case TR_EV_START:
		text_start(b, ev);
		break;
	case TR_EV_SIGNAL:
		text_signal(b, ev);
		break;
	case TR_EV_INSN:
		text_insn(b, ev);
		break;
	case TR_EV_EXIT:
		text_exit(b, ev);
		break;
	case TR_EV_MORE:
		tr_put(b, "more effects of event %" PRIu64, ev->number);
		break;
	case TR_EV_FILE:
		text_file(b, ev);
		break;
	case TR_EV_NOTE:
		text_note(b, ev);
		break;
	case TR_EV_DIGEST:
		text_digest(b, ev);
		break;
	case TR_EV_STATE:
		text_state(b, ev);
		break;
	case TR_EV_STOP:
	case TR_EV_POKE:
		text_tracer(b, ev);
		break;
	case TR_EV_ASYNC:
		text_async(b, ev);
		break;
	case TR_EV_END:
		tr_put(b, "end of the recording: %" PRIu64 " events, %" PRIu64
		       " tasks", scalar(ev, TR_F_EVENTS),
		       scalar(ev, TR_F_TASKS));
		break;
	default:
		tr_put(b, "event of unknown type %u", (unsigned)ev->type);
		break;
	}
}

void tr_describe_text(const struct tr_event *ev, bool verbose,
		      struct tr_buf *out)
{
	text_event(out, ev);
	if (verbose)
		put_details(out, ev);
}

/* JSON. */

static struct tr_json *json_uint(uint64_t v)
{
	return v > INT64_MAX ? tr_json_hex(v) : tr_json_int((int64_t)v);
}

static struct tr_json *json_arguments(const struct tr_shown_call *c)
{
	struct tr_json *args = tr_json_object();
	unsigned n = tr_shown_nargs(c);

	for (unsigned i = 0; i < n; i++) {
		char number[16];
		struct tr_sink s = {0};

		if (!c->sys)
			snprintf(number, sizeof number, "arg%u", i + 1);
		tr_shown_arg(c, i, &s);
		tr_json_set(args, c->sys ? c->sys->arg[i].name : number,
			    s.root);
	}
	return args;
}

static void json_result(struct tr_json *j, const struct tr_event *ev)
{
	int64_t r = (int64_t)scalar(ev, TR_F_RESULT);
	const char *name = is_error(r) ? tr_errno_name((int)-r) : NULL;

	if (!tr_event_has(ev, TR_F_RESULT))
		return;
	if (!is_error(r) && gives_address(scalar(ev, TR_F_NR)))
		tr_json_set(j, "result", tr_json_hex((uint64_t)r));
	else
		tr_json_set(j, "result", tr_json_int(r));
	if (name)
		tr_json_set(j, "errno", tr_json_string(name));
}

static void json_syscall(struct tr_json *j, const struct tr_event *ev)
{
	TR_AUTOBUF struct tr_buf name = {0};
	struct tr_shown_call c;

	tr_shown_init(&c, ev);
	if (!c.sys)
		put_call_name(&name, &c);
	tr_json_set(j, "name", c.sys ? tr_json_string(c.sys->name) :
			       tr_json_bytes(name.data, name.len));
	tr_json_set(j, "nr", json_uint(c.call.nr));
	tr_json_set(j, "args", json_arguments(&c));
	json_result(j, ev);
	tr_shown_release(&c);
}

static void json_signal(struct tr_json *j, const struct tr_event *ev)
{
	struct tr_sink name = {0}, info = {0};

	tr_show_signal(&name, (int)scalar(ev, TR_F_SIGNO));
	tr_json_set(j, "name", name.root);
	if (!tr_event_has(ev, TR_F_SIGINFO))
		return;
	tr_show_siginfo(&info, ev->siginfo.data, ev->siginfo.len);
	tr_json_set(j, "siginfo", info.root);
}

static void json_exit(struct tr_json *j, const struct tr_event *ev)
{
	int st = (int)scalar(ev, TR_F_STATUS);
	struct tr_sink name = {0};

	if (!WIFSIGNALED(st)) {
		tr_json_set(j, "exit_code", tr_json_int(WEXITSTATUS(st)));
		return;
	}
	tr_show_signal(&name, WTERMSIG(st));
	tr_json_set(j, "signal", name.root);
	tr_json_set(j, "core", tr_json_bool(WCOREDUMP(st)));
}

/* Numbers of a field that have names; NULL for other fields. */
static const char *value_name(enum tr_field f, uint64_t v)
{
	switch (f) {
	case TR_F_ORIGIN:
		return origin_name(v);
	case TR_F_ACTION:
		return action_name(v);
	case TR_F_INSN:
		return tr_insn_name(v);
	case TR_F_METHOD:
		return tr_method_name(v);
	case TR_F_CODE:
		return tr_note_name(v);
	case TR_F_REASON:
		return reason_name(v);
	default:
		return NULL;
	}
}

static void json_scalar(struct tr_json *j, const struct tr_event *ev,
			enum tr_field f, const char *name, bool is_signed,
			bool is_hex)
{
	uint64_t v = scalar(ev, f);
	const char *text;

	if (tr_json_get(j, name))
		return;
	/* The kernel's own results are the rule. */
	if (f == TR_F_ORIGIN && v == TR_ORIGIN_KERNEL)
		return;
	text = value_name(f, v);
	if (text)
		tr_json_set(j, name, tr_json_string(text));
	else if (is_hex)
		tr_json_set(j, name, tr_json_hex(v));
	else if (is_signed)
		tr_json_set(j, name, tr_json_int((int64_t)v));
	else
		tr_json_set(j, name, json_uint(v));
}

/* What the functions above have not shown, by the table of fields. */
static void json_scalars(struct tr_json *j, const struct tr_event *ev)
{
	enum { U, S, D, H };
#define X(NAME, tag, name, sign, form)                                         \
	if (tr_event_has(ev, TR_F_##NAME))                                     \
		json_scalar(j, ev, TR_F_##NAME, name, (sign) == S,             \
			    (form) == H);
	TR_SCALAR_FIELDS(X)
#undef X
	if (tr_event_has(ev, TR_F_TEXT))
		tr_json_set(j, "text",
			    tr_json_bytes(ev->text.data, ev->text.len));
	if (tr_event_has(ev, TR_F_SHA256))
		tr_json_set(j, "sha256", tr_json_hex_bytes(ev->sha256.data,
							   ev->sha256.len));
}

static struct tr_json *json_regs(const struct tr_regs *r)
{
	struct tr_json *j = tr_json_object();

#define X(name) tr_json_set(j, #name, tr_json_hex(r->name));
	TR_REGS(X)
#undef X
	return j;
}

static struct tr_json *json_map(const struct tr_map *m)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "start", tr_json_hex(m->start));
	tr_json_set(j, "end", tr_json_hex(m->end));
	tr_json_set(j, "prot", tr_json_int(m->prot));
	tr_json_set(j, "flags", tr_json_int(m->flags));
	tr_json_set(j, "file", tr_json_int(m->file));
	tr_json_set(j, "offset", json_uint(m->offset));
	tr_json_set(j, "name", tr_json_bytes(m->name.data, m->name.len));
	return j;
}

static struct tr_json *json_arg(const struct tr_arg *a)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "index", tr_json_int(a->index));
	tr_json_set(j, "string", tr_json_bool(a->is_string));
	tr_json_set(j, "addr", tr_json_hex(a->addr));
	tr_json_set(j, "size", json_uint(a->len));
	tr_json_set(j, "hash", tr_json_hex(a->hash));
	tr_json_set(j, "data", tr_json_bytes(a->bytes.data, a->bytes.len));
	return j;
}

static struct tr_json *json_mem(const struct tr_mem *m)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "addr", tr_json_hex(m->addr));
	tr_json_set(j, "size", json_uint(m->bytes.len));
	tr_json_set(j, "data", tr_json_bytes(m->bytes.data, m->bytes.len));
	return j;
}

/* Each mapping with its digest, and the changed pages: whole in every form,
 * for without them a state says nothing. */
static void json_state(struct tr_json *j, const struct tr_event *ev)
{
	struct tr_json *maps = tr_json_array(), *pages = tr_json_array();
	struct tr_span s = tr_span_of(&ev->page_hashes);
	struct tr_page_hash page;
	uint64_t next = 0;

	for (size_t i = 0; i < ev->nmap; i++) {
		struct tr_json *m = tr_json_object();

		tr_json_set(m, "start", tr_json_hex(ev->map[i].start));
		tr_json_set(m, "end", tr_json_hex(ev->map[i].end));
		tr_json_set(m, "prot", tr_json_int(ev->map[i].prot));
		tr_json_set(m, "flags", tr_json_int(ev->map[i].flags));
		tr_json_set(m, "name", tr_json_bytes(ev->map[i].name.data,
						     ev->map[i].name.len));
		tr_json_set(m, "digest", tr_json_hex(tr_map_digest(ev, i)));
		tr_json_append(maps, m);
	}
	while (tr_page_list_get(&s, &next, &page)) {
		struct tr_json *p = tr_json_object();

		tr_json_set(p, "addr", tr_json_hex(page.addr));
		tr_json_set(p, "hash", tr_json_hex(page.hash));
		tr_json_append(pages, p);
	}
	tr_json_set(j, "mappings", maps);
	tr_json_set(j, "pages", pages);
}

static struct tr_json *json_known(const struct tr_event *ev)
{
	struct tr_span s = tr_span_of(&ev->known);
	struct tr_json *sites = tr_json_array();
	struct tr_listed_site site;
	uint64_t next = 0;

	while (tr_site_list_get(&s, &next, &site)) {
		struct tr_json *j = tr_json_object();

		tr_json_set(j, "offset", json_uint(site.at));
		tr_json_set(j, "insn", tr_json_string(
			site.insn ? tr_insn_name(site.insn) : "syscall"));
		tr_json_set(j, "length", tr_json_int(site.length));
		if (site.via)
			tr_json_set(j, "via", json_uint(site.via));
		tr_json_set(j, "value", json_uint(site.hole));
		tr_json_append(sites, j);
	}
	return sites;
}

static void json_arrays(struct tr_json *j, const struct tr_event *ev)
{
	struct tr_json *args = tr_json_array(), *mems = tr_json_array(),
		       *maps = tr_json_array();

	for (size_t i = 0; i < ev->narg; i++)
		tr_json_append(args, json_arg(&ev->arg[i]));
	for (size_t i = 0; i < ev->nmem; i++)
		tr_json_append(mems, json_mem(&ev->mem[i]));
	for (size_t i = 0; i < ev->nmap; i++)
		tr_json_append(maps, json_map(&ev->map[i]));
	tr_json_set(j, "arg", args);
	tr_json_set(j, "mem", mems);
	tr_json_set(j, "map", maps);
}

static void json_details(struct tr_json *j, const struct tr_event *ev)
{
	if (tr_event_has(ev, TR_F_REGS))
		tr_json_set(j, "regs", json_regs(&ev->regs));
	if (tr_event_has(ev, TR_F_REGS_AFTER))
		tr_json_set(j, "regs_after", json_regs(&ev->regs_after));
	if (tr_event_has(ev, TR_F_XSTATE))
		tr_json_set(j, "xstate", tr_json_hex_bytes(ev->xstate.data,
							   ev->xstate.len));
	json_arrays(j, ev);
	if (tr_event_has(ev, TR_F_KNOWN))
		tr_json_set(j, "known_sites", json_known(ev));
}

static void json_by_type(struct tr_json *j, const struct tr_event *ev)
{
	switch (ev->type) {
	case TR_EV_SYSCALL:
	case TR_EV_ENTER:
	case TR_EV_CLONE:
		json_syscall(j, ev);
		break;
	case TR_EV_SIGNAL:
		json_signal(j, ev);
		break;
	case TR_EV_EXIT:
		json_exit(j, ev);
		break;
	case TR_EV_IMAGE:
		tr_json_set(j, "maps", json_uint(ev->nmap));
		break;
	case TR_EV_STATE:
		json_state(j, ev);
		break;
	case TR_EV_FILE:
		if (tr_event_has(ev, TR_F_KNOWN))
			tr_json_set(j, "known", json_uint(count_known(ev)));
		break;
	case TR_EV_ASYNC:
		tr_json_set(j, "rip", tr_json_hex(ev->regs.rip));
		break;
	default:
		break;
	}
}

struct tr_json *tr_describe_json(const struct tr_event *ev, bool verbose)
{
	struct tr_json *j = tr_json_object();
	const char *type = tr_event_type_name(ev->type);

	tr_json_set(j, "type", tr_json_string(type ? type : "unknown"));
	tr_json_set(j, "event", json_uint(ev->number));
	tr_json_set(j, "task", tr_json_int(ev->task));
	tr_json_set(j, "stream", tr_json_int(ev->stream));
	tr_json_set(j, "time", json_uint(ev->time));
	json_by_type(j, ev);
	json_scalars(j, ev);
	if (verbose && ev->type != TR_EV_STATE)
		json_details(j, ev);
	return j;
}
