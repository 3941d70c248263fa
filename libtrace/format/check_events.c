/*
 * Checking events: that every record decodes, and that what events say of
 * tasks, streams, files and each other fits together.
 */
#include <inttypes.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/checker.h"
#include "libtrace/format/chunk.h"

struct task {
	uint64_t named;      /* event that made it, or 0 */
	uint32_t birth;      /* stream its maker says it starts in */
	uint32_t stream;     /* stream it started in */
	uint64_t started, ended; /* events, or 0 */
	bool in_call;        /* after `enter` or `clone` */
	uint64_t call;       /* that call's number */
};

struct pass {
	struct tr_checker *c;
	struct tr_table tasks;
	uint64_t number;     /* of the event before */
	uint32_t stream, task;
	uint64_t parts;      /* `more` records still to come */
	uint64_t nfiles;
	bool ended;          /* an end event was met */
	/* Numbers that no event has, and what follows from that. */
	uint64_t missing, gaps, orphans;
	uint64_t first, last; /* numbers of the first gap */
	struct tr_event after; /* the event behind it: what names its place */
};

/* Names the chunk that holds the event. */
static void problem(const struct pass *p, enum tr_code code,
		    const struct tr_event *ev, const char *what)
{
	const struct tr_checker *c = p->c;
	char name[TR_CHUNK_NAME] = "chunks";
	int64_t offset = -1;

	for (size_t i = 0; i < c->nrefs; i++) {
		const struct tr_chunk_ref *r = &c->refs[i];

		if (r->stream != ev->stream || ev->number < r->first ||
		    ev->number > r->last)
			continue;
		tr_chunk_name(name, r->file);
		offset = (int64_t)r->offset;
		break;
	}
	tr_checker_report(p->c, code, name, offset, ev->number,
			  "%s event of task %u: %s",
			  tr_event_type_name(ev->type), ev->task, what);
}

static void contradiction(const struct pass *p, const struct tr_event *ev,
			  const char *what)
{
	problem(p, TR_ECORRUPT, ev, what);
}

/*
 * A contradiction, unless it may be the doing of an event that is missing:
 * that is one problem, however many events refer to what was lost.
 */
static void orphan(struct pass *p, const struct tr_event *ev, const char *what)
{
	if (p->gaps && !p->c->manifest.compat[0])
		p->orphans++;
	else
		problem(p, p->gaps ? tr_checker_missing(p->c) : TR_ECORRUPT,
			ev, what);
}

static struct task *get_task(struct pass *p, uint64_t id)
{
	struct task *t = tr_table_get(&p->tasks, id);

	if (!t) {
		t = tr_alloc(sizeof *t);
		tr_table_set(&p->tasks, id, t);
	}
	return t;
}

/*
 * Numbers count every event once.  Streams of a recording that was cut short
 * lost their tails at different numbers, so that there are many gaps.
 */
static void check_number(struct pass *p, const struct tr_event *ev)
{
	uint64_t want = p->number + 1;

	if (ev->number < want)
		contradiction(p, ev, "its number was used before");
	if (ev->number <= want)
		return;
	p->missing += ev->number - want;
	if (p->gaps++)
		return;
	p->first = want;
	p->last = ev->number - 1;
	p->after = (struct tr_event){.type = ev->type, .stream = ev->stream,
				     .task = ev->task, .number = ev->number};
}

/* Where an unknown compatible feature is used, records that this reader
 * passes over may have had the numbers. */
static void report_gaps(const struct pass *p)
{
	TR_AUTOFREE char *more = NULL, *orphans = NULL, *what = NULL;

	if (p->gaps == 0 || p->c->manifest.compat[0])
		return;
	if (p->gaps > 1)
		more = tr_printf(" (%" PRIu64 " events in %" PRIu64 " gaps)",
				 p->missing, p->gaps);
	if (p->orphans)
		orphans = tr_printf("; %" PRIu64 " later event%s what was lost",
				    p->orphans,
				    p->orphans > 1 ? "s need" : " needs");
	what = tr_printf("events %" PRIu64 " to %" PRIu64 " are missing before "
			 "it%s%s", p->first, p->last, more ? more : "",
			 orphans ? orphans : "");
	problem(p, tr_checker_missing(p->c), &p->after, what);
}

static void check_more(struct pass *p, const struct tr_event *ev)
{
	if (p->parts == 0 || ev->number != p->number ||
	    ev->stream != p->stream || ev->task != p->task)
		orphan(p, ev, "does not belong to the event before it");
	else
		p->parts--;
}

static void check_parts(struct pass *p, const struct tr_event *ev)
{
	TR_AUTOFREE char *what = NULL;

	if (p->parts == 0)
		return;
	what = tr_printf("%" PRIu64 " further records of event %" PRIu64
			 " are missing before it", p->parts, p->number);
	problem(p, tr_checker_missing(p->c), ev, what);
	p->parts = 0;
}

/* ---- the catalogue ---- */

static void add_file(struct pass *p, const struct tr_event *ev)
{
	uint64_t id = tr_event_get(ev, TR_F_FILE);
	struct tr_check_file *f;

	if (id == 0) {
		contradiction(p, ev, "has no file id");
		return;
	}
	if (tr_table_get(&p->c->files, id)) {
		contradiction(p, ev, "its file id was used before");
		return;
	}
	p->nfiles++;
	f = tr_alloc(sizeof *f);
	f->event = ev->number;
	f->path = tr_strndup(ev->text.len ? ev->text.data : "", ev->text.len);
	f->size = tr_event_get(ev, TR_F_SIZE);
	tr_table_set(&p->c->files, id, f);
}

static void add_digest(struct pass *p, const struct tr_event *ev)
{
	struct tr_check_file *f = tr_table_get(&p->c->files,
					       tr_event_get(ev, TR_F_FILE));

	if (!f) {
		orphan(p, ev, "the digest of a file that was not declared");
	} else if (!tr_event_has(ev, TR_F_SHA256) ||
		   ev->sha256.len != sizeof f->sha256) {
		contradiction(p, ev, "has no digest");
	} else if (f->has_digest) {
		contradiction(p, ev, "a second digest of the same file");
	} else {
		f->has_digest = true;
		f->pages = tr_event_get(ev, TR_F_PAGES) == 1;
		memcpy(f->sha256, ev->sha256.data, sizeof f->sha256);
	}
}

static void check_total(const struct pass *p, const struct tr_event *ev,
			const char *name, uint64_t said, uint64_t found)
{
	TR_AUTOFREE char *what = NULL;

	if (said == found)
		return;
	what = tr_printf("says %" PRIu64 " %s, but there are %" PRIu64, said,
			 name, found);
	contradiction(p, ev, what);
}

/* EVENTS is the number of the last event, which the end event itself is. */
static void check_end(struct pass *p, const struct tr_event *ev)
{
	p->ended = true;
	check_total(p, ev, "events", tr_event_get(ev, TR_F_EVENTS),
		    ev->number);
	check_total(p, ev, "tasks", tr_event_get(ev, TR_F_TASKS), p->tasks.n);
	check_total(p, ev, "streams", tr_event_get(ev, TR_F_STREAMS),
		    p->c->stats->streams);
}

static void check_catalogue(struct pass *p, const struct tr_event *ev)
{
	switch ((unsigned)ev->type) {
	case TR_EV_FILE:
		add_file(p, ev);
		break;
	case TR_EV_DIGEST:
		add_digest(p, ev);
		break;
	case TR_EV_END:
		check_end(p, ev);
		break;
	case TR_EV_NOTE:
		break;
	default:
		contradiction(p, ev, "does not belong in the catalogue");
	}
}

/* ---- tasks ---- */

/* The maker's event names the child before or after the child's first one. */
static void check_child(struct pass *p, const struct tr_event *ev)
{
	struct task *child;

	if (!tr_event_has(ev, TR_F_CHILD))
		return;
	child = get_task(p, tr_event_get(ev, TR_F_CHILD));
	if (child->named)
		contradiction(p, ev, "makes a task that was made before");
	child->named = ev->number;
	child->birth = (uint32_t)tr_event_get(ev, TR_F_CHILD_STREAM);
	if (child->started && child->stream != child->birth)
		contradiction(p, ev, "its child started in another stream");
}

static void start_task(struct pass *p, const struct tr_event *ev,
		       struct task *t)
{
	uint64_t parent = tr_event_get(ev, TR_F_PARENT);
	const struct task *maker = tr_table_get(&p->tasks, parent);

	t->started = ev->number;
	t->stream = ev->stream;
	if (ev->type == TR_EV_IMAGE) {
		if (p->tasks.n > 1)
			orphan(p, ev, "only the first task begins with an "
			       "image");
		return;
	}
	if (!maker || !maker->started || parent == ev->task)
		orphan(p, ev, "its parent task has not started");
	if (t->named && t->birth != t->stream)
		contradiction(p, ev, "starts in another stream than its "
			      "parent says");
}

/*
 * A task killed before its first stop only ends, and where the recorder could
 * not follow a program, a note stands in place of its image.
 */
static bool may_lack_start(const struct tr_event *ev, const struct task *t)
{
	return (ev->type == TR_EV_EXIT && t->named) ||
	       (ev->type == TR_EV_NOTE &&
		tr_event_get(ev, TR_F_CODE) >= TR_NOTE_STOPS);
}

/*
 * Where a task begins and ends.  The recording may have been cut short in
 * front of a task's first event in one stream but not in another.
 */
static void check_life(struct pass *p, const struct tr_event *ev,
		       struct task *t)
{
	bool starts = ev->type == TR_EV_START ||
		      (ev->type == TR_EV_IMAGE && !t->started);

	if (t->ended)
		contradiction(p, ev, "its task has ended before");
	else if (starts && t->started)
		contradiction(p, ev, "its task has started before");
	else if (starts)
		start_task(p, ev, t);
	else if (!t->started) {
		if (!may_lack_start(ev, t))
			orphan(p, ev, "its task has not started");
		t->started = ev->number;
	}
	if (ev->type == TR_EV_EXIT)
		t->ended = ev->number;
}

/* A call that began with an event of its own ends with one marked so. */
static void check_call(struct pass *p, const struct tr_event *ev,
		       struct task *t)
{
	uint64_t nr = tr_event_get(ev, TR_F_NR);
	bool entered = tr_event_get(ev, TR_F_ENTERED) != 0;

	if (!tr_event_has(ev, TR_F_NR)) {
		contradiction(p, ev, "has no system call number");
		return;
	}
	if (ev->type != TR_EV_SYSCALL) {
		if (t->in_call && ev->type == TR_EV_ENTER)
			orphan(p, ev, "its task is in a call already");
		t->in_call = true;
		t->call = nr;
		return;
	}
	if (entered != t->in_call)
		orphan(p, ev, entered ? "ends a call that did not begin" :
		       "does not end the call its task is in");
	else if (entered && nr != t->call)
		orphan(p, ev, "ends another call than the one its task is in");
	t->in_call = false;
}

static void check_files(struct pass *p, const struct tr_event *ev)
{
	for (size_t i = 0; i < ev->nmap; i++)
		if (ev->map[i].file &&
		    !tr_table_get(&p->c->files, ev->map[i].file))
			orphan(p, ev, "maps a file that was not declared "
			       "before");
}

static void check_task_event(struct pass *p, const struct tr_event *ev)
{
	struct task *t;

	if (ev->task == 0) {
		if (ev->type != TR_EV_NOTE)
			contradiction(p, ev, "belongs to no task");
		return;
	}
	t = get_task(p, ev->task);
	check_life(p, ev, t);
	check_child(p, ev);
	check_files(p, ev);
	switch ((unsigned)ev->type) {
	case TR_EV_SYSCALL:
	case TR_EV_ENTER:
	case TR_EV_CLONE:
		check_call(p, ev, t);
		break;
	case TR_EV_POKE:
		/* A tracer has made it another call. */
		if (t->in_call && tr_event_has(ev, TR_F_REGS_AFTER))
			t->call = ev->regs_after.orig_rax;
		break;
	case TR_EV_IMAGE:
		t->in_call = false; /* execve does not return */
		break;
	case TR_EV_FILE:
	case TR_EV_DIGEST:
	case TR_EV_END:
		contradiction(p, ev, "belongs in the catalogue");
		break;
	default:
		break;
	}
}

static void check_event(struct pass *p, const struct tr_event *ev)
{
	if (p->ended)
		contradiction(p, ev, "follows the end event");
	if (ev->type == TR_EV_MORE) {
		check_more(p, ev);
		return;
	}
	check_parts(p, ev);
	check_number(p, ev);
	if (ev->number > p->number)
		p->number = ev->number;
	p->stream = ev->stream;
	p->task = ev->task;
	p->parts = tr_event_get(ev, TR_F_PARTS);
	p->c->stats->events++;
	if (ev->stream == 0)
		check_catalogue(p, ev);
	else
		check_task_event(p, ev);
}

/* ---- the end ---- */

static void check_tasks_ended(const struct pass *p)
{
	TR_TABLE_EACH(&p->tasks, s) {
		const struct task *t = s->value;
		const char *what = !t->started ? "never starts" :
				   !t->ended ? "never ends" : NULL;

		if (what)
			tr_checker_report(p->c, TR_ECORRUPT, "chunks", -1,
					  t->named ? t->named : t->started,
					  "task %" PRIu64 " %s", s->key, what);
	}
}

/* Of a recording that was cut short. */
static void count_unfinished(const struct pass *p)
{
	uint64_t n = 0;

	TR_TABLE_EACH(&p->tasks, s)
		n += ((const struct task *)s->value)->ended == 0;
	if (n)
		tr_checker_report(p->c, TR_EINCOMPLETE, "chunks", -1, p->number,
				  "%" PRIu64 " task%s had not ended", n,
				  n > 1 ? "s" : "");
}

static void compare_total(const struct pass *p, const char *name,
			  uint64_t said, uint64_t found)
{
	if (said != found)
		tr_checker_report(p->c, TR_ECORRUPT, "manifest.json", -1, 0,
				  "says %" PRIu64 " %s, but there are %" PRIu64,
				  said, name, found);
}

static void check_complete(const struct pass *p)
{
	const struct tr_manifest *m = &p->c->manifest;

	if (!p->ended)
		tr_checker_report(p->c, TR_ECORRUPT, "chunks", -1, p->number,
				  "the end event is missing");
	check_tasks_ended(p);
	compare_total(p, "events", m->events, p->number);
	compare_total(p, "tasks", m->tasks, p->tasks.n);
	compare_total(p, "streams", m->streams, p->c->stats->streams);
	compare_total(p, "files", m->files, p->nfiles);
}

static void read_events(struct pass *p, struct tr_reader *r)
{
	struct tr_cursor *cur = tr_cursor_all(r);
	const struct tr_event *ev;
	struct tr_error err;
	int n;

	while ((n = tr_cursor_next(cur, &ev, &err)) > 0)
		check_event(p, ev);
	report_gaps(p);
	if (n < 0) {
		p->c->chunks_whole = false;
		tr_checker_report(p->c, err.code, "chunks", -1, p->number,
				  "events after %" PRIu64 " were not checked: "
				  "%s", p->number, err.text);
	} else if (p->c->complete && p->c->chunks_whole) {
		check_complete(p);
		/* A lost event may have been a digest. */
		p->c->chunks_whole = p->gaps == 0;
	} else if (!p->c->complete) {
		count_unfinished(p);
	}
	tr_cursor_free(cur);
}

/* A reader of the same trace; it releases what it opens itself. */
static struct tr_reader *open_again(const struct tr_checker *c,
				    struct tr_error *err)
{
	struct tr_home home;

	if (c->home->dirfd >= 0)
		return tr_reader_open(c->path, err);
	tr_home_copy(&home, c->home);
	return tr_reader_open_home(&home, c->path, err);
}

void tr_check_events(struct tr_checker *c)
{
	struct pass p = {.c = c};
	struct tr_error err;
	struct tr_reader *r = open_again(c, &err);

	if (r) {
		read_events(&p, r);
		tr_reader_close(r);
	} else {
		c->chunks_whole = false;
		tr_checker_report(c, err.code, "chunks", -1, 0, "%s",
				  err.text);
	}
	c->stats->tasks = p.tasks.n;
	TR_TABLE_EACH(&p.tasks, s)
		free(s->value);
	tr_table_release(&p.tasks);
}
