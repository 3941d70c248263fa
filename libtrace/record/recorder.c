/* Recording a program: the loop that handles every stop. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/record/session.h"
#include "libtrace/tracee/spawn.h"
#include "libtrace/tracee/tracee.h"

/* How often the recorder looks after what waits: usually, and at least and at
 * most when something waits for less; and what a kill of it loses at most. */
#define TICK_NS (REC_TICK_US * UINT64_C(1000))
#define HURRY_MIN_NS UINT64_C(500000)
#define HURRY_MAX_NS UINT64_C(5000000)
#define FLUSH_NS UINT64_C(500000000)

void rec_resume(struct task *t, int how, int sig)
{
	if (how == TR_RESUME_CONT && rec_traced_steps(t))
		how = TR_RESUME_STEP;
	else if (how == TR_RESUME_CONT && t->filtered)
		how = TR_RESUME_SYSCALL;
	/* ESRCH: SIGKILL took it; its death is reported like any other. */
	if ((how != TR_RESUME_INTERRUPT && tr_tracee_was_killed(t->tid)) ||
	    tr_tracee_resume(t->tid, (enum tr_resume)how, sig) < 0)
		return;
	if (!t->stop_later || t->leaving)
		return;
	t->stop_later = false;
	if (tr_tracee_resume(t->tid, TR_RESUME_INTERRUPT, 0) < 0)
		return;
}

/* PTRACE_EVENT_STOP: a new task, a group-stop, or its end. */
static void event_stop(struct recorder *r, struct task *t, int sig)
{
	bool interrupted = t->interrupting != 0;

	if (!t->started) {
		rec_task_first_stop(r, t);
		return;
	}
	t->interrupting = 0;
	if (t->vt && sig == SIGTRAP && rec_calls_stop_later(t))
		return;
	if (rec_traced_event_stop(r, t, sig))
		return;
	if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN ||
	    sig == SIGTTOU) {
		rec_stopped(r, t);
		rec_resume(t, TR_RESUME_LISTEN, 0);
		return;
	}
	if (interrupted && !t->in_call)
		rec_interrupted(r, t);
	else if (t->in_call)
		rec_resume(t, TR_RESUME_CONT, 0); /* the call is restarted */
	else
		rec_go_on(r, t, 0);
}

static void exec_event(struct recorder *r, struct task *t)
{
	unsigned long former;

	if (tr_tracee_event_msg(t->tid, &former) < 0)
		return;
	t = rec_task_takes_over(r, t, (pid_t)former);
	rec_traced_former(t, (pid_t)former);
	t->new_image = true;
	rec_resume(t, TR_RESUME_SYSCALL, 0);
}

void rec_dispatch(struct recorder *r, struct task *t, int status)
{
	if (!WIFSTOPPED(status)) {
		rec_task_died(r, t, status);
		return;
	}
	rec_calls_drain(r, t);
	if (tr_stopped_by_syscall(status)) {
		if (t->leaving)
			rec_calls_left(r, t);
		else if (t->new_image || (t->in_call && !t->fl.interrupted))
			rec_call_exit(r, t);
		else
			rec_call_enter(r, t);
		return;
	}
	switch (tr_stop_event(status)) {
	case 0:
		t->put_off = false;
		rec_signal_stop(r, t, WSTOPSIG(status));
		break;
	case PTRACE_EVENT_SECCOMP:
		if (rec_call_put_off(t))
			break;
		if (t->filtered && t->in_call && !t->fl.interrupted)
			rec_call_filtered(r, t);
		else
			rec_call_enter(r, t);
		break;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		rec_clone_event(r, t);
		break;
	case PTRACE_EVENT_EXEC:
		exec_event(r, t);
		break;
	case PTRACE_EVENT_EXIT:
		rec_task_ends(r, t);
		break;
	case PTRACE_EVENT_STOP:
		event_stop(r, t, WSTOPSIG(status));
		break;
	default:
		rec_resume(t, TR_RESUME_CONT, 0);
	}
}

static void tick(struct recorder *r)
{
	struct tr_error err;

	rec_digests(r, false);
	if (r->writer && tr_writer_flush(r->writer, FLUSH_NS, &err) < 0)
		r->lost = true;
}

static void remember_early(struct recorder *r, pid_t tid, int status)
{
	TR_GROW(r->early, r->nearly, r->early_cap);
	r->early[r->nearly++] = (struct early){tid, status};
}

/* The core of all tasks that compute, as far as is known; -1: there are
 * several; own_cpu when none does. */
static int busy_core(const struct recorder *r)
{
	int cpu = r->own_cpu;
	bool any = false;

	for (const struct task *t = r->tasks; t; t = t->next) {
		if (t->in_call)
			continue;
		if (any && t->cpu != cpu)
			return -1;
		cpu = t->cpu;
		any = true;
	}
	return cpu;
}

/*
 * While tasks compute on one core only, they and the recorder take turns, and
 * are fastest on that core: a wake-up of another one costs more than the stop
 * itself.
 */
static void follow(struct recorder *r)
{
	int cpu = busy_core(r);
	cpu_set_t set;

	if (cpu == r->own_cpu)
		return;
	CPU_ZERO(&set);
	for (size_t i = 0; i < r->ncpus; i++)
		if (cpu < 0 || r->cpus[i] == cpu)
			CPU_SET(r->cpus[i], &set);
	if (sched_setaffinity(0, sizeof set, &set) == 0)
		r->own_cpu = cpu;
}

/* A part of the time that a task or signal has to wait. */
static uint64_t hurry_ns(const struct recorder *r)
{
	const struct tr_record_options *o = r->options;
	uint64_t ns = (o->slice_ns < o->max_defer_ns ? o->slice_ns
						     : o->max_defer_ns) / 4;

	if (ns < HURRY_MIN_NS)
		return HURRY_MIN_NS;
	return ns < HURRY_MAX_NS ? ns : HURRY_MAX_NS;
}

/* How often to look when nothing hurries: states by time are due that often. */
static uint64_t calm_ns(const struct recorder *r)
{
	const struct tr_record_options *o = r->options;

	if (o->digest != TR_DIGEST_TIMED || o->digest_ns >= TICK_NS)
		return TICK_NS;
	return o->digest_ns < HURRY_MIN_NS ? HURRY_MIN_NS : o->digest_ns;
}

/* What waits for time to pass; tick more often while something does. */
static void look_after_waiting(struct recorder *r, uint64_t *tick_ns)
{
	uint64_t wanted;

	rec_calls_tick(r);
	rec_force_overdue(r);
	rec_preempt(r);
	r->hurry = rec_outputs_overdue(r) || rec_signals_waiting(r) ||
		   rec_sched_waiting(r);
	r->soon = false;
	wanted = calm_ns(r);
	if (r->hurry)
		wanted = rec_spin_wait(r, hurry_ns(r) < wanted ? hurry_ns(r)
							       : wanted);
	if (wanted != *tick_ns)
		rec_set_tick(wanted);
	*tick_ns = wanted;
}

/* Until no traced task is left. */
static void run(struct recorder *r)
{
	uint64_t last = tr_now_ns(), looked = last, tick_ns = TICK_NS;

	for (;;) {
		const struct timespec moment = {0, 20000};
		bool polling = rec_sched_poll(r);
		int status;
		pid_t tid = waitpid(-1, &status,
				    __WALL | (polling ? WNOHANG : 0));
		struct task *t;
		uint64_t now;

		if (tid < 0 && errno != EINTR)
			return;
		if (tid < 0)
			rec_pass_signals(r);
		if (tid == 0)
			nanosleep(&moment, NULL);
		t = tid > 0 ? rec_task_find(r, tid) : NULL;
		if (t) {
			rec_dispatch(r, t, status);
			follow(r);
		} else if (tid > 0) {
			remember_early(r, tid, status);
		}
		now = tr_now_ns();
		if (now - looked >= tick_ns || r->soon ||
		    (r->hurry && tick_ns == TICK_NS)) {
			look_after_waiting(r, &tick_ns);
			looked = now;
		}
		if (now - last >= TICK_NS) {
			tick(r);
			last = now;
		}
	}
}

static void list_cpus(struct recorder *r)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return;
	r->cpus = tr_alloc((size_t)CPU_COUNT(&set) * sizeof *r->cpus);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			r->cpus[r->ncpus++] = i;
}

/* What the options ask for beyond the trace itself. */
static int set_options(struct recorder *r, struct tr_error *err)
{
	const struct tr_record_options *o = r->options;

	if (o->portable && !tr_cpu_level_parse(o->portable, &r->cpu_level))
		return tr_fail(err, TR_EINVAL, "'%s' is no CPU level: x86-64-v1 "
			       "to x86-64-v4", o->portable);
	if (!o->audit)
		return 0;
	r->audit = fopen(o->audit, "we");
	return r->audit ? 0 : tr_fail_errno(err, "%s", o->audit);
}

static int start(struct recorder *r, const char *path, struct tr_error *err)
{
	struct tr_spawn s = {.path = path, .argv = r->options->argv,
			     .cpu = rec_next_cpu(r)};
	struct task *t;

	r->root = tr_spawn(&s, err);
	if (r->root < 0)
		return -1;
	t = rec_task_new(r, r->root, r->root, rec_aspace_new(r, NULL));
	t->as->domain->current = t;
	t->cpu = s.cpu;
	t->new_image = true;
	rec_portable_start(r);
	if (!r->sites.tsc_traps)
		rec_note(r, 0, 0, TR_NOTE_TSC_PATCHED,
			 "this machine does not trap RDTSC: generated code "
			 "reads the counter unrecorded");
	rec_resume(t, TR_RESUME_SYSCALL, 0);
	return 0;
}

int tr_record(const struct tr_record_options *o, struct tr_record_result *res,
	      struct tr_error *err)
{
	TR_AUTOFREE char *path = tr_find_program(o->argv[0], err);
	struct recorder r = {.options = o, .next_task = 1, .next_stream = 1,
			     .start_ns = tr_now_ns(), .own_cpu = -1};
	struct sigaction old[REC_WATCHED];
	sigset_t all, mask;
	int opened, closed;

	if (!path)
		return -1;
	r.sites.tsc_traps = tr_tsc_traps();
	r.digester = tr_digester_new();
	/* Audits compare, digests cover and chaos interferes at every call. */
	r.intercept = o->intercept && !o->audit && !o->chaos &&
		      o->digest != TR_DIGEST_EVERY;
	/* Helper threads must not take the signals meant for this one. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
	opened = rec_session_open(&r, err);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (opened < 0) {
		tr_digester_free(r.digester);
		return -1;
	}
	list_cpus(&r);
	if (set_options(&r, err) < 0 || start(&r, path, err) < 0) {
		if (r.audit)
			fclose(r.audit);
		rec_session_discard(&r);
		tr_digester_free(r.digester);
		return -1;
	}
	if (o->moment)
		o->moment(o->arg, TR_RECORD_STARTED, 0);
	rec_catch_signals(old);
	run(&r);
	tr_digester_free(r.digester);
	tr_state_room_release(&r.state_room);
	closed = rec_session_close(&r, err);
	if (r.audit && fclose(r.audit) != 0)
		closed = tr_fail_errno(err, "%s", o->audit);
	rec_restore_signals(old);
	*res = (struct tr_record_result){
		.status = r.root_status,
		.events = r.number,
		.tasks = r.next_task - 1,
		.complete = closed == 0 && !r.lost,
		.replayable = !r.stopped[0],
		.refusals = r.refusals,
	};
	memcpy(res->stopped, r.stopped, sizeof res->stopped);
	memcpy(res->unreached, r.unreached, sizeof res->unreached);
	memcpy(res->refused, r.refused, sizeof res->refused);
	return 0;
}
