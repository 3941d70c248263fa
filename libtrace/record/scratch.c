/*
 * Scratch memory: where the kernel writes the results of calls that may block.
 *
 * While a task is blocked in a call another one of its domain runs, and would
 * see what the kernel writes for the blocked call at a moment that replay does
 * not know.  So such a call gets pointers to memory that the program does not
 * know of, and the results are copied to where they belong when the task has
 * the turn again, as part of the call's event.  Registers are as the program
 * set them whenever it can look.
 *
 * The model lists what a call may write.  A call whose memory cannot be
 * exchanged (futex words, ioctl) or is not the program's to write (the kernel
 * answers EFAULT) is left as it is; if others run meanwhile, its event says so
 * (`exposed`).  A read of a file needs none of this: it waits for nobody and
 * keeps the turn.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "libtrace/base/alloc.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/model/msghdr.h"
#include "libtrace/record/ptrace.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/remote.h"
#include "libtrace/tracee/tracee.h"

#define PAGE UINT64_C(4096)
#define BLOCK_MIN (8 * PAGE)
#define BLOCK_MAX (UINT64_C(32) << 20)
#define COPY_MAX (UINT64_C(1) << 20)
/* The kernel keeps this far away from what lies below a stack. */
#define STACK_GAP (256 * PAGE)

#define NAME_MAX_LEN 128 /* struct sockaddr_storage */

/* One buffer of the call. */
struct piece {
	uint64_t real, len;
	uint64_t at;     /* its address in scratch memory; first an offset */
	bool is_bulk;    /* only written: nothing is copied there */
	bool is_partial; /* the kernel writes some members of a structure */
};

struct moved {
	struct piece *p;
	size_t n, cap;
	struct tr_buf image; /* what was put into scratch memory for the
				pieces that are not bulk, from its start */
	uint64_t bulk;       /* bytes of those that are */
	uint64_t start;      /* where the image is */
	struct fixup {
		bool is_arg;
		size_t where; /* argument, or place in the image */
		size_t piece;
	} *fix;
	size_t nfix, fix_cap;
	uint64_t args[6];
};

void rec_scratch_release(struct moved *m)
{
	if (!m)
		return;
	free(m->p);
	free(m->fix);
	tr_buf_release(&m->image);
	free(m);
}

/* Which memory is writable. */

void rec_writable_forget(struct aspace *as)
{
	as->nwritable = 0;
}

/* A stack can grow down into the gap below it. */
static uint64_t stack_bottom(const struct task *t, const struct tr_vma *v,
			     uint64_t below)
{
	struct rlimit rl;
	uint64_t room;

	if (strcmp(v->name, "[stack]") != 0 ||
	    prlimit(t->tid, RLIMIT_STACK, NULL, &rl) < 0)
		return v->start;
	room = below + STACK_GAP < v->start ? v->start - below - STACK_GAP : 0;
	if (rl.rlim_cur < v->end - v->start + room)
		room = rl.rlim_cur > v->end - v->start
			? rl.rlim_cur - (v->end - v->start) : 0;
	return v->start - room / PAGE * PAGE;
}

static void read_writable(struct task *t)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct aspace *as = t->as;
	uint64_t below = 0;
	struct tr_error ignored;

	as->nwritable = 0;
	if (tr_vmas_read(t->tid, &vmas, &ignored) < 0)
		return;
	for (size_t i = 0; i < vmas.n; i++) {
		const struct tr_vma *v = &vmas.v[i];
		uint64_t start = stack_bottom(t, v, below);
		struct extent *last = as->nwritable
			? &as->writable[as->nwritable - 1] : NULL;

		below = v->end;
		if (!(v->prot & PROT_WRITE))
			continue;
		if (last && last->end == start) {
			last->end = v->end;
			continue;
		}
		TR_GROW(as->writable, as->nwritable, as->writable_cap);
		as->writable[as->nwritable++] = (struct extent){start, v->end};
	}
}

static bool holds(const struct aspace *as, uint64_t addr, uint64_t len)
{
	for (size_t i = 0; i < as->nwritable; i++)
		if (addr >= as->writable[i].start && addr < as->writable[i].end)
			return len <= as->writable[i].end - addr;
	return false;
}

static bool is_writable(struct task *t, uint64_t addr, uint64_t len)
{
	if (holds(t->as, addr, len))
		return true;
	read_writable(t);
	return holds(t->as, addr, len);
}

/* What is exchanged. */

static uint64_t get64(const struct moved *m, size_t at)
{
	uint64_t v;

	memcpy(&v, m->image.data + at, sizeof v);
	return v;
}

/* Append bytes of the program's memory to the image. */
static bool copy_in(const struct task *t, struct moved *m, uint64_t real,
		    uint64_t len)
{
	uint8_t *to;

	if (len > COPY_MAX)
		return false;
	while (m->image.len % 16)
		tr_buf_put_u8(&m->image, 0);
	to = tr_buf_reserve(&m->image, len);
	if (tr_memory_read(t->tid, real, to, len) < 0)
		return false;
	m->image.len += len;
	return true;
}

/* Exchange the pointer in an argument or at a place of the image. */
static bool move(struct task *t, struct moved *m, struct piece p, bool is_arg,
		 size_t where)
{
	if (p.len > BLOCK_MAX)
		return false;
	if (p.is_bulk) {
		/* Where in its page a buffer lies can matter to devices. */
		m->bulk += (p.real - m->bulk) % PAGE;
		p.at = m->bulk;
		m->bulk += p.len;
	} else {
		if (!copy_in(t, m, p.real, p.len))
			return false;
		p.at = m->image.len - p.len;
	}
	TR_GROW(m->p, m->n, m->cap);
	TR_GROW(m->fix, m->nfix, m->fix_cap);
	m->fix[m->nfix++] = (struct fixup){is_arg, where, m->n};
	m->p[m->n++] = p;
	return true;
}

static bool move_iovec(struct task *t, struct moved *m, uint64_t iov,
		       uint64_t n, bool is_arg, size_t where)
{
	size_t at;

	if (n == 0)
		return true;
	if (n > IOV_MAX ||
	    !move(t, m, (struct piece){.real = iov,
				       .len = n * sizeof(struct iovec)},
		  is_arg, where))
		return false;
	at = m->image.len - n * sizeof(struct iovec);
	for (uint64_t i = 0; i < n; i++, at += sizeof(struct iovec)) {
		struct piece p = {.real = get64(m, at), .len = get64(m, at + 8),
				  .is_bulk = true};

		if (p.len && (p.len > BLOCK_MAX ||
			      !is_writable(t, p.real, p.len) ||
			      !move(t, m, p, false, at)))
			return false;
	}
	return true;
}

/* What a struct msghdr in the image points to. */
static bool move_message(struct task *t, struct moved *m, size_t at)
{
	struct piece name = {.real = get64(m, at + MSG_NAME),
			     .len = (uint32_t)get64(m, at + MSG_NAMELEN)};
	struct piece control = {.real = get64(m, at + MSG_CONTROL),
				.len = get64(m, at + MSG_CONTROLLEN)};

	if (name.len > NAME_MAX_LEN)
		name.len = NAME_MAX_LEN;
	if (name.real && name.len &&
	    (!is_writable(t, name.real, name.len) ||
	     !move(t, m, name, false, at + MSG_NAME)))
		return false;
	if (control.real && control.len &&
	    (!is_writable(t, control.real, control.len) ||
	     !move(t, m, control, false, at + MSG_CONTROL)))
		return false;
	return move_iovec(t, m, get64(m, at + MSG_IOV),
			  get64(m, at + MSG_IOVLEN), false, at + MSG_IOV);
}

/* An array of n structures that begin with a struct msghdr. */
static bool move_messages(struct task *t, struct moved *m, unsigned arg,
			  uint64_t n, size_t size)
{
	struct piece p = {.real = t->fl.call.args[arg], .len = n * size,
			  .is_partial = true};
	size_t at;

	if (!is_writable(t, p.real, p.len) || !move(t, m, p, true, arg))
		return false;
	at = m->image.len - p.len;
	for (uint64_t i = 0; i < n; i++)
		if (!move_message(t, m, at + i * size))
			return false;
	return true;
}

static bool move_buffer(struct task *t, struct moved *m,
			const struct tr_range *rg)
{
	const struct tr_sys_arg *a = &t->fl.sys->arg[rg->arg];
	struct piece p = {
		.real = rg->addr, .len = rg->len,
		.is_bulk = a->type == TR_ARG_BUF &&
			   a->size.kind == TR_SIZE_RESULT,
		.is_partial = a->struct_name &&
			      strcmp(a->struct_name, "pollfd") == 0,
	};

	return rg->addr == t->fl.call.args[rg->arg] &&
	       is_writable(t, p.real, p.len) && move(t, m, p, true, rg->arg);
}

/* Arguments that point to pointers. */
static bool is_nested(const struct task *t, unsigned arg)
{
	return t->fl.sys->arg[arg].type == TR_ARG_IOVEC ||
	       t->fl.sys->arg[arg].type == TR_ARG_MSG ||
	       (t->fl.call.nr == SYS_recvmmsg && arg == 1);
}

static bool move_nested(struct task *t, struct moved *m, unsigned arg)
{
	const uint64_t *a = t->fl.call.args;
	uint32_t n;

	if (t->fl.call.nr == SYS_recvmmsg) {
		n = (uint32_t)a[2];
		return move_messages(t, m, arg, n < 1024 ? n : 1024, MMSG_SIZE);
	}
	if (t->fl.sys->arg[arg].type == TR_ARG_MSG)
		return move_messages(t, m, arg, 1, MSG_SIZE);
	return move_iovec(t, m, a[arg], a[t->fl.sys->arg[arg].size.arg], true,
			  arg);
}

/* Calls whose memory is more than a place for results: words that other
 * tasks use at the same time, structures of drivers, pages that are given
 * away. */
static bool is_movable(uint64_t nr)
{
	return nr != SYS_futex && nr != SYS_ioctl && nr != SYS_fcntl &&
	       nr != SYS_vmsplice && nr != SYS_sendmmsg;
}

static bool plan(struct task *t, struct moved *m,
		 const struct tr_ranges *written)
{
	bool done[6] = {false};

	if (!is_movable(t->fl.call.nr))
		return false;
	for (size_t i = 0; i < written->n; i++) {
		unsigned arg = written->r[i].arg;

		if (!is_nested(t, arg)) {
			if (!move_buffer(t, m, &written->r[i]))
				return false;
		} else if (!done[arg] && !move_nested(t, m, arg)) {
			return false;
		}
		done[arg] = true;
	}
	return true;
}

/* Where it goes. */

void rec_scratch_leave(struct task *t)
{
	struct aspace *as = t->as;

	for (size_t i = 0; i < as->nblocks; i++)
		if (as->blocks[i].owner == t)
			as->blocks[i].owner = NULL;
}

void rec_scratch_copy(struct aspace *to, const struct aspace *from)
{
	to->blocks = tr_memdup(from->blocks,
			       from->nblocks * sizeof *from->blocks);
	to->nblocks = to->blocks_cap = from->nblocks;
	for (size_t i = 0; i < to->nblocks; i++)
		to->blocks[i].owner = NULL;
}

/* Map a new block; the task is at its call's entry. */
static struct block *map_block(struct task *t, uint64_t need)
{
	struct aspace *as = t->as;
	const struct block *last = as->nblocks ? &as->blocks[as->nblocks - 1]
					       : NULL;
	struct block b = {.start = last ? last->end : TR_SCRATCH_BASE};
	struct tr_error ignored;
	uint64_t size = BLOCK_MIN;
	int64_t result;

	while (size < need)
		size *= 2;
	b.end = b.start + size;
	/* Its own filter would have a say in the call that maps. */
	if (t->filtered || rec_ignores_trap(t) || b.end > TR_SCRATCH_END ||
	    tr_remote_call_at_entry(t->tid, &result, SYS_mmap, b.start, size,
				    PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS |
				    MAP_FIXED_NOREPLACE | MAP_NORESERVE,
				    (uint64_t)-1, 0, &ignored) < 0 ||
	    result != (int64_t)b.start)
		return NULL;
	TR_GROW(as->blocks, as->nblocks, as->blocks_cap);
	as->blocks[as->nblocks] = b;
	return &as->blocks[as->nblocks++];
}

/* The task's block, exchanged for a larger one when that is needed. */
static bool get_block(struct task *t, uint64_t need, uint64_t *start)
{
	struct aspace *as = t->as;
	struct block *b = NULL;

	for (size_t i = 0; i < as->nblocks; i++) {
		struct block *c = &as->blocks[i];

		if ((c->owner && c->owner != t) || c->end - c->start < need)
			continue;
		if (c->owner == t || !b || c->end - c->start < b->end - b->start)
			b = c;
		if (c->owner == t)
			break;
	}
	if (!b)
		b = map_block(t, need);
	if (!b)
		return false;
	rec_scratch_leave(t);
	b->owner = t;
	*start = b->start;
	return true;
}

/* Offsets become addresses; pointers to the pieces are set. */
static void locate(struct moved *m, uint64_t start)
{
	uint64_t bulk = (start + m->image.len + PAGE - 1) / PAGE * PAGE;

	m->start = start;
	for (size_t i = 0; i < m->n; i++)
		m->p[i].at += m->p[i].is_bulk ? bulk : start;
	for (size_t i = 0; i < m->nfix; i++) {
		const struct fixup *f = &m->fix[i];

		if (f->is_arg)
			m->args[f->where] = m->p[f->piece].at;
		else
			memcpy(m->image.data + f->where, &m->p[f->piece].at, 8);
	}
}

static bool put(struct task *t, struct moved *m)
{
	struct tr_regs regs = t->fl.entry;
	uint64_t need = (m->image.len + PAGE - 1) / PAGE * PAGE + m->bulk;
	uint64_t start;

	if (need > BLOCK_MAX || !get_block(t, need, &start))
		return false;
	memcpy(m->args, t->fl.call.args, sizeof m->args);
	locate(m, start);
	tr_regs_set_args(&regs, m->args);
	return tr_memory_write(t->tid, start, m->image.data,
			       m->image.len) == 0 &&
	       tr_tracee_set_regs(t->tid, &regs) == 0;
}

/* Does the call read a file or a disk, which ends by itself? */
static bool is_steady(const struct task *t)
{
	struct stat st;
	char path[64];

	switch (t->fl.call.nr) {
	case SYS_read: case SYS_readv: case SYS_pread64: case SYS_preadv:
	case SYS_preadv2:
		snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)t->tid,
			 (int)t->fl.call.args[0]);
		return stat(path, &st) == 0 &&
		       (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
	default:
		return false;
	}
}

/* Waiting for tracees, which the recorder may have to answer. */
static bool is_tracer(const struct recorder *r, const struct task *t)
{
	if (!rec_is_wait(t))
		return false;
	for (const struct task *o = r->tasks; o; o = o->next)
		if (o->vt && o->vt->tracer->pid == t->pid)
			return true;
	return false;
}

void rec_scratch_begin(const struct recorder *r, struct task *t)
{
	struct inflight *fl = &t->fl;
	struct tr_ranges written = {0};
	struct moved *m;

	if (fl->unknown || !fl->sys) {
		fl->exposed = true;
		return;
	}
	if (t->as->domain->ntasks == 1 || !tr_sys_may_block(fl->call.nr) ||
	    !tr_call_may_write(&fl->call, &written) || !written.n) {
		tr_ranges_release(&written);
		return;
	}
	m = tr_alloc(sizeof *m);
	fl->steady = is_steady(t);
	if (!fl->steady && !is_tracer(r, t) && plan(t, m, &written) && put(t, m)) {
		fl->moved = m;
	} else {
		fl->exposed = true;
		rec_scratch_release(m);
	}
	tr_ranges_release(&written);
}

bool rec_scratch_again(struct task *t)
{
	struct tr_regs regs;

	if (!t->fl.moved)
		return true;
	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return false;
	/* The kernel has kept the pointers itself (restart_syscall(2)). */
	if (regs.orig_rax != t->fl.call.nr)
		return true;
	tr_regs_set_args(&regs, t->fl.moved->args);
	return tr_tracee_set_regs(t->tid, &regs) == 0;
}

void rec_scratch_args(const struct task *t, struct tr_regs *regs)
{
	tr_regs_set_args(regs, t->fl.call.args);
}

/* What the kernel has written. */

static bool write_real(struct task *t, uint64_t addr, const void *data,
		       uint64_t n)
{
	struct iovec local = {(void *)(uintptr_t)data, n};
	struct iovec remote = {(void *)(uintptr_t)addr, n};

	if (process_vm_writev(t->tid, &local, 1, &remote, 1, 0) == (ssize_t)n)
		return true;
	/* A stack that has yet to grow; not what was protected meanwhile. */
	rec_writable_forget(t->as);
	return is_writable(t, addr, n) &&
	       tr_memory_write(t->tid, addr, data, n) == 0;
}

/* Runs of bytes that are not what was put there. */
static bool write_changes(struct task *t, uint64_t addr, const uint8_t *now,
			  const uint8_t *before, uint64_t n)
{
	for (uint64_t i = 0; i < n;) {
		uint64_t start = i;

		while (i < n && now[i] != before[i])
			i++;
		if (i == start)
			i++;
		else if (!write_real(t, addr + start, now + start, i - start))
			return false;
	}
	return true;
}

static bool copy_back(struct task *t, const struct moved *m,
		      const struct piece *p, uint64_t offset, uint64_t n)
{
	TR_AUTOFREE uint8_t *now = NULL;

	if (n > p->len - offset)
		n = p->len - offset;
	now = tr_alloc(n);
	if (tr_memory_read(t->tid, p->at + offset, now, n) < 0)
		return true; /* SIGKILL took it */
	if (!p->is_bulk && (p->is_partial || t->fl.call.result < 0))
		return write_changes(t, p->real + offset, now,
				     m->image.data + (p->at + offset - m->start),
				     n);
	return write_real(t, p->real + offset, now, n);
}

bool rec_scratch_finish(struct task *t)
{
	const struct moved *m = t->fl.moved;
	struct tr_call call = t->fl.call;
	struct tr_ranges written = {0};
	bool ok = true;

	if (!m || t->fl.answered)
		return true;
	memcpy(call.args, m->args, sizeof call.args);
	tr_call_exit(&call, &written);
	for (size_t i = 0; i < written.n && ok; i++) {
		const struct tr_range *rg = &written.r[i];

		for (size_t k = 0; k < m->n; k++) {
			const struct piece *p = &m->p[k];

			if (rg->addr < p->at || rg->addr - p->at >= p->len)
				continue;
			ok = copy_back(t, m, p, rg->addr - p->at, rg->len);
			break;
		}
	}
	tr_ranges_release(&written);
	return ok;
}
