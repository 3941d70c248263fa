/* View: the tasks of a recording. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/cli/output.h"
#include "cmd/cli/status.h"
#include "cmd/cli/views.h"
#include "libtrace/base/alloc.h"

struct task {
	uint32_t id, stream;
	uint64_t pid, tid, parent;
	uint64_t first, last; /* events; last is 0 while it has not ended */
	int status;
	char *exe; /* of its last image; NULL when it never ran one */
	size_t exe_len;
};

struct state {
	bool json;
	struct task *tasks; /* by id - 1: ids are dense */
	size_t n;
};

/* Ids in a trace are dense, so one beyond this is damage: formats(5). */
#define MAX_TASKS (1u << 22)

static void *tasks_open(bool json)
{
	struct state *s = tr_alloc(sizeof *s);

	s->json = json;
	return s;
}

static struct task *get(struct state *s, uint32_t id)
{
	if (id == 0 || id > MAX_TASKS)
		return NULL;
	if (id > s->n) {
		size_t n = id > 2 * s->n ? id : 2 * s->n;

		s->tasks = tr_realloc(s->tasks, n * sizeof *s->tasks);
		for (size_t i = s->n; i < n; i++)
			s->tasks[i] = (struct task){0};
		s->n = n;
	}
	return &s->tasks[id - 1];
}

static void set_image(struct task *t, const struct tr_event *ev)
{
	if (!tr_event_has(ev, TR_F_TEXT))
		return;
	free(t->exe);
	t->exe = tr_memdup(ev->text.data, ev->text.len);
	t->exe_len = ev->text.len;
}

/* A task made by fork runs its parent's image. */
static void inherit_image(struct state *s, struct task *t)
{
	const struct task *parent = NULL;

	if (t->parent && t->parent <= s->n)
		parent = &s->tasks[t->parent - 1];
	if (!parent || !parent->exe || t->exe)
		return;
	t->exe = tr_memdup(parent->exe, parent->exe_len);
	t->exe_len = parent->exe_len;
}

static void tasks_add(void *state, const struct tr_event *ev)
{
	struct state *s = state;
	struct task *t = get(s, ev->task);

	if (!t)
		return;
	if (t->id == 0) {
		t->id = ev->task;
		t->first = ev->number;
	}
	t->stream = ev->stream;
	if (tr_event_has(ev, TR_F_PID))
		t->pid = tr_event_get(ev, TR_F_PID);
	if (tr_event_has(ev, TR_F_TID))
		t->tid = tr_event_get(ev, TR_F_TID);
	if (tr_event_has(ev, TR_F_PARENT))
		t->parent = tr_event_get(ev, TR_F_PARENT);
	if (ev->type == TR_EV_IMAGE)
		set_image(t, ev);
	if (ev->type == TR_EV_START)
		inherit_image(s, t);
	if (ev->type == TR_EV_EXIT) {
		t->last = ev->number;
		t->status = (int)tr_event_get(ev, TR_F_STATUS);
	}
}

static void task_json(const struct task *t)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string("task"));
	tr_json_set(j, "task", tr_json_int(t->id));
	tr_json_set(j, "pid", tr_json_int((int64_t)t->pid));
	tr_json_set(j, "tid", tr_json_int((int64_t)t->tid));
	tr_json_set(j, "parent", tr_json_int((int64_t)t->parent));
	tr_json_set(j, "stream", tr_json_int(t->stream));
	tr_json_set(j, "exe", t->exe ? tr_json_bytes(t->exe, t->exe_len)
				     : tr_json_null());
	tr_json_set(j, "first", tr_json_int((int64_t)t->first));
	if (t->last) {
		tr_json_set(j, "last", tr_json_int((int64_t)t->last));
		cli_status_json(j, t->status);
	}
	cli_json_line(j);
}

static void task_text(const struct task *t)
{
	char last[24] = "-", how[64] = "not ended";

	if (t->last) {
		snprintf(last, sizeof last, "%" PRIu64, t->last);
		cli_status_text(t->status, how, sizeof how);
	}
	printf("%5" PRIu32 " %8" PRIu64 " %6" PRIu64 " %8" PRIu64 " %8s  %-17s ",
	       t->id, t->tid ? t->tid : t->pid, t->parent, t->first, last, how);
	cli_put_escaped(t->exe ? t->exe : "?", t->exe ? t->exe_len : 1);
	putchar('\n');
}

static void tasks_close(void *state, const struct tr_reader *reader)
{
	struct state *s = state;

	(void)reader;
	if (!s->json)
		printf("%5s %8s %6s %8s %8s  %-17s %s\n", "task", "tid", "parent",
		       "first", "last", "end", "program");
	for (size_t i = 0; i < s->n; i++) {
		if (s->tasks[i].id && s->json)
			task_json(&s->tasks[i]);
		else if (s->tasks[i].id)
			task_text(&s->tasks[i]);
		free(s->tasks[i].exe);
	}
	free(s->tasks);
	free(s);
}

const struct cli_view cli_view_tasks = {tasks_open, tasks_add, tasks_close};
