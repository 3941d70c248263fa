/*
 * View: a timeline for browsers, as JSON in Chrome's trace-event format, which
 * Perfetto and about:tracing read.
 *
 * A program's run is a slice of its thread, system calls are slices in it,
 * what has no duration is an instant, and an arrow leads from the call that
 * made a task to the task's beginning.  Times are microseconds with three
 * decimals; an event's time is that of its end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/output.h"
#include "cmd/cli/status.h"
#include "cmd/cli/views.h"
#include "libtrace/base/alloc.h"
#include "libtrace/base/table.h"

struct thread {
	uint64_t pid, tid;
	char *program;          /* as JSON; NULL until it is known */
	bool running;           /* a slice for the program is open */
	bool announced;         /* the arrow to it has begun */
	struct tr_json *begun;  /* a call that has not ended, described */
	uint64_t since;         /* when it began */
};

struct timeline {
	struct tr_table threads; /* by task */
	uint64_t last;           /* time */
	bool any;                /* something was printed */
};

static void *chrome_open(bool json)
{
	(void)json;
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", stdout);
	return tr_alloc(sizeof(struct timeline));
}

/* The head of an entry; its members follow, then "}". */
static void entry(struct timeline *t, const char *phase, uint64_t pid,
		  uint64_t tid)
{
	printf("%s\n{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64,
	       t->any ? "," : "", phase, pid, tid);
	t->any = true;
}

static void print_time(const char *key, uint64_t ns)
{
	printf(",\"%s\":%" PRIu64 ".%03u", key, ns / 1000,
	       (unsigned)(ns % 1000));
}

static void print_name(const char *name)
{
	TR_AUTOFREE char *text = NULL;
	struct tr_json *j = tr_json_string(name);

	text = tr_json_dump(j);
	printf(",\"name\":%s", text);
	tr_json_free(j);
}

static void print_metadata(struct timeline *t, const struct thread *th,
			   const char *what, const char *json)
{
	entry(t, "M", th->pid, th->tid);
	printf(",\"name\":\"%s\",\"args\":{\"name\":%s}}", what, json);
}

static void instant(struct timeline *t, const struct thread *th,
		    const char *category, const char *name, uint64_t time)
{
	entry(t, "i", th->pid, th->tid);
	printf(",\"s\":\"t\",\"cat\":\"%s\"", category);
	print_name(name);
	print_time("ts", time);
	putchar('}');
}

static void arrow(struct timeline *t, const struct thread *th,
		  const char *phase, uint64_t task, uint64_t time)
{
	entry(t, phase, th->pid, th->tid);
	printf(",\"cat\":\"task\",\"name\":\"makes\",\"id\":%" PRIu64, task);
	if (*phase == 'f')
		fputs(",\"bp\":\"e\"", stdout);
	print_time("ts", time);
	putchar('}');
}

/* ---- programs ---- */

static void begin_program(struct timeline *t, struct thread *th, uint64_t time)
{
	entry(t, "B", th->pid, th->tid);
	printf(",\"cat\":\"program\",\"name\":%s",
	       th->program ? th->program : "\"?\"");
	print_time("ts", time);
	putchar('}');
	th->running = true;
}

static void end_program(struct timeline *t, struct thread *th, uint64_t time)
{
	if (!th->running)
		return;
	entry(t, "E", th->pid, th->tid);
	print_time("ts", time);
	putchar('}');
	th->running = false;
}

/* The last component of a path, as JSON. */
static char *program_name(const struct tr_bytes *path)
{
	const char *p = path->data;
	size_t n = path->len, i = n;
	struct tr_json *j;
	char *text;

	while (i > 0 && p[i - 1] != '/')
		i--;
	TR_AUTOFREE char *name = tr_strndup(n ? p + i : "?", n ? n - i : 1);

	/* Chrome knows text only: what is not UTF-8 loses its meaning. */
	for (char *c = name; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	j = tr_json_string(name);
	text = tr_json_dump(j);
	tr_json_free(j);
	return text;
}

static void name_thread(struct timeline *t, const struct thread *th)
{
	if (th->pid == th->tid)
		print_metadata(t, th, "process_name", th->program);
	print_metadata(t, th, "thread_name", th->program);
}

static struct thread *thread_of(struct timeline *t, uint32_t task)
{
	struct thread *th = tr_table_get(&t->threads, task);

	if (!th) {
		th = tr_alloc(sizeof *th);
		tr_table_set(&t->threads, task, th);
	}
	return th;
}

static void set_ids(struct thread *th, const struct tr_event *ev)
{
	th->pid = tr_event_get(ev, TR_F_PID);
	th->tid = tr_event_get(ev, TR_F_TID);
}

/* ---- calls ---- */

static void member(const struct tr_json *j, const char *key, bool *first)
{
	const struct tr_json *value = tr_json_get(j, key);
	TR_AUTOFREE char *text = value ? tr_json_dump(value) : NULL;

	if (!text)
		return;
	printf("%s\"%s\":%s", *first ? "" : ",", key, text);
	*first = false;
}

static void call(struct timeline *t, const struct thread *th,
		 const struct tr_json *j, uint64_t start, uint64_t end)
{
	const char *name = "?";
	bool first = true;

	tr_json_get_string(tr_json_get(j, "name"), &name);
	entry(t, "X", th->pid, th->tid);
	fputs(",\"cat\":\"syscall\"", stdout);
	print_name(name);
	print_time("ts", start);
	print_time("dur", end - start);
	fputs(",\"args\":{", stdout);
	member(j, "event", &first);
	member(j, "args", &first);
	member(j, "result", &first);
	member(j, "errno", &first);
	fputs("}}", stdout);
}

static void forget_call(struct thread *th)
{
	if (th->begun)
		tr_json_free(th->begun);
	th->begun = NULL;
}

static void begin_call(struct timeline *t, struct thread *th,
		       const struct tr_event *ev)
{
	uint32_t child = (uint32_t)tr_event_get(ev, TR_F_CHILD);

	if (!th->begun) {
		th->begun = tr_describe_json(ev, false);
		th->since = ev->time;
	}
	if (child) {
		arrow(t, th, "s", child, ev->time);
		thread_of(t, child)->announced = true;
	}
}

static void end_call(struct timeline *t, struct thread *th,
		     const struct tr_event *ev)
{
	uint64_t lasted = tr_event_get(ev, TR_F_DURATION);
	struct tr_json *j = tr_describe_json(ev, false);
	uint64_t start = lasted < ev->time ? ev->time - lasted : 0;

	call(t, th, j, start, ev->time);
	tr_json_free(j);
	forget_call(th);
}

/* A call that will not return ends with the program or the task. */
static void break_call(struct timeline *t, struct thread *th, uint64_t time)
{
	if (th->begun)
		call(t, th, th->begun, th->since,
		     time > th->since ? time : th->since);
	forget_call(th);
}

/* ---- events ---- */

static void image(struct timeline *t, struct thread *th,
		  const struct tr_event *ev)
{
	break_call(t, th, ev->time);
	end_program(t, th, ev->time);
	set_ids(th, ev);
	free(th->program);
	th->program = program_name(&ev->text);
	name_thread(t, th);
	begin_program(t, th, ev->time);
}

static void start(struct timeline *t, struct thread *th,
		  const struct tr_event *ev)
{
	const struct thread *parent = tr_table_get(
		&t->threads, tr_event_get(ev, TR_F_PARENT));

	set_ids(th, ev);
	free(th->program);
	th->program = tr_strdup(parent && parent->program ? parent->program
							  : "\"?\"");
	name_thread(t, th);
	begin_program(t, th, ev->time);
	if (th->announced)
		arrow(t, th, "f", ev->task, ev->time);
}

static void finish(struct timeline *t, struct thread *th,
		   const struct tr_event *ev)
{
	char how[64];

	break_call(t, th, ev->time);
	cli_status_text((int)tr_event_get(ev, TR_F_STATUS), how, sizeof how);
	instant(t, th, "exit", how, ev->time);
	end_program(t, th, ev->time);
}

static void signal_name(const struct tr_event *ev, char *name, size_t n)
{
	int sig = (int)tr_event_get(ev, TR_F_SIGNO);
	const char *known = tr_signal_name(sig);

	if (known)
		snprintf(name, n, "%s", known);
	else
		snprintf(name, n, "signal %d", sig);
}

static void chrome_add(void *state, const struct tr_event *ev)
{
	struct timeline *t = state;
	struct thread *th = ev->task ? thread_of(t, ev->task) : NULL;
	char name[32];

	if (!th)
		return;
	if (ev->time > t->last)
		t->last = ev->time;
	switch ((unsigned)ev->type) {
	case TR_EV_IMAGE:
		image(t, th, ev);
		break;
	case TR_EV_START:
		start(t, th, ev);
		break;
	case TR_EV_ENTER:
	case TR_EV_CLONE:
		begin_call(t, th, ev);
		break;
	case TR_EV_SYSCALL:
		end_call(t, th, ev);
		break;
	case TR_EV_SIGNAL:
		signal_name(ev, name, sizeof name);
		instant(t, th, "signal", name, ev->time);
		break;
	case TR_EV_INSN:
		instant(t, th, "insn", tr_insn_name(tr_event_get(ev, TR_F_INSN)),
			ev->time);
		break;
	case TR_EV_NOTE:
		instant(t, th, "note", tr_note_name(tr_event_get(ev, TR_F_CODE)),
			ev->time);
		break;
	case TR_EV_EXIT:
		finish(t, th, ev);
		break;
	default:
		break;
	}
}

static void chrome_close(void *state, const struct tr_reader *reader)
{
	struct timeline *t = state;

	(void)reader;
	TR_TABLE_EACH(&t->threads, s) {
		struct thread *th = s->value;

		break_call(t, th, t->last);
		end_program(t, th, t->last);
		free(th->program);
		free(th);
	}
	tr_table_release(&t->threads);
	free(t);
	fputs("\n]}\n", stdout);
}

const struct cli_view cli_view_chrome = {chrome_open, chrome_add, chrome_close};
