/* Syscall instructions and their patches. */
#include "libtrace/tracee/calls.h"

#include <string.h>
#include <sys/mman.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/format/home.h"
#include "libtrace/tracee/memory.h"

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
			c->stub[i].at = 0;
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

/* What was changed for a site: where, how far, and what was there. */
struct place {
	uint64_t addr;
	uint8_t n;
	const uint8_t *was;
};
#define PLACES_MAX 3

static unsigned places(const struct tr_stub *s, struct place p[PLACES_MAX])
{
	unsigned n = 0;

	if (!tr_stub_lead(s))
		p[n++] = (struct place){s->at, s->what.length, s->insn};
	if (s->way.via)
		p[n++] = (struct place){s->way.via, TR_JUMP, s->via};
	p[n++] = (struct place){s->way.hole, TR_SLOT_JUMP, s->hole};
	return n;
}

static bool unpatch(pid_t tid, const struct tr_stub *s)
{
	struct place p[PLACES_MAX];
	unsigned n = places(s, p);

	for (unsigned i = 0; i < n; i++)
		if (tr_memory_write(tid, p[i].addr, p[i].was, p[i].n) < 0)
			return false;
	return true;
}

void tr_calls_unpatch(pid_t tid, struct tr_calls *c, uint64_t start,
		      uint64_t end)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->stub[i].at && c->stub[i].at >= start &&
		    c->stub[i].at < end && !unpatch(tid, &c->stub[i]))
			return; /* SIGKILL took it */
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

void tr_room_cache_release(struct tr_room_cache *rc)
{
	for (size_t i = 0; i < rc->nfiles; i++)
		tr_padding_close(rc->file[i].padding);
	free(rc->file);
	free(rc->p);
	*rc = (struct tr_room_cache){0};
}

static struct tr_padding *padding_of(struct tr_room_cache *rc, uint32_t file)
{
	struct tr_room_file *f;

	for (size_t i = 0; i < rc->nfiles; i++)
		if (rc->file[i].file == file)
			return rc->file[i].padding;
	TR_GROW(rc->file, rc->nfiles, rc->files_cap);
	f = &rc->file[rc->nfiles++];
	*f = (struct tr_room_file){.file = file};
	TR_AUTOCLOSE int fd = tr_stored_open(rc->dirfd, file);
	if (fd >= 0)
		f->padding = tr_padding_open(fd);
	return f->padding;
}

void tr_room_cache_add(struct tr_room_cache *rc, uint32_t file,
		       uint64_t offset, const struct tr_room *room)
{
	TR_GROW(rc->p, rc->n, rc->cap);
	rc->p[rc->n++] = (struct tr_room_near){file, offset, *room};
}

static const struct tr_room *room_near(struct tr_room_cache *rc,
				       uint32_t file, uint64_t offset)
{
	struct tr_padding *padding;
	struct tr_room room = {0};

	for (size_t i = 0; i < rc->n; i++)
		if (rc->p[i].offset == offset && rc->p[i].file == file)
			return &rc->p[i].room;
	padding = padding_of(rc, file);
	if (padding)
		tr_padding_near(padding, offset, REACH_BACK, &room);
	tr_room_cache_add(rc, file, offset, &room);
	return &rc->p[rc->n - 1].room;
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

/* Is none of the bytes those of a jump of another site? */
static bool is_free(const struct tr_calls *c, uint64_t addr, uint64_t n)
{
	struct place p[PLACES_MAX];

	for (size_t i = 0; i < c->n; i++) {
		unsigned np = c->stub[i].at ? places(&c->stub[i], p) : 0;

		for (unsigned k = 0; k < np; k++)
			if (p[k].addr < addr + n && addr < p[k].addr + p[k].n)
				return false;
	}
	return true;
}

/* Looking for a way from a site. */
struct search {
	const struct tr_calls *c;
	const struct tr_known *known;
	const struct tr_text *text;
	const struct tr_room *room;
	uint64_t at;
	enum tr_insn what;
	bool steady;
};

/* The address of n free bytes at a file offset, or 0. */
static uint64_t take(const struct search *s, uint64_t offset, uint64_t n)
{
	uint64_t addr = s->text->start + (offset - s->text->offset);

	if (offset < s->text->offset || addr + n > s->text->end ||
	    !is_free(s->c, addr, n))
		return 0;
	return addr;
}

static bool is_in_reach(uint64_t at, uint64_t to)
{
	uint64_t after = at + TR_SHORT_JUMP;

	return to + REACH_BACK >= after && to <= after + REACH_AHEAD;
}

/* The address of n bytes of padding that a short jump reaches, or 0. */
static uint64_t take_gap(const struct search *s, uint64_t n)
{
	/* From behind: what is ahead of a site is in reach of fewer of those
	 * that come next in a loop or function. */
	for (size_t i = s->room->n; i-- > 0;) {
		const struct tr_gap *g = &s->room->gap[i];

		for (uint64_t o = g->start; o + n <= g->end; o += n) {
			uint64_t addr = take(s, o, n);

			/* Not where it would be taken for a lead. */
			if (addr && is_in_reach(s->at, addr) &&
			    (addr > s->at || s->at - addr > TR_LEAD_MAX))
				return addr;
		}
	}
	return 0;
}

/*
 * Room for a last jump behind the segment's end, or 0: behind those of all
 * sites known in the file, be they patched here or not, so that a process that
 * comes to patch them all can.
 */
static uint64_t take_tail(const struct search *s)
{
	const struct tr_gap *tail = &s->room->tail;
	uint64_t next = tail->start, addr;

	for (size_t i = 0; i < s->known->n; i++) {
		const struct tr_known_site *k = &s->known->site[i];

		if (k->file == s->text->file && k->stub.way.hole >= next &&
		    k->stub.way.hole < tail->end)
			next = k->stub.way.hole + TR_SLOT_JUMP;
	}
	for (; next + TR_SLOT_JUMP <= tail->end; next += TR_SLOT_JUMP) {
		addr = take(s, next, TR_SLOT_JUMP);
		if (addr)
			return addr;
	}
	return 0;
}

/* Who comes to an XSAVEC in another way must be led to the stub, too: its
 * breakpoint will be gone. */
static bool may_lead(enum tr_insn what)
{
	return what != TR_INSN_XSAVEC;
}

static struct tr_way find_way(const struct search *s)
{
	uint64_t hole = take_tail(s), via = 0;

	if (may_lead(s->what) && s->room->lead &&
	    (s->room->lead_is_one || s->steady) &&
	    is_free(s->c, s->at - s->room->lead, s->room->lead)) {
		hole = hole ? hole : take_gap(s, TR_SLOT_JUMP);
		return (struct tr_way){s->at - s->room->lead, hole};
	}
	if (hole)
		via = take_gap(s, TR_JUMP);
	if (via)
		return (struct tr_way){via, hole};
	return (struct tr_way){0, take_gap(s, TR_SLOT_JUMP)};
}

bool tr_calls_way(struct tr_calls *c, struct tr_room_cache *rc,
		  const struct tr_known *known, uint64_t at, enum tr_insn what,
		  bool steady, struct tr_way *way)
{
	const struct tr_text *t = text_of(c, at);
	struct search s = {c, known, t, NULL, at, what, steady};

	if (!t || c->n + 1 >= TR_STUBS_MAX || is_known(c, at))
		return false;
	s.room = room_near(rc, t->file, at - t->start + t->offset);
	*way = find_way(&s);
	if (!way->hole) {
		TR_GROW(c->refused, c->nrefused, c->refused_cap);
		c->refused[c->nrefused++] = at;
	}
	return way->hole;
}

static bool is_within(const struct tr_text *t, uint64_t addr, uint64_t n)
{
	return addr >= t->start && addr < t->end && n <= t->end - addr;
}

/* Can its jumps be where they should? */
static bool is_passable(const struct tr_calls *c, const struct tr_stub *s)
{
	const struct tr_text *t = text_of(c, s->at);
	const struct tr_way *w = &s->way;
	uint64_t lead = tr_stub_lead(s);
	uint8_t unused[TR_JUMP];

	if (!t || !is_within(t, w->hole, TR_SLOT_JUMP) ||
	    !is_free(c, w->hole, TR_SLOT_JUMP) ||
	    (lead && !may_lead(s->what.insn)) ||
	    s->what.length < TR_SHORT_JUMP || s->what.length > TR_SITE_MAX)
		return false;
	if (!w->via)
		return is_in_reach(s->at, w->hole);
	return is_within(t, w->via, TR_JUMP) &&
	       is_free(c, w->via, lead ? lead : TR_JUMP) &&
	       tr_jump_encode(unused, w->via, w->hole) &&
	       (lead || is_in_reach(s->at, w->via));
}

/* What is written for one site. */
struct planting {
	uint8_t code[TR_LONG_STUB_SIZE], slot[8];
	uint8_t site[TR_SHORT_JUMP], via[TR_JUMP], hole[TR_SLOT_JUMP];
};
#define PIECES_MAX 5

static size_t make_jumps(const struct tr_stub *s, uint64_t slot,
			 struct planting *p, struct tr_piece *piece)
{
	const struct tr_way *w = &s->way;
	uint64_t first = w->via ? w->via : w->hole;
	size_t n = 0;

	memcpy(p->hole, "\xff\x24\x25", 3);
	tr_put_le32(p->hole + 3, (uint32_t)slot);
	piece[n++] = (struct tr_piece){w->hole, p->hole, TR_SLOT_JUMP};
	if (w->via) {
		tr_jump_encode(p->via, w->via, w->hole);
		piece[n++] = (struct tr_piece){w->via, p->via, TR_JUMP};
	}
	if (!tr_stub_lead(s)) {
		p->site[0] = 0xeb;
		p->site[1] = (uint8_t)(first - (s->at + TR_SHORT_JUMP));
		piece[n++] = (struct tr_piece){s->at, p->site, TR_SHORT_JUMP};
	}
	return n;
}

/* Give the site its stub; the number of pieces to write, 0 when it is left as
 * it is. */
static size_t prepare(struct tr_calls *c, struct tr_patches *ps,
		      const struct tr_stub *s, struct planting *p,
		      struct tr_piece *piece)
{
	uint64_t addr = TR_INJECT_STUBS + c->n * TR_STUB_SIZE, entry;
	uint64_t slot = TR_INJECT_SLOTS + c->n * sizeof p->slot;
	size_t n = tr_stub_size(s) / TR_STUB_SIZE;

	if (c->n + n > TR_STUBS_MAX || is_known(c, s->at) ||
	    !is_passable(c, s) || !tr_stub_make(p->code, addr, s, &entry))
		return 0;
	tr_put_le64(p->slot, entry);
	/* The jump takes the place of the breakpoint, too. */
	if (s->what.insn == TR_INSN_XSAVEC)
		tr_patches_drop(ps, s->at, s->at + 1);
	else if (!tr_stub_lead(s))
		tr_patches_jump(ps, s->at);
	/* A stub may have the room of several. */
	for (size_t i = 0; i < n; i++) {
		TR_GROW(c->stub, c->n, c->cap);
		c->stub[c->n++] = i ? (struct tr_stub){0} : *s;
	}
	piece[0] = (struct tr_piece){addr, p->code, n * TR_STUB_SIZE};
	piece[1] = (struct tr_piece){slot, p->slot, sizeof p->slot};
	return 2 + make_jumps(s, slot, p, piece + 2);
}

static bool save(pid_t tid, struct tr_patches *ps, struct tr_stub *s)
{
	uint64_t lead = tr_stub_lead(s);

	if (s->what.length > sizeof s->insn ||
	    tr_memory_read(tid, s->at, s->insn, s->what.length) < 0 ||
	    tr_memory_read(tid, s->way.hole, s->hole, sizeof s->hole) < 0 ||
	    (s->way.via && tr_memory_read(tid, s->way.via, s->via,
					  lead ? lead : TR_JUMP) < 0))
		return false;
	tr_patches_show(ps, s->at, s->insn, s->what.length);
	return true;
}

bool tr_calls_patch(pid_t tid, struct tr_calls *c, struct tr_patches *ps,
		    uint64_t at, struct tr_patchable what, struct tr_way way)
{
	struct tr_stub s = {.at = at, .way = way, .what = what};
	struct tr_piece piece[PIECES_MAX];
	struct planting p;
	size_t n;

	if (!save(tid, ps, &s))
		return false;
	n = prepare(c, ps, &s, &p, piece);
	return n && tr_memory_write_pieces(tid, piece, n) == 0;
}

static struct tr_stub moved(const struct tr_stub *s, uint64_t by)
{
	struct tr_stub to = *s;

	to.at += by;
	to.way.hole += by;
	if (to.way.via)
		to.way.via += by;
	return to;
}

static const struct tr_stub *stub_at(const struct tr_calls *c, uint64_t at)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->stub[i].at == at)
			return &c->stub[i];
	return NULL;
}

void tr_known_learn_of(struct tr_known *k, const struct tr_calls *c, int dirfd,
		       const struct tr_stub *stub)
{
	const struct tr_text *t = text_of(c, stub->at);

	if (!t)
		return;
	TR_AUTOCLOSE int fd = tr_stored_open(dirfd, t->file);
	tr_known_read(k, fd, t->file, moved(stub, t->offset - t->start));
}

void tr_known_learn(struct tr_known *k, const struct tr_calls *c, uint64_t at)
{
	const struct tr_text *t = text_of(c, at);
	const struct tr_stub *stub = stub_at(c, at);
	struct tr_stub s;

	if (!t || !stub)
		return;
	s = moved(stub, t->offset - t->start);
	tr_known_add(k, t->file, &s);
}

/* Is the known site in the mapping? */
static bool is_in(const struct tr_known_site *s, const struct tr_map *m)
{
	return s->file == m->file && s->stub.at >= m->offset &&
	       s->stub.at - m->offset < m->end - m->start;
}

/* Give the known sites their stubs, and have what is to be written for them. */
static size_t prepare_known(struct tr_calls *c, struct tr_patches *ps,
			    const struct tr_known *k, const struct tr_map *m,
			    struct planting *p, struct tr_piece *piece,
			    uint64_t *changed)
{
	size_t n = 0, used = 0;

	for (size_t i = 0; i < k->n; i++) {
		struct tr_stub stub;
		size_t more;

		if (!is_in(&k->site[i], m))
			continue;
		/* What was just mapped is what is in the file. */
		stub = moved(&k->site[i].stub, m->start - m->offset);
		more = prepare(c, ps, &stub, &p[used], piece + n);
		used += more > 0;
		n += more;
	}
	*changed += used;
	return n;
}

int tr_calls_patch_mapping(pid_t tid, struct tr_calls *c,
			   struct tr_patches *ps, struct tr_site_cache *sites,
			   const struct tr_known *k, const struct tr_map *m,
			   uint64_t *changed, struct tr_error *err)
{
	static const struct tr_known none;
	TR_AUTOFREE struct tr_piece *piece = NULL;
	TR_AUTOFREE struct planting *p = NULL;
	size_t n, breakpoints, known = 0;

	tr_calls_map(c, m);
	breakpoints = tr_patches_list(ps, m, sites);
	if (!k || ps->translated)
		k = &none;
	for (size_t i = 0; i < k->n; i++)
		known += is_in(&k->site[i], m);
	if (!known && !breakpoints)
		return 0;
	p = tr_alloc_buffer(known * sizeof *p);
	piece = tr_alloc_buffer((known * PIECES_MAX + breakpoints) *
				sizeof *piece);
	n = prepare_known(c, ps, k, m, p, piece, changed);
	n += tr_patches_pieces(ps, m, piece + n);
	if (tr_memory_write_pieces(tid, piece, n) < 0)
		return tr_fail_errno(err, "task %d: patching", (int)tid);
	return 0;
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
	struct place p[PLACES_MAX];

	for (size_t i = 0; i < c->n; i++) {
		unsigned np = c->stub[i].at ? places(&c->stub[i], p) : 0;

		for (unsigned k = 0; k < np; k++)
			put_back(p[k].addr, p[k].was, p[k].n, addr, buf, n);
	}
}

bool tr_calls_lead_in(const struct tr_calls *c, uint64_t ip)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct tr_stub *s = &c->stub[i];

		if (s->at && (s->at == ip || s->way.hole == ip ||
			      (s->way.via && s->way.via == ip)))
			return true;
	}
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
	else if (s->what.insn == TR_INSN_XSAVEC && from == TR_STUB_LEAD)
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
	    i >= c->n || !c->stub[i].at || !tr_stub_can_do(c->stub[i].what.insn))
		return false;
	regs->rip = c->stub[i].at + 1;
	return true;
}
