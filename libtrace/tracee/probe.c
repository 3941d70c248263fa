/* Planting probes in a task, and telling why it stopped. */
#include "libtrace/tracee/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/base/io.h"
#include "libtrace/state/maps.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/probe_code.h"
#include "libtrace/tracee/remote.h"
#include "libtrace/tracee/tracee.h"

#define INT3 0xcc
#define PAGE 4096u

/* Stores to code beside a jump cost some 300 us each: after so many, stops at
 * a breakpoint are cheaper. */
#define STORES_MAX 100

/* A stack grows down to where something is mapped: keep away from it. */
#define STACK_ROOM (UINT64_C(1) << 28)

struct tr_probe {
	pid_t tid;
	uint64_t site;
	struct tr_probe_memory *memory;
	int slot; /* of the memory, or -1 */
	struct tr_vmas vmas; /* without the probe */
	uint32_t prot;   /* of the code, as the program has it */
	bool aliased;    /* it could be written through another mapping */
	bool guarded;    /* it is write-protected for the probe */
	unsigned stores; /* that the guard has stopped */
	uint8_t original[TR_RELOCATE_MAX], planted[TR_RELOCATE_MAX];
	size_t readable, len; /* bytes of each */
	bool shown;      /* the planted bytes are there */
	bool jumps;      /* and are a jump */
	bool mapped;     /* memory is mapped at code.base */
	bool has_code;   /* and `code` in it is in use */
	struct tr_probe_code code;
};

int tr_probe_memory_init(struct tr_probe_memory *m, struct tr_error *err)
{
	*m = (struct tr_probe_memory){
		.fd = memfd_create("probe", MFD_CLOEXEC)};
	if (m->fd < 0)
		return tr_fail_errno(err, "memory for probes");
	snprintf(m->path, sizeof m->path, "/proc/%d/fd/%d", (int)getpid(),
		 m->fd);
	return 0;
}

void tr_probe_memory_release(struct tr_probe_memory *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

static int take_slot(struct tr_probe_memory *m)
{
	for (int i = 0; i < 32; i++)
		if (!(m->used >> i & 1)) {
			m->used |= 1u << i;
			return i;
		}
	return -1;
}

int tr_probe_show(struct tr_probe *p)
{
	if (p->shown)
		return 0;
	if (tr_memory_write(p->tid, p->site, p->planted, p->len) < 0)
		return -1;
	p->shown = true;
	return 0;
}

/* The program may have written over the breakpoint and behind it meanwhile: that
 * is the code then.  False when the breakpoint is not there any more. */
static bool learn_code(struct tr_probe *p)
{
	uint8_t now[TR_RELOCATE_MAX];
	bool there;
	size_t kept;

	if (tr_memory_read(p->tid, p->site, now, p->readable) < 0)
		return false;
	there = memcmp(now, p->planted, p->len) == 0;
	kept = there ? p->len : 0;
	memcpy(p->original + kept, now + kept, p->readable - kept);
	return there;
}

int tr_probe_hide(struct tr_probe *p)
{
	if (!p->shown)
		return 0;
	p->shown = false;
	if (p->prot & PROT_WRITE && !p->guarded && !learn_code(p))
		return 0;
	return tr_memory_write(p->tid, p->site, p->original, p->len);
}

void tr_probe_region(const struct tr_probe *p, uint64_t *start, uint64_t *end)
{
	*start = p->mapped ? p->code.base : 0;
	*end = p->mapped ? p->code.base + TR_PROBE_SIZE : 0;
}

struct tr_probe *tr_probe_new(pid_t tid, uint64_t site,
			      struct tr_probe_memory *m, struct tr_error *err)
{
	struct tr_probe *p = tr_alloc(sizeof *p);
	const struct tr_vma *v;

	p->tid = tid;
	p->site = site;
	p->memory = m;
	p->slot = -1;
	if (tr_vmas_read(tid, &p->vmas, err) < 0)
		goto failed;
	v = tr_vmas_find(&p->vmas, site);
	p->readable = v ? tr_memory_read_some(tid, site, p->original,
					      sizeof p->original) : 0;
	if (p->readable == 0) {
		tr_fail(err, TR_EUNSUPPORTED, "task %d: no code at 0x%" PRIx64,
			(int)tid, site);
		goto failed;
	}
	p->prot = v->prot;
	p->aliased = v->flags & MAP_SHARED;
	p->planted[0] = INT3;
	p->len = 1;
	if (tr_probe_show(p) == 0)
		return p;
	tr_fail_errno(err, "task %d: writing the code at 0x%" PRIx64, (int)tid,
		      site);
failed:
	tr_probe_free(p);
	return NULL;
}

void tr_probe_free(struct tr_probe *p)
{
	if (!p)
		return;
	if (p->slot >= 0)
		p->memory->used &= ~(1u << p->slot);
	tr_vmas_release(&p->vmas);
	free(p);
}

/*
 * Take the right to write away from the pages of the jump, or give it back.
 * Compilers of running programs have their code in memory that is writable and
 * executable, and may change it any time.
 */
static int guard(struct tr_probe *p, bool on, struct tr_error *err)
{
	uint64_t start = p->site & ~(uint64_t)(PAGE - 1);
	uint64_t end = (p->site + TR_RELOCATE_MAX + PAGE - 1) &
		       ~(uint64_t)(PAGE - 1);
	const struct tr_vma *v = tr_vmas_find(&p->vmas, p->site);
	int64_t result;

	if (!(p->prot & PROT_WRITE) || p->guarded == on)
		return 0;
	if (end > v->end)
		end = v->end;
	if (tr_remote_call(p->tid, &result, SYS_mprotect, start, end - start,
			   on ? p->prot & ~(uint32_t)PROT_WRITE : p->prot,
			   0, 0, 0, err) < 0)
		return -1;
	if (result != 0)
		return tr_fail(err, TR_ESYS, "task %d: protecting code: %s",
			       (int)p->tid, strerror((int)-result));
	p->guarded = on;
	return 0;
}

static int unmap_code(struct tr_probe *p, struct tr_error *err)
{
	int64_t result;

	if (!p->mapped)
		return 0;
	p->mapped = p->has_code = false;
	if (tr_remote_call(p->tid, &result, SYS_munmap, p->code.base,
			   TR_PROBE_SIZE, 0, 0, 0, 0, err) < 0)
		return -1;
	return result == 0 ? 0 : tr_fail(err, TR_ESYS, "task %d: unmapping a "
					 "probe", (int)p->tid);
}

int tr_probe_remove(struct tr_probe *p, struct tr_error *err)
{
	if (tr_probe_hide(p) < 0)
		return tr_fail_errno(err, "task %d: removing a probe",
				     (int)p->tid);
	return guard(p, false, err) < 0 ? -1 : unmap_code(p, err);
}

/* ---- the code beside the program's ---- */

static bool is_stack(const struct tr_vma *v)
{
	return strcmp(v->name, "[stack]") == 0;
}

static bool is_free(void *ctx, uint64_t base)
{
	const struct tr_probe *p = ctx;

	for (size_t i = 0; i < p->vmas.n; i++) {
		const struct tr_vma *v = &p->vmas.v[i];

		if (base < v->end && base + TR_PROBE_SIZE +
		    (is_stack(v) ? STACK_ROOM : 0) > v->start)
			return false;
	}
	return true;
}

/* The descriptor that openat(2) gives in a vessel. */
#define BATCH_FD 3

static bool map_code(struct tr_probe *p)
{
	TR_AUTOFREE struct tr_batch *b = tr_alloc(sizeof *b);
	uint64_t offset = (uint64_t)p->slot * TR_PROBE_SIZE;
	struct tr_error ignored;

	if (tr_pwrite_all(p->memory->fd, p->code.bytes, TR_PROBE_SIZE,
			  (off_t)offset) < 0)
		return false;
	tr_batch_add(b, SYS_openat, (uint64_t)AT_FDCWD,
		     tr_batch_string(b, p->memory->path), O_RDWR, 0, 0, 0);
	tr_batch_add(b, SYS_mmap, p->code.base, TR_PROBE_SIZE,
		     PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_SHARED | MAP_FIXED_NOREPLACE, BATCH_FD, offset);
	tr_batch_add(b, SYS_close, BATCH_FD, 0, 0, 0, 0, 0);
	if (tr_batch_run(p->tid, b, &ignored) < 0)
		return false;
	p->mapped = b->call[1].result == (int64_t)p->code.base;
	p->has_code = p->mapped;
	return p->mapped;
}

/* Lengths of the instructions that were moved. */
static size_t lengths_of(const struct tr_relocated *r,
			 uint8_t lengths[TR_RELOCATE_MAX])
{
	uint64_t before = r->from;
	size_t n = 0;

	for (size_t i = 1; i < r->npoints; i++) {
		if (!r->point[i].entry)
			continue;
		lengths[n++] = (uint8_t)(r->point[i].home - before);
		before = r->point[i].home;
	}
	lengths[n++] = (uint8_t)(r->from + r->taken - before);
	return n;
}

static bool relocate(struct tr_probe *p, size_t want,
		     const struct tr_probe_state *state)
{
	struct tr_probe_code *c = &p->code;
	struct tr_error ignored;

	c->base = tr_probe_base(c->entry);
	return tr_relocate(p->original, p->readable, p->site, want,
			   tr_probe_copy_at(c->entry, state), 0, &c->moved,
			   &ignored) == 0;
}

/* A jump with some number of prefixes, and where it leads. */
static bool find_jump(struct tr_probe *p, const struct tr_probe_state *want)
{
	for (size_t n = 0; n < TR_PROBE_PREFIXES; n++) {
		struct tr_relocated trial;
		uint8_t lengths[TR_RELOCATE_MAX];
		struct tr_error ignored;

		if (tr_relocate(p->original, p->readable, p->site, TR_JUMP + n,
				p->site, 0, &trial, &ignored) < 0)
			return false;
		if (tr_probe_jump_bytes(p->site, n, lengths,
					lengths_of(&trial, lengths), is_free, p,
					&p->code.entry, p->planted) &&
		    relocate(p, TR_JUMP + n, want)) {
			p->len = p->code.moved.taken;
			return true;
		}
	}
	return false;
}

/* A place for the copy of one instruction. */
static bool find_place(struct tr_probe *p)
{
	const uint8_t jump = TR_JUMP; /* an instruction as long as a jump */
	uint8_t unused[TR_RELOCATE_MAX];

	return tr_probe_jump_bytes(p->site, 0, &jump, 1, is_free, p,
				   &p->code.entry, unused) &&
	       relocate(p, 1, NULL);
}

static bool install(struct tr_probe *p, const struct tr_probe_state *want)
{
	if (p->slot < 0)
		p->slot = take_slot(p->memory);
	if (p->slot < 0)
		return false;
	tr_probe_generate(&p->code, want);
	return map_code(p);
}

bool tr_probe_jump(struct tr_probe *p, const struct tr_probe_state *want)
{
	struct tr_error ignored;

	if (p->has_code || p->stores > STORES_MAX)
		return p->jumps;
	/* What is left is the code for what was there before. */
	if (tr_probe_hide(p) < 0 || unmap_code(p, &ignored) < 0)
		return false;
	p->jumps = !p->aliased && guard(p, true, &ignored) == 0 &&
		   find_jump(p, want) && install(p, want);
	if (!p->jumps) {
		p->planted[0] = INT3;
		p->len = 1;
		if (!p->mapped && find_place(p))
			(void)install(p, NULL);
		if (guard(p, false, &ignored) < 0)
			return false; /* the task is gone */
	}
	return tr_probe_show(p) == 0 && p->jumps;
}

/* ---- stops ---- */

/* The registers that the comparing code has saved. */
static bool read_saved(const struct tr_probe *p, uint64_t saved[3])
{
	uint64_t at = (uint64_t)p->slot * TR_PROBE_SIZE + TR_PROBE_RCX;

	return tr_pread_full(p->memory->fd, saved, TR_PROBE_SAVED,
			     (off_t)at) == TR_PROBE_SAVED;
}

/* rax and the flags as they were before the comparisons (lahf, seto). */
static void restore_saved(const struct tr_probe *p, struct tr_regs *regs)
{
	uint64_t saved[3];

	if (!read_saved(p, saved))
		return;
	regs->rcx = saved[0];
	regs->rax = saved[1];
	regs->eflags &= ~TR_PROBE_EFLAGS;
	regs->eflags |= saved[2] >> 8 & TR_PROBE_EFLAGS & 0xd5;
	regs->eflags |= (saved[2] & 1) << 11;
}

static bool within(uint64_t ip, uint64_t start, uint64_t end)
{
	return ip >= start && ip < end;
}

/* A breakpoint of the probe at `ip`. */
static enum tr_probe_stop at_breakpoint(struct tr_probe *p, uint64_t ip,
					struct tr_regs *regs)
{
	uint64_t unused;

	if (p->has_code && ip == p->code.alone_end) {
		regs->rip = ip;
		return TR_PROBE_ALONE;
	}
	if (p->jumps && ip == p->code.match) {
		restore_saved(p, regs);
		regs->rip = p->site;
		return TR_PROBE_HERE;
	}
	if (p->shown && ip == p->site && !p->jumps) {
		regs->rip = ip;
		return TR_PROBE_HERE;
	}
	if (p->jumps && ip != p->site &&
	    tr_relocated_entry(&p->code.moved, ip, &unused)) {
		regs->rip = ip; /* somebody jumped to a displaced one */
		return TR_PROBE_PASSED;
	}
	return TR_PROBE_OTHER;
}

/* A store to code that is guarded. */
static bool is_guarded_store(const struct tr_probe *p)
{
	uint64_t start = p->site & ~(uint64_t)(PAGE - 1), addr;
	siginfo_t si;

	if (!p->guarded || tr_tracee_get_siginfo(p->tid, &si) < 0)
		return false;
	addr = (uint64_t)(uintptr_t)si.si_addr;
	return si.si_code == SEGV_ACCERR &&
	       within(addr, start, p->site + TR_RELOCATE_MAX + PAGE);
}

/* The address that the program would be at. */
static void move_home(const struct tr_probe *p, struct tr_regs *regs)
{
	const struct tr_probe_code *c = &p->code;

	if (!p->has_code ||
	    tr_relocated_home(&c->moved, regs->rip, &regs->rip))
		return;
	if (within(regs->rip, c->compare, c->compare_end))
		restore_saved(p, regs);
	if (within(regs->rip, c->base, c->base + TR_PROBE_SIZE))
		regs->rip = p->site;
}

enum tr_probe_stop tr_probe_stopped(struct tr_probe *p, int signo, int code,
				    struct tr_regs *regs)
{
	const struct tr_probe_code *c = &p->code;

	if (signo == SIGTRAP && code == SI_KERNEL) {
		enum tr_probe_stop why = at_breakpoint(p, regs->rip - 1, regs);

		if (why != TR_PROBE_OTHER)
			return why;
	}
	/* A word that is not there is not as wanted. */
	if (p->jumps && signo == SIGSEGV) {
		if (within(regs->rip, c->compare, c->compare_end)) {
			regs->rip = c->out;
			return TR_PROBE_PASSED;
		}
		if (within(regs->rip, c->entry, c->restore)) {
			regs->rip = c->restore;
			return TR_PROBE_PASSED;
		}
	}
	if (signo == SIGSEGV && is_guarded_store(p)) {
		move_home(p, regs);
		return TR_PROBE_STORE;
	}
	move_home(p, regs);
	return TR_PROBE_OTHER;
}

uint64_t tr_probe_way_on(const struct tr_probe *p, uint64_t ip)
{
	uint64_t copy;

	if (p->has_code && tr_relocated_entry(&p->code.moved, ip, &copy))
		return copy;
	return ip == p->site && p->shown ? 0 : ip;
}

uint64_t tr_probe_alone(const struct tr_probe *p)
{
	return p->has_code ? p->code.alone : 0;
}

static int step(struct tr_probe *p, int *status)
{
	if (tr_probe_hide(p) < 0 ||
	    tr_tracee_resume(p->tid, TR_RESUME_STEP, 0) < 0)
		return -1;
	return tr_tracee_wait(p->tid, status, 0);
}

int tr_probe_step(struct tr_probe *p, int *status)
{
	return step(p, status) < 0 ? -1 : tr_probe_show(p);
}

/* From here on a breakpoint, where the code is as it is now. */
static void give_up_jump(struct tr_probe *p, const uint8_t *code)
{
	memcpy(p->original, code, p->readable);
	p->planted[0] = INT3;
	p->len = 1;
	p->jumps = p->has_code = false;
}

int tr_probe_store(struct tr_probe *p, int *status)
{
	struct tr_error ignored;

	if (guard(p, false, &ignored) < 0)
		return -1;
	return step(p, status);
}

int tr_probe_stored(struct tr_probe *p)
{
	uint8_t now[TR_RELOCATE_MAX];
	struct tr_error ignored;

	if (tr_memory_read(p->tid, p->site, now, p->readable) < 0)
		return -1;
	if (++p->stores > STORES_MAX ||
	    memcmp(now, p->original, p->readable) != 0)
		give_up_jump(p, now);
	else if (guard(p, true, &ignored) < 0)
		return -1;
	return tr_probe_show(p);
}
