/* Syscall instructions and their patches. */
#include "libtrace/tracee/calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/state/code.h"
#include "libtrace/tracee/memory.h"

/* jmp *abs32 */
#define HOLE_SIZE 7
#define SHORT_JUMP 2
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
		if (c->stub[i].at >= start && c->stub[i].at < end)
			c->stub[i].at = c->stub[i].hole = 0;
	for (size_t i = 0; i < c->nrefused; i++)
		if (c->refused[i] >= start && c->refused[i] < end)
			c->refused[i] = 0;
}

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

		if (s->at >= start && s->at < end &&
		    (tr_memory_write(tid, s->at, s->insn, s->what.length) < 0 ||
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

static const struct tr_text *text_of(const struct tr_calls *c, uint64_t at)
{
	for (size_t i = 0; i < c->ntext; i++)
		if (at >= c->text[i].start &&
		    at + TR_SITE_MAX < c->text[i].end)
			return &c->text[i];
	return NULL;
}

static bool is_known(const struct tr_calls *c, uint64_t at)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->stub[i].at == at)
			return true;
	for (size_t i = 0; i < c->nrefused; i++)
		if (c->refused[i] == at)
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
			  const struct tr_gaps *gaps, uint64_t at)
{
	uint64_t after = at + SHORT_JUMP;

	/* From behind: what is ahead of a site is in reach of fewer of those
	 * that come next in a loop or function. */
	for (size_t i = gaps->n; i-- > 0;) {
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
		       struct tr_padding_cache *pc, uint64_t at)
{
	const struct tr_text *t = text_of(c, at);
	uint64_t hole = 0;

	if (!t || c->n >= TR_STUBS_MAX || is_known(c, at))
		return 0;
	hole = free_hole(tid, t, gaps_near(pc, t->file,
					   at - t->start + t->offset), at);
	if (!hole) {
		TR_GROW(c->refused, c->nrefused, c->refused_cap);
		c->refused[c->nrefused++] = at;
	}
	return hole;
}

/* The stubs of abi.h. */
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

static uint8_t *put_code(uint8_t *p, const char *code, size_t n, uint64_t imm)
{
	memcpy(p, code, n);
	tr_put_le32(p + n, (uint32_t)imm);
	return p + n + 4;
}

/* For a stub at addr that p is in, or its jump to the injected code. */
static uint8_t *put_jump(uint8_t *p, uint64_t addr, const uint8_t *label)
{
	return put_code(p, "\xe9", 1, tr_calls_address(label) - (addr + 5));
}

static void make_xsave_stub(uint8_t stub[TR_LONG_STUB_SIZE], uint64_t addr,
			    const struct tr_stub *s, int32_t displacement)
{
	uint8_t *p = stub + s->what.length;

	memcpy(stub, s->insn, s->what.length);
	p = put_code(p, "\x48\x89\x24\x25", 4, TR_CONTROL_AT(rsp));
	p = put_code(p, "\xbc", 1, TR_INJECT_STACK_TOP); /* to esp */
	*p++ = 0x9c;                                     /* pushfq */
	*p++ = 0x56;                                     /* push %rsi */
	p = put_code(p, "\xbe", 1, addr + TR_LONG_STUB_TAIL); /* to esi */
	put_jump(p, addr + (uint64_t)(p - stub), tr_calls_settle);
	tr_put_le64(stub + TR_LONG_STUB_TAIL, (uint64_t)(int64_t)displacement);
}

static void make_insn_stub(uint8_t stub[TR_LONG_STUB_SIZE], uint64_t addr,
			   const struct tr_stub *s)
{
	uint8_t *p = stub;

	p = put_code(p, "\x48\x89\x24\x25", 4, TR_CONTROL_AT(rsp));
	p = put_code(p, "\xbc", 1, TR_INJECT_STACK_TOP); /* to esp */
	p = put_code(p, "\x48\x89\x34\x25", 4, TR_CONTROL_AT(rsi));
	p = put_code(p, "\xbe", 1, addr + TR_LONG_STUB_TAIL); /* to esi */
	put_jump(p, addr + (uint64_t)(p - stub), tr_calls_insn);
	tr_put_le64(stub + TR_LONG_STUB_TAIL, s->what.insn);
}

/* False when the instruction is none that can be patched. */
static bool make_long_stub(uint8_t stub[TR_LONG_STUB_SIZE], uint64_t addr,
			   const struct tr_stub *s)
{
	int32_t displacement;
	struct tr_site site;

	memset(stub, 0xcc, TR_LONG_STUB_SIZE);
	tr_put_le64(stub + TR_LONG_STUB_TAIL + 8, s->at + s->what.length);
	if (s->what.insn == TR_INSN_XSAVEC) {
		if (!tr_xsavec_decode(s->insn, s->what.length, &displacement))
			return false;
		make_xsave_stub(stub, addr, s, displacement);
		return true;
	}
	make_insn_stub(stub, addr, s);
	return tr_calls_can_do(s->what.insn) &&
	       tr_insn_decode(s->insn, s->what.length, &site) == s->what.insn;
}

bool tr_calls_can_do(enum tr_insn insn)
{
	return insn == TR_INSN_CPUID || insn == TR_INSN_RDTSC ||
	       insn == TR_INSN_RDTSCP;
}

static bool is_in_reach(const struct tr_stub *s)
{
	uint64_t after = s->at + SHORT_JUMP;

	return s->hole + REACH_BACK >= after && s->hole <= after + REACH_AHEAD;
}

/* Code from the site to its hole. */
struct around {
	uint64_t start;
	size_t n;
	uint8_t code[REACH_BACK + REACH_AHEAD + SHORT_JUMP + HOLE_SIZE];
};

static bool read_around(pid_t tid, struct tr_stub *s, struct around *a)
{
	uint64_t end = s->at + s->what.length;

	if (!is_in_reach(s) || s->what.length < SHORT_JUMP ||
	    s->what.length > sizeof s->insn)
		return false;
	a->start = s->at < s->hole ? s->at : s->hole;
	if (end < s->hole + HOLE_SIZE)
		end = s->hole + HOLE_SIZE;
	a->n = end - a->start;
	if (tr_memory_read(tid, a->start, a->code, a->n) < 0)
		return false;
	memcpy(s->insn, a->code + (s->at - a->start), s->what.length);
	memcpy(s->padding, a->code + (s->hole - a->start), HOLE_SIZE);
	return true;
}

/* Put the stub in its place, and the jumps that lead to it. */
static bool plant(pid_t tid, struct tr_calls *c, const struct tr_stub *s,
		  struct around *a, const uint8_t *stub, size_t size)
{
	uint64_t addr = TR_INJECT_STUBS + c->n * TR_STUB_SIZE;
	uint64_t slot = TR_INJECT_SLOTS + c->n * 8;
	uint8_t *site = a->code + (s->at - a->start);
	uint8_t *jump = a->code + (s->hole - a->start);
	const struct tr_piece pieces[] = {
		{addr, stub, size}, {slot, &addr, sizeof addr},
		{a->start, a->code, a->n},
	};

	memcpy(jump, "\xff\x24\x25", 3);
	tr_put_le32(jump + 3, (uint32_t)slot);
	site[0] = 0xeb;
	site[1] = (uint8_t)(s->hole - (s->at + SHORT_JUMP));
	if (tr_memory_write_pieces(tid, pieces,
				   sizeof pieces / sizeof *pieces) < 0)
		return false;
	/* A stub may have the room of several. */
	for (size_t i = 0; i < size / TR_STUB_SIZE; i++) {
		TR_GROW(c->stub, c->n, c->cap);
		c->stub[c->n++] = i ? (struct tr_stub){0} : *s;
	}
	return true;
}

bool tr_calls_patch(pid_t tid, struct tr_calls *c, struct tr_patches *ps,
		    uint64_t at, struct tr_patchable what, uint64_t hole)
{
	struct tr_stub s = {.at = at, .hole = hole, .what = what};
	uint64_t addr = TR_INJECT_STUBS + c->n * TR_STUB_SIZE;
	uint8_t stub[TR_LONG_STUB_SIZE];
	size_t size = what.insn ? TR_LONG_STUB_SIZE : TR_STUB_SIZE;
	struct around a;

	if (c->n + 1 >= TR_STUBS_MAX || !read_around(tid, &s, &a))
		return false;
	tr_patches_show(ps, at, s.insn, what.length);
	if (!what.insn)
		make_stub(stub, addr, at + what.length);
	if (what.insn ? !make_long_stub(stub, addr, &s)
		      : memcmp(s.insn, "\x0f\x05", 2) != 0)
		return false;
	/* The jump takes the place of the breakpoint, too. */
	if (what.insn == TR_INSN_XSAVEC)
		tr_patches_drop(ps, at, at + 1);
	else
		tr_patches_jump(ps, at);
	return plant(tid, c, &s, &a, stub, size);
}

void tr_known_release(struct tr_known *k)
{
	free(k->site);
	*k = (struct tr_known){0};
}

void tr_known_learn(struct tr_known *k, const struct tr_calls *c, uint64_t at,
		    struct tr_patchable what, uint64_t hole)
{
	const struct tr_text *t = text_of(c, at);
	struct tr_known_site s = {.what = what};

	if (!t)
		return;
	s.file = t->file;
	s.at = at - t->start + t->offset;
	s.hole = hole - t->start + t->offset;
	for (size_t i = 0; i < k->n; i++)
		if (k->site[i].file == s.file && k->site[i].at == s.at)
			return;
	TR_GROW(k->site, k->n, k->cap);
	k->site[k->n++] = s;
}

static bool patch_known(pid_t tid, struct tr_calls *c, struct tr_patches *ps,
			const struct tr_known_site *s, const struct tr_map *m)
{
	uint64_t at = m->start + (s->at - m->offset);
	uint64_t hole = m->start + (s->hole - m->offset);

	if (s->file != m->file || s->at < m->offset || s->hole < m->offset ||
	    at >= m->end || hole >= m->end || !text_of(c, at) ||
	    is_known(c, at) || !is_free(tid, hole))
		return false;
	return tr_calls_patch(tid, c, ps, at, s->what, hole);
}

uint64_t tr_calls_patch_known(pid_t tid, struct tr_calls *c,
			      struct tr_patches *ps, const struct tr_known *k,
			      const struct tr_map *m)
{
	uint64_t n = 0;

	for (size_t i = 0; i < k->n; i++)
		n += patch_known(tid, c, ps, &k->site[i], m);
	return n;
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

		if (!s->at)
			continue;
		put_back(s->at, s->insn, s->what.length, addr, buf, n);
		put_back(s->hole, s->padding, sizeof s->padding, addr, buf, n);
	}
}

bool tr_calls_lead_in(const struct tr_calls *c, uint64_t ip)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->stub[i].at &&
		    (c->stub[i].at == ip || c->stub[i].hole == ip))
			return true;
	return false;
}

bool tr_calls_come_home(const struct tr_calls *c, struct tr_regs *regs)
{
	uint64_t from = regs->rip - TR_INJECT_STUBS;
	const struct tr_stub *s;

	if (regs->rip < TR_INJECT_STUBS || from / TR_STUB_SIZE >= c->n)
		return false;
	s = &c->stub[from / TR_STUB_SIZE];
	if (!s->at)
		return false;
	from %= TR_STUB_SIZE;
	if (!s->what.insn && from == TR_STUB_TRACED + 2)
		regs->rip = regs->rcx = s->at + s->what.length;
	else if (s->what.insn == TR_INSN_XSAVEC && from == 0)
		regs->rip = s->at;
	else
		return false;
	return true;
}

bool tr_calls_trapped(const struct tr_calls *c, struct tr_regs *regs)
{
	uint64_t from = regs->rip - (TR_INSN_STUB_TRAP + 1) - TR_INJECT_STUBS;
	size_t i = from / TR_STUB_SIZE;

	if (regs->rip < TR_INJECT_STUBS || from % TR_STUB_SIZE ||
	    i >= c->n || !c->stub[i].at || !tr_calls_can_do(c->stub[i].what.insn))
		return false;
	regs->rip = c->stub[i].at + 1;
	return true;
}
