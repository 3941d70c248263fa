/* Syscall instructions and their patches. */
#include "libtrace/tracee/calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/tracee/memory.h"

/* jmp *abs32 */
#define HOLE_SIZE 7
/* From the end of a short jump. */
#define REACH_BACK 128
#define REACH_AHEAD 127

void tr_calls_release(struct tr_calls *c)
{
	free(c->text);
	free(c->stub);
	free(c->refused);
	*c = (struct tr_calls){0};
}

void tr_calls_copy(struct tr_calls *to, const struct tr_calls *from)
{
	*to = (struct tr_calls){
		.text = tr_memdup(from->text, from->ntext * sizeof *from->text),
		.ntext = from->ntext,
		.text_cap = from->ntext,
		.stub = tr_memdup(from->stub, from->n * sizeof *from->stub),
		.n = from->n,
		.cap = from->n,
		.refused = tr_memdup(from->refused, from->nrefused *
						    sizeof *from->refused),
		.nrefused = from->nrefused,
		.refused_cap = from->nrefused,
	};
}

static void forget(struct tr_calls *c, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->stub[i].after > start && c->stub[i].after <= end)
			c->stub[i].after = c->stub[i].hole = 0;
	for (size_t i = 0; i < c->nrefused; i++)
		if (c->refused[i] > start && c->refused[i] <= end)
			c->refused[i] = 0;
}

static const uint8_t syscall_insn[2] = {0x0f, 0x05};

void tr_calls_leave(struct tr_calls *c, uint64_t start, uint64_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->ntext; i++)
		if (c->text[i].end <= start || c->text[i].start >= end)
			c->text[kept++] = c->text[i];
	c->ntext = kept;
}

void tr_calls_unmap(struct tr_calls *c, uint64_t start, uint64_t end)
{
	tr_calls_leave(c, start, end);
	forget(c, start, end);
}

void tr_calls_unpatch(pid_t tid, struct tr_calls *c, uint64_t start,
		      uint64_t end)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct tr_stub *s = &c->stub[i];

		if (s->after > start && s->after <= end &&
		    (tr_memory_write(tid, s->after - 2, syscall_insn,
				     sizeof syscall_insn) < 0 ||
		     tr_memory_write(tid, s->hole, s->padding,
				     sizeof s->padding) < 0))
			return; /* SIGKILL took it */
	}
	tr_calls_unmap(c, start, end);
}

void tr_calls_map(struct tr_calls *c, const struct tr_map *m)
{
	tr_calls_unmap(c, m->start, m->end);
	if (!m->file || !(m->prot & PROT_EXEC) || m->prot & PROT_WRITE ||
	    m->flags & MAP_SHARED)
		return;
	TR_GROW(c->text, c->ntext, c->text_cap);
	c->text[c->ntext++] = (struct tr_text){m->start, m->end, m->offset,
					       m->file};
}

void tr_padding_cache_release(struct tr_padding_cache *pc)
{
	free(pc->p);
	pc->p = NULL;
	pc->n = pc->cap = 0;
}

static const struct tr_gaps *gaps_near(struct tr_padding_cache *pc,
				       uint32_t file, uint64_t offset)
{
	struct tr_padding *p;
	char name[32];

	for (size_t i = 0; i < pc->n; i++)
		if (pc->p[i].offset == offset && pc->p[i].file == file)
			return &pc->p[i].gaps;
	TR_GROW(pc->p, pc->n, pc->cap);
	p = &pc->p[pc->n++];
	*p = (struct tr_padding){.file = file, .offset = offset};
	snprintf(name, sizeof name, "files/%u", file);
	TR_AUTOCLOSE int fd = openat(pc->dirfd, name, O_RDONLY | O_CLOEXEC |
				     O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		tr_padding_near(fd, offset, REACH_BACK, &p->gaps);
	return &p->gaps;
}

static const struct tr_text *text_of(const struct tr_calls *c, uint64_t after)
{
	for (size_t i = 0; i < c->ntext; i++)
		if (after >= c->text[i].start + 2 && after < c->text[i].end)
			return &c->text[i];
	return NULL;
}

static bool is_known(const struct tr_calls *c, uint64_t after)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->stub[i].after == after)
			return true;
	for (size_t i = 0; i < c->nrefused; i++)
		if (c->refused[i] == after)
			return true;
	return false;
}

/* Bytes that are no padding any more hold the jump of another site. */
static bool is_free(pid_t tid, uint64_t addr)
{
	static const uint8_t jump[3] = {0xff, 0x24, 0x25};
	uint8_t b[2 * HOLE_SIZE - 1];

	if (tr_memory_read(tid, addr - (HOLE_SIZE - 1), b, sizeof b) < 0)
		return false;
	for (size_t i = 0; i + sizeof jump <= sizeof b; i++)
		if (memcmp(b + i, jump, sizeof jump) == 0)
			return false;
	return true;
}

static uint64_t free_hole(pid_t tid, const struct tr_text *t,
			  const struct tr_gaps *gaps, uint64_t after)
{
	for (size_t i = 0; i < gaps->n; i++) {
		const struct tr_gap *g = &gaps->gap[i];

		if (g->start < t->offset ||
		    g->end - t->offset > t->end - t->start)
			continue;
		for (uint64_t o = g->start; o + HOLE_SIZE <= g->end;
		     o += HOLE_SIZE) {
			uint64_t hole = t->start + (o - t->offset);

			if (hole + REACH_BACK >= after &&
			    hole <= after + REACH_AHEAD && is_free(tid, hole))
				return hole;
		}
	}
	return 0;
}

uint64_t tr_calls_hole(pid_t tid, struct tr_calls *c,
		       struct tr_padding_cache *pc, uint64_t after)
{
	const struct tr_text *t = text_of(c, after);
	uint64_t hole = 0;

	if (!t || c->n >= TR_STUBS_MAX || is_known(c, after))
		return 0;
	hole = free_hole(tid, t, gaps_near(pc, t->file, after - 2 - t->start +
					   t->offset), after);
	if (!hole) {
		TR_GROW(c->refused, c->nrefused, c->refused_cap);
		c->refused[c->nrefused++] = after;
	}
	return hole;
}

/* The stub of abi.h for the site before `after`. */
static void make_stub(uint8_t stub[TR_STUB_SIZE], uint64_t addr, uint64_t after)
{
	uint64_t enter = tr_calls_address(tr_calls_enter);

	memset(stub, 0xcc, TR_STUB_SIZE);
	stub[0] = 0x48;
	stub[1] = 0xb9;
	tr_put_le64(stub + 2, after);
	stub[10] = 0x41;
	stub[11] = 0xbb;
	tr_put_le32(stub + 12, (uint32_t)(addr + TR_STUB_TRACED));
	stub[16] = 0xe9;
	tr_put_le32(stub + 17, (uint32_t)(enter - (addr + 21)));
	stub[21] = 0x0f;
	stub[22] = 0x05;
}

bool tr_calls_patch(pid_t tid, struct tr_calls *c, uint64_t after, uint64_t hole)
{
	uint64_t addr = TR_INJECT_STUBS + c->n * TR_STUB_SIZE;
	uint64_t slot = TR_INJECT_SLOTS + c->n * 8;
	uint8_t stub[TR_STUB_SIZE], jump[HOLE_SIZE] = {0xff, 0x24, 0x25};
	struct tr_stub s = {.after = after, .hole = hole};
	uint8_t site[2], now[2];

	if (c->n >= TR_STUBS_MAX || hole + REACH_BACK < after ||
	    hole > after + REACH_AHEAD ||
	    tr_memory_read(tid, after - 2, now, sizeof now) < 0 ||
	    tr_memory_read(tid, hole, s.padding, sizeof s.padding) < 0 ||
	    memcmp(now, syscall_insn, sizeof now) != 0)
		return false;
	make_stub(stub, addr, after);
	tr_put_le32(jump + 3, (uint32_t)slot);
	site[0] = 0xeb;
	site[1] = (uint8_t)(hole - after);
	if (tr_memory_write(tid, addr, stub, sizeof stub) < 0 ||
	    tr_memory_write(tid, slot, &addr, sizeof addr) < 0 ||
	    tr_memory_write(tid, hole, jump, sizeof jump) < 0 ||
	    tr_memory_write(tid, after - 2, site, sizeof site) < 0)
		return false;
	TR_GROW(c->stub, c->n, c->cap);
	c->stub[c->n++] = s;
	return true;
}

static void put_back(uint64_t at, const uint8_t *was, size_t len,
		     uint64_t addr, uint8_t *buf, size_t n)
{
	for (size_t i = 0; i < len; i++)
		if (at + i >= addr && at + i - addr < n)
			buf[at + i - addr] = was[i];
}

void tr_calls_show(const struct tr_calls *c, uint64_t addr, void *buf, size_t n)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct tr_stub *s = &c->stub[i];

		if (!s->after)
			continue;
		put_back(s->after - 2, syscall_insn, sizeof syscall_insn, addr,
			 buf, n);
		put_back(s->hole, s->padding, sizeof s->padding, addr, buf, n);
	}
}

bool tr_calls_lead_in(const struct tr_calls *c, uint64_t ip)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->stub[i].after &&
		    (c->stub[i].after - 2 == ip || c->stub[i].hole == ip))
			return true;
	return false;
}

bool tr_calls_come_home(const struct tr_calls *c, struct tr_regs *regs)
{
	uint64_t from = regs->rip - TR_INJECT_STUBS;

	if (regs->rip < TR_INJECT_STUBS || from / TR_STUB_SIZE >= c->n ||
	    from % TR_STUB_SIZE != TR_STUB_TRACED + 2)
		return false;
	regs->rip = regs->rcx = c->stub[from / TR_STUB_SIZE].after;
	return true;
}
