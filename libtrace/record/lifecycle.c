/* Tasks and address spaces: birth and death. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/recorder.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

struct aspace *rec_aspace_new(struct recorder *r)
{
	struct aspace *as = tr_alloc(sizeof *as);

	as->stream = r->next_stream++;
	return as;
}

void rec_aspace_leave(struct recorder *r, struct aspace *as)
{
	struct tr_error err;

	if (--as->ntasks > 0)
		return;
	if (r->writer && tr_writer_end_stream(r->writer, as->stream, &err) < 0)
		r->lost = true;
	tr_patches_release(&as->patches);
	free(as);
}

int rec_next_cpu(struct recorder *r)
{
	return r->ncpus ? r->cpus[r->next_cpu++ % r->ncpus] : -1;
}

struct task *rec_task_new(struct recorder *r, pid_t tid, pid_t pid,
			  struct aspace *as)
{
	struct task *t = tr_alloc(sizeof *t);

	t->id = r->next_task++;
	t->tid = tid;
	t->pid = pid;
	t->as = as;
	as->ntasks++;
	t->next = r->tasks;
	r->tasks = t;
	return t;
}

struct task *rec_task_find(struct recorder *r, pid_t tid)
{
	for (struct task *t = r->tasks; t; t = t->next)
		if (t->tid == tid)
			return t;
	return NULL;
}

static uint64_t clone_flags(const struct task *t)
{
	switch (t->fl.call.nr) {
	case SYS_vfork:
		return CLONE_VM | CLONE_VFORK | SIGCHLD;
	case SYS_clone:
		return t->fl.call.args[0];
	default:
		return SIGCHLD;
	}
}

/* A stop of the new task may have come before the event that names it. */
static void take_early(struct recorder *r, struct task *child)
{
	for (size_t i = 0; i < r->nearly; i++) {
		int status = r->early[i].status;

		if (r->early[i].tid != child->tid)
			continue;
		r->early[i] = r->early[--r->nearly];
		rec_dispatch(r, child, status);
		return;
	}
}

/* Can two address spaces from here on see each other's writes? */
static bool shares_memory(const struct task *t)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct tr_error err;

	if (tr_vmas_read(t->tid, &vmas, &err) < 0)
		return false;
	for (size_t i = 0; i < vmas.n; i++)
		if ((vmas.v[i].flags & 1 /* MAP_SHARED */) &&
		    (vmas.v[i].prot & 2 /* PROT_WRITE */))
			return true;
	return false;
}

static void inherit(struct recorder *r, struct task *t, struct task *child,
		    uint64_t flags)
{
	child->parent = t->id;
	if (!(flags & CLONE_VM)) {
		child->as->engine_pages = t->as->engine_pages;
		child->as->stopped = t->as->stopped;
		tr_patches_copy(&child->as->patches, &t->as->patches);
		child->cpu = rec_next_cpu(r);
	} else {
		child->cpu = t->cpu;
	}
}

void rec_clone_event(struct recorder *r, struct task *t)
{
	struct tr_event ev = rec_event(TR_EV_CLONE, t);
	uint64_t flags = clone_flags(t);
	unsigned long tid;
	struct task *child;

	if (tr_tracee_event_msg(t->tid, &tid) < 0)
		return;
	child = rec_task_new(r, (pid_t)tid,
			     flags & CLONE_THREAD ? t->pid : (pid_t)tid,
			     flags & CLONE_VM ? t->as : rec_aspace_new(r));
	inherit(r, t, child, flags);
	tr_event_set(&ev, TR_F_NR, t->fl.call.nr);
	tr_event_set(&ev, TR_F_CHILD, child->id);
	tr_event_set(&ev, TR_F_CHILD_STREAM, child->as->stream);
	tr_event_set(&ev, TR_F_CLONE_FLAGS, flags);
	ev.regs = t->fl.entry;
	tr_event_mark(&ev, TR_F_REGS);
	rec_emit(r, &ev);
	t->fl.recorded = true;
	if ((flags & CLONE_VM) && !(flags & CLONE_VFORK))
		rec_stop_replay(r, t, TR_NOTE_THREADS,
				"it started a thread; threads are recorded "
				"but cannot be replayed yet");
	else if (!(flags & CLONE_VM) && shares_memory(t)) {
		rec_stop_replay(r, t, TR_NOTE_SHARED_MEMORY,
				"it shares writable memory with a child");
		rec_stop_replay(r, child, TR_NOTE_SHARED_MEMORY,
				"it shares writable memory with its parent");
	}
	take_early(r, child);
	rec_resume(t, TR_RESUME_SYSCALL, 0);
}

/* The kernel wrote the child's id where CLONE_CHILD_SETTID asked, in the
 * child, before its first stop (schedule_tail in kernel/sched/core.c). */
static void child_tid_range(const struct task *t, const struct tr_regs *regs,
			    struct tr_ranges *out)
{
	static struct tr_range rg;

	(void)t;
	if (regs->orig_rax != SYS_clone || !(regs->rdi & CLONE_CHILD_SETTID))
		return;
	rg = (struct tr_range){.addr = regs->r10, .len = 4};
	*out = (struct tr_ranges){&rg, 1, 1};
}

void rec_task_first_stop(struct recorder *r, struct task *t)
{
	struct tr_event ev = rec_event(TR_EV_START, t);
	struct tr_ranges out = {0};
	cpu_set_t set;

	if (tr_tracee_get_regs(t->tid, &ev.regs) < 0)
		return;
	if (t->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(t->cpu, &set);
		sched_setaffinity(t->tid, sizeof set, &set);
		tr_event_set(&ev, TR_F_CPU, (uint64_t)t->cpu);
	}
	tr_event_mark(&ev, TR_F_REGS);
	tr_event_set(&ev, TR_F_PID, (uint64_t)t->pid);
	tr_event_set(&ev, TR_F_TID, (uint64_t)t->tid);
	tr_event_set(&ev, TR_F_PARENT, t->parent);
	child_tid_range(t, &ev.regs, &out);
	rec_read_ranges(r, t, &out, &ev);
	rec_emit(r, &ev);
	t->started = true;
	rec_resume(t, TR_RESUME_CONT, 0);
}

static void unlink_task(struct recorder *r, struct task *t)
{
	struct task **p = &r->tasks;

	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
}

void rec_task_died(struct recorder *r, struct task *t, int status)
{
	struct tr_event ev = rec_event(TR_EV_EXIT, t);

	/* Killed inside a call: show which. */
	if (t->in_call && !t->new_image)
		rec_call_record_entry(r, t);
	tr_event_set(&ev, TR_F_STATUS, (uint64_t)status);
	rec_emit(r, &ev);
	if (t->tid == r->root) {
		r->root_status = status;
		r->root_done = true;
	}
	unlink_task(r, t);
	rec_call_release(t);
	rec_aspace_leave(r, t->as);
	free(t->held);
	free(t);
}
