/*
 * Memory and registers of one task changed or read by another: by ptrace(2),
 * by process_vm_writev(2), or through /proc/PID/mem, which a process may also
 * do to itself.
 *
 * What changed is recorded with the task it belongs to, as a `poke` event; in
 * the caller's own memory it is an effect of the call like any other.  The
 * recorder's breakpoints in the memory of others are not shown.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/ptrace.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/tracee.h"

/* More pieces than this in one call are not looked into. */
#define PIECES 1024

/* Is any task that sees o's memory computing, so that replay could not tell
 * when the change came? */
static bool computes(const struct task *o)
{
	const struct domain *d = o->as->domain;

	return d->current && !d->in_kernel && !d->current->in_call;
}

/* Replay must find the place in o where the change comes. */
static void settle(struct recorder *r, struct task *o)
{
	if (o->in_call && !o->new_image)
		rec_call_record_entry(r, o);
	rec_capture_disturbed(r, o->as->domain);
	if (o->vt && o->vt->stopped && !o->vt->exact)
		rec_stop_replay(r, o, TR_NOTE_ASYNC, "another task changed "
				"its memory or registers while it computed");
}

/* The same for memory, which others see, too. */
static void settle_memory(struct recorder *r, struct task *o)
{
	settle(r, o);
	if (computes(o))
		rec_stop_replay(r, o, TR_NOTE_ASYNC, "another task changed "
				"its memory while it computed");
}

static int poke_memory(struct recorder *r, struct task *o, uint64_t addr,
		       const void *data, size_t n)
{
	struct tr_mem mem = {addr, {data, n}};
	struct tr_event ev;

	if (tr_memory_write(o->tid, addr, data, n) < 0 ||
	    tr_patches_settle(o->tid, &o->as->patches, addr, n) < 0)
		return -1;
	settle_memory(r, o);
	ev = rec_event(TR_EV_POKE, o);
	ev.mem = &mem;
	ev.nmem = 1;
	rec_emit(r, &ev);
	return 0;
}

/* A task that shares the memory with the stopped one, and computes, is taken to
 * a place that replay finds. */
int rec_poke_memory(struct recorder *r, struct task *o, uint64_t addr,
		    const void *data, size_t n)
{
	struct domain *d = computes(o) ? o->as->domain : NULL;
	int result;

	if (d)
		rec_domain_halt(r, d);
	result = poke_memory(r, o, addr, data, n);
	if (d)
		rec_domain_go_on(r, d->id);
	return result;
}

void rec_poke_regs(struct recorder *r, struct task *o,
		   const struct tr_regs *before, const struct tr_regs *after)
{
	bool entry = o->vt && o->vt->at == HELD_ENTRY;
	struct tr_event ev;

	/* An interrupted call will not be restarted where it was. */
	if (o->in_call && o->fl.interrupted && !entry)
		rec_call_finish_as(r, o, before);
	settle(r, o);
	ev = rec_event(TR_EV_POKE, o);
	ev.regs = *before;
	ev.regs_after = *after;
	if (entry) {
		o->fl.changed = true;
		/* A call that is skipped keeps its number in the trace. */
		if ((int)after->orig_rax < 0)
			ev.regs_after.orig_rax = o->fl.call.nr;
	}
	if (!tr_regs_equal(before, after) || entry) {
		tr_event_mark(&ev, TR_F_REGS);
		tr_event_mark(&ev, TR_F_REGS_AFTER);
		rec_emit(r, &ev);
	}
	o->regs_set = !entry;
}

void rec_poke_xstate(struct recorder *r, struct task *o)
{
	struct tr_event ev;
	uint8_t xstate[TR_MAX_XSTATE];
	size_t n = sizeof xstate;

	settle(r, o);
	if (tr_tracee_get_xstate(o->tid, xstate, &n) < 0)
		return;
	ev = rec_event(TR_EV_POKE, o);
	ev.xstate = (struct tr_bytes){xstate, n};
	tr_event_mark(&ev, TR_F_XSTATE);
	rec_emit(r, &ev);
}

void rec_poke_debug(struct recorder *r, struct task *o, int number,
		    uint64_t value)
{
	struct tr_event ev;

	settle(r, o);
	ev = rec_event(TR_EV_POKE, o);
	tr_event_set(&ev, TR_F_DEBUG_REGISTER, (uint64_t)number);
	tr_event_set(&ev, TR_F_VALUE, value);
	rec_emit(r, &ev);
}

/* ---- calls that reach into memory by address ---- */

/* Bytes moved between the caller's memory and another's. */
struct transfer {
	struct task *target;
	bool writes;
	struct iovec local[PIECES], remote[PIECES];
	size_t nlocal, nremote;
};

/* The task whose memory the descriptor is, if it is one of the recording. */
static struct task *memory_of(struct recorder *r, const struct task *t, int fd)
{
	TR_AUTOFREE char *link = tr_printf("/proc/%d/fd/%d", (int)t->tid, fd);
	char path[64], rest[16];
	ssize_t n = readlink(link, path, sizeof path - 1);
	int pid, tid;

	if (n <= 0)
		return NULL;
	path[n] = '\0';
	if (sscanf(path, "/proc/%d/task/%d/%15s", &pid, &tid, rest) == 3 &&
	    strcmp(rest, "mem") == 0)
		return rec_task_find(r, tid);
	if (sscanf(path, "/proc/%d/%15s", &pid, rest) == 2 &&
	    strcmp(rest, "mem") == 0)
		return rec_task_find(r, pid);
	return NULL;
}

void rec_note_memory_file(struct recorder *r, const struct task *t, int fd)
{
	if (!r->memory_files && memory_of(r, t, fd))
		r->memory_files = true;
}

/* The task into whose memory the call at its entry writes, or NULL. */
static struct task *written_by(struct recorder *r, const struct task *t)
{
	const struct tr_call *c = &t->fl.call;

	if (c->nr == SYS_process_vm_writev)
		return rec_task_find(r, (pid_t)c->args[0]);
	return r->memory_files && tr_sys_write_fd(c->nr) == 0
	       ? memory_of(r, t, (int)c->args[0]) : NULL;
}

void rec_foreign_begin(struct recorder *r, struct task *t)
{
	const struct task *o = written_by(r, t);

	if (!o || o->as->domain == t->as->domain)
		return;
	t->fl.halted = o->as->domain->id;
	rec_domain_halt(r, o->as->domain);
}

void rec_foreign_end(struct recorder *r, struct task *t)
{
	if (t->fl.halted)
		rec_domain_go_on(r, t->fl.halted);
	t->fl.halted = 0;
}

/* An array of struct iovec, cut off at `limit` bytes together. */
static size_t read_vector(const struct task *t, uint64_t addr, uint64_t count,
			  uint64_t limit, struct iovec *v)
{
	size_t n = 0;

	if (count > PIECES || tr_memory_read(t->tid, addr, v,
					     count * sizeof *v) < 0)
		return 0;
	while (n < count && limit) {
		if (v[n].iov_len > limit)
			v[n].iov_len = limit;
		limit -= v[n++].iov_len;
	}
	return n;
}

static bool find_transfer(struct recorder *r, const struct task *t,
			  struct transfer *x)
{
	const struct tr_call *c = &t->fl.call;
	const uint64_t *a = c->args;
	uint64_t n = (uint64_t)c->result, at;

	if (c->nr == SYS_process_vm_readv || c->nr == SYS_process_vm_writev) {
		x->target = rec_task_find(r, (pid_t)a[0]);
		x->writes = c->nr == SYS_process_vm_writev;
		x->nlocal = read_vector(t, a[1], a[2], n, x->local);
		x->nremote = read_vector(t, a[3], a[4], n, x->remote);
		return x->target;
	}
	if (!r->memory_files || !rec_file_offset(t, &at, &x->writes))
		return false;
	x->target = memory_of(r, t, (int)a[0]);
	x->remote[0] = (struct iovec){(void *)(uintptr_t)at, n};
	x->nremote = 1;
	if (c->nr == SYS_readv || c->nr == SYS_preadv) {
		x->nlocal = read_vector(t, a[1], a[2], n, x->local);
	} else {
		x->local[0] = (struct iovec){(void *)(uintptr_t)a[1], n};
		x->nlocal = 1;
	}
	return x->target;
}

/* Where byte `at` of the transfer is in the caller's memory. */
static uint64_t local_address(const struct transfer *x, uint64_t at)
{
	for (size_t i = 0; i < x->nlocal; i++) {
		if (at < x->local[i].iov_len)
			return (uintptr_t)x->local[i].iov_base + at;
		at -= x->local[i].iov_len;
	}
	return 0;
}

/* Put the program's own bytes in what was read. */
static void hide_patches(const struct task *t, const struct transfer *x)
{
	const struct tr_patches *ps = &x->target->as->patches;
	uint64_t done = 0;

	for (size_t i = 0; i < x->nremote; i++) {
		uint64_t base = (uintptr_t)x->remote[i].iov_base;

		for (size_t p = 0; p < ps->n; p++) {
			uint64_t at = ps->p[p].addr - base, to;

			if (at >= x->remote[i].iov_len || ps->p[p].overridden)
				continue;
			to = local_address(x, done + at);
			if (to && tr_memory_write(t->tid, to, &ps->p[p].byte,
						  1) < 0)
				return;
		}
		done += x->remote[i].iov_len;
	}
}

void rec_show_pieces(const struct task *o, struct tr_event *ev)
{
	for (size_t i = 0; i < ev->nmem; i++) {
		void *bytes = (void *)(uintptr_t)ev->mem[i].bytes.data;

		tr_patches_show(&o->as->patches, ev->mem[i].addr, bytes,
				ev->mem[i].bytes.len);
		tr_calls_show(&o->as->calls, ev->mem[i].addr, bytes,
			      ev->mem[i].bytes.len);
	}
}

static void record_writes(struct recorder *r, const struct task *t,
			  const struct transfer *x, struct tr_ranges *out)
{
	struct task *o = x->target;
	struct tr_ranges own = {0};
	struct tr_ranges *rs = o->as == t->as ? out : &own;
	struct tr_event ev;

	for (size_t i = 0; i < x->nremote; i++) {
		uint64_t addr = (uintptr_t)x->remote[i].iov_base;
		uint64_t n = x->remote[i].iov_len;

		TR_GROW(rs->r, rs->n, rs->cap);
		rs->r[rs->n++] = (struct tr_range){.arg = 1, .addr = addr,
						   .len = n};
		if (tr_patches_settle(o->tid, &o->as->patches, addr, n) < 0)
			return;
	}
	if (rs == out)
		return;
	settle_memory(r, o);
	ev = rec_event(TR_EV_POKE, o);
	rec_read_ranges(r, o, rs, &ev);
	rec_show_pieces(o, &ev);
	rec_emit(r, &ev);
	tr_ranges_release(&own);
}

void rec_foreign_memory(struct recorder *r, const struct task *t,
			struct tr_ranges *out)
{
	TR_AUTOFREE struct transfer *x = NULL;

	if (t->fl.call.result <= 0 || t->fl.denied || t->fl.answered ||
	    (!r->memory_files && t->fl.call.nr != SYS_process_vm_readv &&
	     t->fl.call.nr != SYS_process_vm_writev))
		return;
	x = tr_alloc(sizeof *x);
	if (!find_transfer(r, t, x))
		return;
	if (x->writes)
		record_writes(r, t, x, out);
	else
		hide_patches(t, x);
}
