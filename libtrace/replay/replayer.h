/*
 * The replayer's own structures, shared by the files of this directory.
 *
 * Events are applied in their global order by one thread.  A task that shares
 * its memory with no other is resumed as soon as its event is applied, so
 * that different processes compute at the same time; tasks that share memory
 * run one after the other, as recorded.
 */
#ifndef TR_REPLAY_REPLAYER_H
#define TR_REPLAY_REPLAYER_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/buf.h"
#include "libtrace/replay/backing.h"
#include "libtrace/replay/feed.h"
#include "libtrace/replay/replay.h"
#include "libtrace/tracee/state_event.h"
#include "libtrace/tracee/calls.h"
#include "libtrace/tracee/image.h"
#include "libtrace/tracee/patch.h"
#include "libtrace/tracee/probe.h"

/* This replay is one of several that share the work: team.c. */
struct rep_member;

struct rspace {
	uint32_t domain; /* those with the same one share memory */
	unsigned ntasks;
	uint64_t brk;
	struct tr_patches patches;
	struct tr_digest *digest; /* of its memory, or NULL */
	unsigned states;          /* compared so far */
	struct tr_calls calls;
};

struct rtask {
	uint32_t id;
	pid_t tid;            /* its vessel */
	struct rspace *as;
	bool running;         /* resumed and not yet waited for */
	bool at_entry;        /* stopped at a system call's entry */
	int stop_signal;      /* stopped by this signal, or 0 */
	int stop_code;        /* and its si_code */
	struct tr_regs regs;  /* of the vessel, when it is stopped */
	int64_t cpu;          /* the core it is pinned to, or -1 */
	uint64_t last_time;   /* recorded time of its last event */
	size_t fed;           /* calls in its feed */
	uint64_t fed_time;    /* recorded time of the last of them */
	size_t answered;      /* calls it made, of which the log tells */
	struct tr_buf log;
	size_t log_at;
	struct rtask *next;
};

#define TR_HISTORY 5

struct tr_replay {
	struct tr_reader *reader;
	struct tr_feed *feed;
	struct tr_site_cache sites;
	struct tr_digester *digester;
	struct tr_state_room state_room;
	struct tr_event state;   /* the replay's own of the last state event */
	bool intercept; /* the injected code answers calls */
	struct tr_known known; /* sites that have been patched */
	struct tr_calls_control *control; /* what it begins with */
	struct tr_backing backing;
	struct tr_image_source source; /* gives the backing's paths */
	char *cpu_missing;  /* or NULL */
	struct tr_probe_memory probes; /* its fd -1 until one is needed */
	pid_t first_vessel;
	int64_t cpu;        /* the core this thread has put itself on */
	cpu_set_t old_cpus; /* and those it was free to use */
	struct rtask *tasks;

	struct tr_event ev;      /* the event being applied, its arrays borrowed */
	bool applied;            /* ev is applied, its stream not advanced */
	struct tr_buf written;   /* what its call wrote to a descriptor */
	bool is_output;          /* and that is the program's output */
	uint64_t history[TR_HISTORY]; /* numbers of the events before */
	unsigned nhistory;

	bool stopped, ended;
	bool cut;          /* the recording was cut short before this */
	bool resume_after; /* the event's task may run on */
	struct tr_divergence divergence;
	char note[512];
	sigset_t old_mask;
	struct rep_member *member; /* NULL: it replays everything */
};

/*
 * What applying an event came to: agreed, diverged (evidence is in r), or
 * trouble (err is set).
 */
enum applied { AGREED, DIVERGED, TROUBLE };

/* task.c */
/*
 * How long a task may compute towards its next event, and longer if it did
 * when recorded, before replay says that it will not get there.
 */
#define REP_PATIENCE_NS UINT64_C(20000000000)

struct rtask *rep_task_find(const struct tr_replay *r, uint32_t id);
struct rtask *rep_task_new(struct tr_replay *r, uint32_t id, pid_t tid,
			   struct rspace *as);
void rep_task_end(struct tr_replay *r, struct rtask *t);
struct rspace *rep_space_new(uint32_t domain);
/* May the task run while others wait for their events? */
bool rep_runs_alone(const struct tr_replay *r, const struct rtask *t);
/* Will the task, left to itself, stop at this event?  It may be NULL. */
bool rep_stops_at(const struct rtask *t, const struct tr_event *ev);
/* Bring the task to its next stop. */
enum applied rep_wait(struct tr_replay *r, struct rtask *t, struct tr_error *err);
/* The same, but one instruction at most. */
enum applied rep_step(struct tr_replay *r, struct rtask *t, struct tr_error *err);
/* Take its stop, as wait(2) tells of it. */
enum applied rep_stopped(struct tr_replay *r, struct rtask *t, int status,
			 struct tr_error *err);
int rep_resume(struct rtask *t, struct tr_error *err) TR_MUST_CHECK;

/* apply.c */
enum applied rep_apply(struct tr_replay *r, struct tr_error *err);
/* The event's effects on memory, those of its `more` records included. */
int rep_apply_mem(struct tr_replay *r, struct rtask *t, struct tr_error *err)
	TR_MUST_CHECK;
/* Registers, and extended state if the event has it. */
int rep_set_state(struct tr_replay *r, struct rtask *t,
		  const struct tr_regs *regs, struct tr_error *err)
	TR_MUST_CHECK;
/* Was the call made by the kernel, whoever asked it? */
bool rep_was_made(const struct tr_event *ev);
/* Does the signal event stem from an instruction of the task itself? */
bool rep_is_fault(const struct tr_event *ev);

/* tracer.c: what tracers in the recording did. */
enum applied rep_apply_stop(struct tr_replay *r, struct rtask *t,
			    struct tr_error *err);
enum applied rep_apply_poke(struct tr_replay *r, struct rtask *t,
			    struct tr_error *err);
/* async.c: run to a point inside a computation. */
enum applied rep_apply_async(struct tr_replay *r, struct rtask *t,
			     struct tr_error *err);

/* batch.c: calls that the injected code answers. */
/* Before a stopped task runs: feed it the calls that come next.  The event
 * being applied must not be the stream's current one. */
int rep_batch_fill(struct tr_replay *r, struct rtask *t, uint32_t stream,
		   struct tr_error *err) TR_MUST_CHECK;
/* The task has stopped: see what it answered. */
int rep_batch_take(struct rtask *t, struct tr_error *err) TR_MUST_CHECK;
/* The event is one of a call that was answered. */
enum applied rep_batch_apply(struct tr_replay *r, struct rtask *t);

/* mapping.c: calls that change the address space are made again. */
/* The calls that do again what the event's did, and what they must give; false
 * when the replayer must do it itself: shared mappings, code, moved and System V
 * memory.  *brk is the heap's end before and after. */
bool rep_mapping_plan(const struct tr_event *ev, uint64_t *brk,
		      struct tr_batch *b);
/* Note that they have been made. */
void rep_mapping_made(struct rtask *t, const struct tr_event *ev);
/* Patch the code of mappings just made, as the recorder did. */
enum applied rep_patch_mappings(struct tr_replay *r, struct rtask *t,
				struct tr_error *err);
enum applied rep_apply_mapping(struct tr_replay *r, struct rtask *t,
			       struct tr_error *err);

/* state.c: digests of the whole state are computed and compared. */
/* That of the memory at a point inside a computation, without the probe's. */
int rep_point_digest(struct tr_replay *r, struct rtask *t,
		     const struct tr_probe *p, uint64_t *root,
		     struct tr_error *err) TR_MUST_CHECK;
enum applied rep_apply_state(struct tr_replay *r, struct rtask *t,
			     struct tr_error *err);

/* team.c */
enum rep_part {
	REP_APPLY, /* the event is for this member to apply */
	REP_PASS,  /* another one does */
	REP_LEAVE, /* from here on the work cannot be divided */
};
enum rep_part rep_member_part(struct tr_replay *r, const struct tr_event *ev);
/* Where its tasks run. */
int64_t rep_member_cpu(const struct rep_member *m);
void rep_member_free(struct rep_member *m);

/* originals.c */
/*
 * Which pages of a mapping of a stored file, whose digest is `own` where
 * `recorded` was recorded, are not those of the original, with the hashes they
 * had; the first `room` of them.  0 when the original does not tell.
 */
size_t rep_changed_pages(const struct rtask *t, const struct tr_map *m,
			 uint64_t recorded, uint64_t own,
			 struct tr_page_hash *page, size_t room);

/* evidence.c */
enum applied rep_diverged(struct tr_replay *r, struct rtask *t,
			  const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* As rep_diverged, with the registers that differ. */
enum applied rep_regs_differ(struct tr_replay *r, struct rtask *t,
			     const struct tr_regs *recorded);
void rep_remember(struct tr_replay *r, const struct tr_event *ev);
void rep_evidence_release(struct tr_replay *r);

#endif
