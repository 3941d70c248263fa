/* Replaying a trace: the step function. */
#include "libtrace/replay/replay.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/manifest.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/state/cpu.h"
#include "libtrace/store/catalogue.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/spawn.h"
#include "libtrace/tracee/vessel.h"

/* What is certain to go wrong is said before anything is started. */
static int check_trace(struct tr_reader *reader, struct tr_error *err)
{
	if (tr_reader_manifest(reader)->redacted)
		return tr_fail(err, TR_EUNSUPPORTED, "%s: cannot be replayed: "
			       "its contents were taken out",
			       tr_reader_path(reader));
	return tr_stored_check(reader, err);
}

static bool settles(const struct tr_manifest *m)
{
	for (char **f = m->incompat; *f; f++)
		if (strcmp(*f, TR_FEATURE_XSAVEC) == 0)
			return true;
	return false;
}

static char *cpu_missing(const struct tr_manifest *m)
{
	enum tr_cpu_level level = TR_CPU_ALL;
	struct tr_cpu here;
	char *missing;

	if (m->portable && !tr_cpu_level_parse(m->portable, &level))
		level = TR_CPU_ALL;
	tr_cpu_read(&here);
	missing = tr_cpu_missing(m->cpu_flags, m->xcr0, level, &here);
	tr_cpu_release(&here);
	return missing;
}

struct tr_replay *tr_replay_new(struct tr_reader *reader, struct tr_error *err)
{
	struct tr_replay *r;
	sigset_t chld;

	if (check_trace(reader, err) < 0)
		return NULL;
	r = tr_alloc(sizeof *r);
	r->cpu_missing = cpu_missing(tr_reader_manifest(reader));

	/* tr_tracee_wait waits for SIGCHLD. */
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &chld, &r->old_mask);
	r->reader = reader;
	r->cpu = -1;
	sched_getaffinity(0, sizeof r->old_cpus, &r->old_cpus);
	r->probes.fd = -1;
	r->sites.dirfd = tr_reader_dirfd(reader);
	r->backing.trace_dirfd = tr_reader_dirfd(reader);
	r->source = (struct tr_image_source){tr_backing_path, &r->backing};
	r->sites.settles = settles(tr_reader_manifest(reader));
	/* Sites that jump need breakpoints for when they trap nevertheless. */
	r->sites.tsc_traps = !r->sites.settles && tr_tsc_traps();
	r->digester = tr_digester_new();
	r->first_vessel = tr_vessel_first(tr_reader_dirfd(reader), err);
	if (r->first_vessel < 0) {
		pthread_sigmask(SIG_SETMASK, &r->old_mask, NULL);
		tr_digester_free(r->digester);
		free(r->cpu_missing);
		free(r);
		return NULL;
	}
	r->feed = tr_feed_new(reader);
	r->control = tr_alloc(sizeof *r->control);
	tr_rules_fill(r->control);
	r->control->mode = TR_CALLS_REPLAY;
	/* All vessels are copies of this one. */
	r->intercept = tr_memory_write(r->first_vessel, TR_INJECT_CONTROL,
				       r->control, sizeof *r->control) == 0;
	return r;
}

/* The next event of a task says whether it runs on by itself or is still at a
 * place the event belongs to. */
static bool runs_on(const struct tr_replay *r, const struct rtask *t,
		    const struct tr_event *next)
{
	/* Otherwise it is resumed when its turn comes. */
	return rep_runs_alone(r, t) && rep_stops_at(t, next);
}

/* Finish the event applied last: advance its stream, let its task go on. */
static int finish(struct tr_replay *r, struct tr_error *err)
{
	const struct tr_event *next;
	struct rtask *t;

	if (!r->applied)
		return 0;
	r->applied = false;
	if (tr_feed_advance(r->feed, r->ev.stream, &next, err) < 0)
		return -1;
	t = r->resume_after ? rep_task_find(r, r->ev.task) : NULL;
	if (!t || !runs_on(r, t, next))
		return 0;
	if (rep_batch_fill(r, t, r->ev.stream, err) < 0)
		return -1;
	return rep_resume(t, err);
}

static int at_end(struct tr_replay *r, struct tr_replay_step *step)
{
	r->ended = true;
	if (r->stopped || tr_reader_complete(r->reader)) {
		step->what = r->stopped ? TR_REPLAY_STOPPED : TR_REPLAY_END;
		step->note = r->note;
		return 0;
	}
	snprintf(r->note, sizeof r->note,
		 "the trace is incomplete: the recording was cut short here");
	step->what = TR_REPLAY_STOPPED;
	step->note = r->note;
	return 0;
}

static const struct tr_event *own_state(const struct tr_replay *r)
{
	return r->ev.type == TR_EV_STATE ? &r->state : NULL;
}

/* Another member of the team applies it. */
static int pass(struct tr_replay *r, const struct tr_event *ev,
		struct tr_replay_step *step)
{
	r->ev = *ev;
	r->resume_after = false;
	r->applied = true;
	step->event = &r->ev;
	step->what = TR_REPLAY_EVENT;
	return 0;
}

static int leave(struct tr_replay *r, const struct tr_event *ev,
		 struct tr_replay_step *step)
{
	r->stopped = true;
	snprintf(r->note, sizeof r->note, "event %" PRIu64
		 ": memory is shared by programs replayed apart", ev->number);
	return at_end(r, step);
}

int tr_replay_step(struct tr_replay *r, struct tr_replay_step *step,
		   struct tr_error *err)
{
	const struct tr_event *ev;
	struct rtask *t;
	int got;

	*step = (struct tr_replay_step){0};
	if (r->ended || r->stopped)
		return at_end(r, step);
	if (finish(r, err) < 0)
		return -1;
	got = tr_feed_next(r->feed, &ev, err);
	if (got < 0)
		return -1;
	if (got == 0)
		return at_end(r, step);
	switch (r->member ? rep_member_part(r, ev) : REP_APPLY) {
	case REP_APPLY:
		break;
	case REP_PASS:
		return pass(r, ev, step);
	case REP_LEAVE:
		return leave(r, ev, step);
	}
	t = rep_task_find(r, ev->task);
	if (t && rep_batch_fill(r, t, ev->stream, err) < 0)
		return -1;
	if (tr_feed_next(r->feed, &ev, err) < 0)
		return -1;
	r->ev = *ev;
	r->written.len = 0;
	r->is_output = false;
	switch (rep_apply(r, err)) {
	case TROUBLE:
		return -1;
	case DIVERGED:
		r->ended = true;
		step->state = own_state(r);
		step->what = TR_REPLAY_DIVERGED;
		step->divergence = &r->divergence;
		return 0;
	case AGREED:
		break;
	}
	if (r->stopped || r->cut)
		return at_end(r, step);
	if (r->ev.stream)
		rep_remember(r, &r->ev);
	t = rep_task_find(r, r->ev.task);
	if (t)
		t->last_time = r->ev.time;
	r->applied = true;
	step->event = &r->ev;
	step->state = own_state(r);
	step->what = TR_REPLAY_EVENT;
	if (r->is_output && r->written.len) {
		step->what = TR_REPLAY_OUTPUT;
		step->output = (int)tr_event_get(&r->ev, TR_F_OUTPUT);
		step->data = (struct tr_bytes){r->written.data, r->written.len};
	}
	return 0;
}

const char *tr_replay_cpu_missing(const struct tr_replay *r)
{
	return r->cpu_missing;
}

void tr_replay_free(struct tr_replay *r)
{
	if (!r)
		return;
	while (r->tasks)
		rep_task_end(r, r->tasks);
	rep_member_free(r->member);
	tr_vessel_end(r->first_vessel);
	tr_digester_free(r->digester);
	tr_state_room_release(&r->state_room);
	tr_feed_free(r->feed);
	free(r->control);
	tr_site_cache_release(&r->sites);
	tr_known_release(&r->known);
	tr_backing_release(&r->backing);
	tr_probe_memory_release(&r->probes);
	tr_buf_release(&r->written);
	rep_evidence_release(r);
	free(r->cpu_missing);
	if (r->cpu >= 0)
		sched_setaffinity(0, sizeof r->old_cpus, &r->old_cpus);
	pthread_sigmask(SIG_SETMASK, &r->old_mask, NULL);
	free(r);
}
