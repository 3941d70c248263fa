/*
 * Effects of calls on memory: by the model where it knows the call, by
 * comparing memory before and after where it does not.  An audit compares
 * both for every call.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libtrace/base/fault.h"
#include "libtrace/base/json.h"
#include "libtrace/record/recorder.h"

/* Would the model know what the call wrote if it succeeded?  What it answers
 * depends on the arguments alone. */
static bool model_knows(const struct inflight *fl)
{
	struct tr_call call = fl->call;
	struct tr_ranges ignored = {0};
	bool known;

	if (!fl->sys)
		return false;
	call.result = 0;
	known = tr_call_exit(&call, &ignored);
	tr_ranges_release(&ignored);
	return known;
}

/* Calls whose effects are more than memory a pointer names: they have engine
 * code of their own. */
static bool is_auditable(const struct task *t)
{
	return t->fl.sys && t->fl.sys->class == TR_SYS_PLAIN &&
	       t->as->domain->ntasks == 1;
}

void rec_capture_begin(struct recorder *r, struct task *t)
{
	struct inflight *fl = &t->fl;
	bool audit = r->audit && is_auditable(t);
	struct tr_error err;

	fl->unknown = !model_knows(fl);
	if (!fl->unknown && !audit)
		return;
	fl->pages = tr_pages_take(t->tid, audit && !fl->unknown, &err);
	if (!fl->pages)
		rec_stop_replay(r, t, TR_NOTE_UNMODELLED, "%s", err.text);
}

static bool is_declared(const struct tr_ranges *declared,
			const struct tr_range *rg)
{
	for (size_t i = 0; i < declared->n; i++)
		if (rg->addr >= declared->r[i].addr &&
		    rg->addr + rg->len <= declared->r[i].addr +
					  declared->r[i].len)
			return true;
	return false;
}

/* One line of JSON for each place the kernel wrote and the model does not
 * say so. */
static void report(struct recorder *r, const struct task *t,
		   const struct tr_range *rg)
{
	struct tr_json *j = tr_json_object(), *args = tr_json_array();

	for (int i = 0; i < t->fl.sys->nargs; i++)
		tr_json_append(args, tr_json_hex(t->fl.call.args[i]));
	tr_json_set(j, "type", tr_json_string("audit"));
	tr_json_set(j, "event", tr_json_int((int64_t)r->number + 1));
	tr_json_set(j, "task", tr_json_int(t->id));
	tr_json_set(j, "name", tr_json_string(t->fl.sys->name));
	tr_json_set(j, "args", args);
	tr_json_set(j, "result", tr_json_int(t->fl.call.result));
	tr_json_set(j, "addr", tr_json_hex(rg->addr));
	tr_json_set(j, "length", tr_json_int((int64_t)rg->len));
	if (tr_json_line(r->audit, j) < 0)
		r->lost = true;
	fflush(r->audit);
}

/*
 * What the call wrote to a file shows in shared mappings of the file: the event
 * tells by FILE, SIZE and OFFSET, not as memory.
 */
static bool is_file_change(const struct tr_vmas *vmas, const struct tr_event *ev,
			   const struct tr_range *rg)
{
	const struct tr_vma *v = tr_vmas_find(vmas, rg->addr);

	return tr_event_has(ev, TR_F_FILE) && v && (v->flags & MAP_SHARED);
}

static void audit(struct recorder *r, const struct task *t,
		  const struct tr_ranges *changed,
		  const struct tr_ranges *declared, const struct tr_event *ev)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct tr_error err;

	if (tr_vmas_read(t->tid, &vmas, &err) < 0)
		return; /* SIGKILL took it */
	for (size_t i = 0; i < changed->n; i++)
		if (tr_fault("audit-blind") ||
		    (!is_declared(declared, &changed->r[i]) &&
		     !is_file_change(&vmas, ev, &changed->r[i])))
			report(r, t, &changed->r[i]);
}

void rec_call_effects(struct recorder *r, struct task *t,
		      const struct tr_event *ev, struct tr_ranges *out)
{
	struct inflight *fl = &t->fl;
	struct tr_ranges changed = {0};
	bool layout_changed = false;
	struct tr_error err;

	if (!fl->unknown)
		tr_call_exit(&fl->call, out);
	if (!fl->pages)
		return;
	if (tr_pages_changes(t->tid, fl->pages, &changed, &layout_changed,
			     &err) < 0) {
		rec_stop_replay(r, t, TR_NOTE_UNMODELLED, "%s", err.text);
		return;
	}
	if (fl->unknown) {
		fl->layout_changed = layout_changed;
		tr_ranges_release(out);
		*out = changed;
		return;
	}
	if (changed.n)
		audit(r, t, &changed, out, ev);
	tr_ranges_release(&changed);
}

void rec_capture_disturbed(struct recorder *r, const struct domain *d)
{
	for (struct task *t = r->tasks; t; t = t->next) {
		if (t->as->domain != d || t->fl.unknown)
			continue;
		tr_pages_free(t->fl.pages);
		t->fl.pages = NULL;
	}
}
