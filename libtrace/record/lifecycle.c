/* Tasks and address spaces: birth and death. */
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/recorder.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

struct aspace *rec_aspace_new(struct recorder *r, struct domain *d)
{
	struct aspace *as = tr_alloc(sizeof *as);

	as->stream = r->next_stream++;
	as->domain = d ? d : rec_domain_new(r, as->stream);
	return as;
}

void rec_aspace_leave(struct recorder *r, struct task *t)
{
	struct aspace *as = t->as;
	struct tr_error err;

	rec_scratch_leave(t);
	t->as = NULL;
	if (--as->ntasks > 0)
		return;
	if (r->writer && tr_writer_end_stream(r->writer, as->stream, &err) < 0)
		r->lost = true;
	tr_patches_release(&as->patches);
	tr_digest_free(as->digest);
	free(as->blocks);
	free(as->writable);
	rec_growth_release(as);
	rec_reading_release(r, as);
	tr_calls_release(&as->calls);
	free(as);
}

int rec_next_cpu(struct recorder *r)
{
	return r->ncpus ? r->cpus[r->next_cpu++ % r->ncpus] : -1;
}

/* Tasks that compute, as far as is known, on that core. */
static unsigned busy(const struct recorder *r, const struct task *but, int cpu)
{
	unsigned n = 0;

	for (const struct task *t = r->tasks; t; t = t->next)
		n += t != but && t->cpu == cpu && !t->in_call;
	return n;
}

void rec_place(struct recorder *r, struct task *t)
{
	int best = t->cpu;
	unsigned least = best < 0 ? 0 : busy(r, t, best);
	cpu_set_t set;

	for (size_t i = 0; i < r->ncpus && least > 0; i++) {
		unsigned n = busy(r, t, r->cpus[i]);

		if (n >= least)
			continue;
		least = n;
		best = r->cpus[i];
	}
	if (best == t->cpu)
		return;
	CPU_ZERO(&set);
	CPU_SET(best, &set);
	if (sched_setaffinity(t->tid, sizeof set, &set) == 0)
		t->cpu = best;
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
	as->domain->ntasks++;
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

static void inherit(struct recorder *r, struct task *t, struct task *child,
		    uint64_t flags)
{
	child->parent = t->id;
	child->filtered = t->filtered;
	child->untraced = t->fl.args_changed;
	child->cpu = t->cpu;
	rec_forced_inherit(t, child);
	if (flags & CLONE_CHILD_CLEARTID)
		child->clear_tid = t->fl.entry.r10;
	if (flags & CLONE_VM) {
		if (!(flags & CLONE_FILES)) {
			t->as->mixed_files = true;
			rec_calls_forget_fds(t);
		}
		return;
	}
	child->as->intercept = t->as->intercept;
	child->as->shared_files = t->as->shared_files;
	child->as->writes_inside = t->as->writes_inside;
	if (flags & CLONE_FILES) {
		t->as->shared_files = child->as->shared_files = true;
		rec_calls_forget_fds(t);
		rec_calls_forget_fds(child);
	}
	child->as->alone = t->as->alone;
	child->as->drained = t->as->drained;
	tr_calls_copy(&child->as->calls, &t->as->calls);
	child->as->points = t->as->points;
	child->as->stopped = t->as->stopped;
	child->as->shared = t->as->shared;
	child->as->undumpable = t->as->undumpable;
	tr_patches_copy(&child->as->patches, &t->as->patches);
	rec_scratch_copy(child->as, t->as);
	rec_growth_copy(child->as, t->as);
	if (child->as->domain != t->as->domain) {
		child->cpu = rec_next_cpu(r);
		rec_outputs_shared(r);
	}
}

/* A child that shares no memory with its parent runs beside it; one whose
 * memory is a copy but for shared mappings belongs to the same domain. */
static struct aspace *child_space(struct recorder *r, const struct task *t,
				  uint64_t flags)
{
	if (flags & CLONE_VM)
		return t->as;
	return rec_aspace_new(r, t->as->shared ? t->as->domain : NULL);
}

/* The kernel wrote the child's id (or pidfd) into the parent's memory before
 * the child can run (kernel_clone in kernel/fork.c). */
static bool parent_tid_range(const struct task *t, uint64_t flags,
			     struct tr_range *rg)
{
	if (t->fl.call.nr != SYS_clone ||
	    !(flags & (CLONE_PARENT_SETTID | CLONE_PIDFD)))
		return false;
	*rg = (struct tr_range){.addr = t->fl.call.args[2], .len = 4};
	return true;
}

void rec_clone_event(struct recorder *r, struct task *t)
{
	struct tr_event ev = rec_event(TR_EV_CLONE, t);
	uint64_t flags = clone_flags(t);
	unsigned long tid;
	struct task *child;
	struct tr_range rg;
	struct tr_ranges written = {&rg, 1, 1};

	if (tr_tracee_event_msg(t->tid, &tid) < 0)
		return;
	child = rec_task_new(r, (pid_t)tid,
			     flags & CLONE_THREAD ? t->pid : (pid_t)tid,
			     child_space(r, t, flags));
	inherit(r, t, child, flags);
	rec_traced_clone_child(t, child, flags);
	tr_event_set(&ev, TR_F_NR, t->fl.call.nr);
	tr_event_set(&ev, TR_F_CHILD, child->id);
	tr_event_set(&ev, TR_F_CHILD_STREAM, child->as->stream);
	tr_event_set(&ev, TR_F_CLONE_FLAGS, flags);
	tr_event_set(&ev, TR_F_DOMAIN, child->as->domain->id);
	ev.regs = t->fl.entry;
	tr_event_mark(&ev, TR_F_REGS);
	if (parent_tid_range(t, flags, &rg))
		rec_read_ranges(r, t, &written, &ev);
	rec_emit(r, &ev);
	t->fl.recorded = true;
	if (!rec_traced_clone(r, t, flags, (pid_t)tid)) {
		rec_resume(t, TR_RESUME_SYSCALL, 0);
		if (flags & CLONE_VFORK)
			rec_rest(r, t);
	}
	take_early(r, child);
}

/* The kernel wrote the child's id where CLONE_CHILD_SETTID asked, in the
 * child, before its first stop (schedule_tail in kernel/sched/core.c). */
static bool child_tid_range(const struct tr_regs *regs, struct tr_range *rg)
{
	if (regs->orig_rax != SYS_clone || !(regs->rdi & CLONE_CHILD_SETTID))
		return false;
	*rg = (struct tr_range){.addr = regs->r10, .len = 4};
	return true;
}

void rec_task_first_stop(struct recorder *r, struct task *t)
{
	struct tr_event ev = rec_event(TR_EV_START, t);
	struct tr_range rg;
	struct tr_ranges out = {&rg, 1, 1};
	cpu_set_t set;

	if (tr_tracee_get_regs(t->tid, &ev.regs) < 0)
		return;
	if (t->untraced) {
		ev.regs.rdi |= CLONE_UNTRACED;
		if (tr_tracee_set_regs(t->tid, &ev.regs) < 0)
			return;
	}
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
	if (child_tid_range(&ev.regs, &rg))
		rec_read_ranges(r, t, &out, &ev);
	t->seen = ev.regs;
	rec_emit(r, &ev);
	t->started = true;
	rec_update_priority(t);
	if (!rec_traced_birth(r, t))
		rec_run(r, t, TR_RESUME_CONT, 0);
}

static void add_end_write(struct task *t, uint64_t addr, uint32_t value)
{
	TR_GROW(t->end_writes, t->nend, t->end_cap);
	t->end_writes[t->nend++] = (struct end_write){addr, value};
}

/* What handle_futex_death in kernel/futex/core.c does to a lock's word. */
static void add_owner_death(struct task *t, uint64_t addr)
{
	uint32_t word;

	if (tr_memory_read(t->tid, addr, &word, sizeof word) == 0 &&
	    (word & FUTEX_TID_MASK) == (uint32_t)t->tid)
		add_end_write(t, addr, (word & FUTEX_WAITERS) |
				       FUTEX_OWNER_DIED);
}

/*
 * Memory the kernel writes when a task ends: the owner-died mark in robust
 * futexes it holds (Documentation/locking/robust-futex-ABI.rst), and, while
 * others use the address space, zero in the word of set_tid_address(2).
 */
static void find_end_writes(struct task *t)
{
	struct { uint64_t next, offset, pending; } head;
	uint64_t at;

	t->nend = 0;
	if (t->clear_tid && t->as->ntasks > 1)
		add_end_write(t, t->clear_tid, 0);
	if (!t->robust_list ||
	    tr_memory_read(t->tid, t->robust_list, &head, sizeof head) < 0)
		return;
	if (head.pending)
		add_owner_death(t, (head.pending & ~(uint64_t)1) + head.offset);
	at = head.next;
	for (int n = 0; n < 2048 && (at & ~(uint64_t)1) != t->robust_list; n++) {
		at &= ~(uint64_t)1; /* bit 0 marks a priority-inheritance lock */
		add_owner_death(t, at + head.offset);
		if (tr_memory_read(t->tid, at, &at, sizeof at) < 0)
			return;
	}
}

static void emit_exit(struct recorder *r, struct task *t, int status)
{
	struct tr_event ev = rec_event(TR_EV_EXIT, t);
	struct tr_mem *mem;

	if (t->ended)
		return;
	t->ended = true;
	mem = tr_alloc(t->nend * sizeof *mem);
	/* Killed inside a call: show which. */
	if (t->in_call && !t->new_image)
		rec_call_record_entry(r, t);
	tr_event_set(&ev, TR_F_STATUS, (uint64_t)status);
	for (size_t i = 0; i < t->nend; i++)
		mem[i] = (struct tr_mem){t->end_writes[i].addr,
					 {&t->end_writes[i].value, 4}};
	ev.mem = mem;
	ev.nmem = t->nend;
	rec_emit(r, &ev);
	free(mem);
}

/* Recorded before the kernel writes and wakes those who wait for it: what they
 * do then comes after. */
static void let_end(struct recorder *r, struct task *t)
{
	unsigned long status;

	if (tr_tracee_event_msg(t->tid, &status) < 0)
		return;
	find_end_writes(t);
	emit_exit(r, t, (int)status);
	rec_enter_kernel(t, TR_RESUME_CONT);
}

void rec_task_ends(struct recorder *r, struct task *t)
{
	unsigned long status;

	t->exiting = true;
	if (tr_tracee_event_msg(t->tid, &status) < 0 ||
	    rec_traced_ends(r, t, status))
		return;
	find_end_writes(t);
	rec_await_end(r, t, let_end);
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
	emit_exit(r, t, status);
	if (t->tid == r->root) {
		r->root_status = status;
		r->root_done = true;
		if (r->options->moment)
			r->options->moment(r->options->arg,
					   TR_RECORD_FIRST_ENDED, status);
	}
	rec_traced_died(r, t, status);
	unlink_task(r, t);
	rec_foreign_end(r, t);
	rec_output_end(r, t);
	rec_call_release(t);
	rec_domain_leave(r, t);
	rec_aspace_leave(r, t);
	free(t->end_writes);
	free(t->held);
	free(t);
}

/*
 * execve in a thread that is not the leader ends all others and takes the
 * leader's id (de_thread in fs/exec.c); the leader's death is not reported.
 */
struct task *rec_task_takes_over(struct recorder *r, struct task *leader,
				 pid_t former)
{
	struct task *t = rec_task_find(r, former);

	if (!t || t == leader)
		return leader;
	rec_task_died(r, leader, 0);
	t->tid = t->pid;
	return t;
}
