/*
 * The program's view of the signals that trapped instructions raise.
 *
 * int3 raises SIGTRAP, and RDTSC where it traps SIGSEGV, by force: where the
 * program blocks or ignores the signal, the kernel unblocks it and resets its
 * action (force_sig_info_to_task in kernel/signal.c).  So the recorder knows
 * what the program has set, and puts it back.
 */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "libtrace/record/recorder.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/remote.h"
#include "libtrace/tracee/tracee.h"

static struct forced *forced_of(struct task *t, int sig)
{
	switch (sig) {
	case SIGTRAP:
		return &t->forced[0];
	case SIGSEGV:
		return &t->forced[1];
	default:
		return NULL;
	}
}

static bool is_ignored(const struct forced *f)
{
	return f->action.handler == (uint64_t)(uintptr_t)SIG_IGN;
}

void rec_forced_mask(struct task *t)
{
	uint64_t mask;

	if (tr_tracee_get_sigmask(t->tid, &mask) < 0)
		return;
	t->forced[0].blocked = mask >> (SIGTRAP - 1) & 1;
	t->forced[1].blocked = mask >> (SIGSEGV - 1) & 1;
}

void rec_forced_changes(struct task *t, int how, const struct tr_bytes *set)
{
	uint64_t mask;

	if (set->len != sizeof mask)
		return;
	memcpy(&mask, set->data, sizeof mask);
	for (int i = 0; i < 2; i++) {
		int sig = i ? SIGSEGV : SIGTRAP;
		bool in = mask >> (sig - 1) & 1;

		if (in || how == SIG_SETMASK)
			t->forced[i].blocked = in && how != SIG_UNBLOCK;
	}
}

void rec_forced_action(struct recorder *r, struct task *t)
{
	const struct tr_call *c = &t->fl.call;
	struct forced *f = forced_of(t, (int)c->args[0]);
	struct kernel_action action;

	if (!f || !c->args[1] ||
	    tr_memory_read(t->tid, c->args[1], &action, sizeof action) < 0)
		return;
	for (struct task *o = r->tasks; o; o = o->next)
		if (o->pid == t->pid)
			forced_of(o, (int)c->args[0])->action = action;
}

void rec_forced_inherit(const struct task *t, struct task *child)
{
	memcpy(child->forced, t->forced, sizeof child->forced);
}

bool rec_ignores_trap(const struct task *t)
{
	return is_ignored(&t->forced[0]);
}

static void put_action_back(struct task *t, int sig, const struct forced *f)
{
	struct tr_error ignored;
	int64_t result;

	if (tr_memory_write(t->tid, TR_INJECT_SCRATCH, &f->action,
			    sizeof f->action) < 0 ||
	    tr_remote_call_quietly(t->tid, &result, SYS_rt_sigaction,
				   (uint64_t)sig, TR_INJECT_SCRATCH, 0,
				   sizeof f->action.mask, &ignored) < 0)
		return; /* SIGKILL took it */
}

void rec_forced_restore(struct task *t, int sig)
{
	const struct forced *f = forced_of(t, sig);
	uint64_t mask;

	if (!f->blocked && !is_ignored(f))
		return;
	if (f->action.handler)
		put_action_back(t, sig, f);
	if (f->blocked && tr_tracee_get_sigmask(t->tid, &mask) == 0 &&
	    tr_tracee_set_sigmask(t->tid, mask | UINT64_C(1) << (sig - 1)) < 0)
		return;
}

void rec_forced_exec(struct task *t)
{
	for (int i = 0; i < 2; i++)
		if (!is_ignored(&t->forced[i]))
			t->forced[i].action = (struct kernel_action){0};
	/* The set-up of the image has trapped, too. */
	if (is_ignored(&t->forced[0]))
		put_action_back(t, SIGTRAP, &t->forced[0]);
}
