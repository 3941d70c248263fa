/*
 * Several replays of one trace, each in a process of its own, that divide its
 * address spaces among them.
 *
 * A program begins with an image that the trace has whole, so that whatever
 * runs from there on, children made by fork(2) included, needs nothing that
 * other programs did.  All members go through all events in their order; who
 * comes first to an image takes the address space, the others pass over its
 * events.  What another one's program did matters in two ways only.  Which
 * sites in the code are known when a file is mapped depends on the events of
 * all (struct tr_known), so that these are followed.  Memory that two members'
 * programs share and one of them can write is beyond this scheme: the member
 * stops.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "libtrace/base/alloc.h"
#include "libtrace/model/syscalls.h"
#include "libtrace/replay/replayer.h"

struct tr_replay_team {
	size_t bytes, n;
	_Atomic unsigned char taken[]; /* by stream */
};

enum whose { NOBODYS, MINE, OTHERS };

/* A file that is mapped shared, whichever of its states is stored. */
struct file_use {
	uint64_t dev, ino;
	bool by_me, by_others, written;
};

struct rep_member {
	struct tr_replay_team *team;
	int64_t cpu;
	struct other {
		enum whose whose;
		struct tr_calls calls; /* where others' code is mapped */
	} *stream;
	struct file_use *use;
	size_t nuses, use_cap;
};

struct tr_replay_team *tr_replay_team_new(const struct tr_reader *reader,
					  struct tr_error *err)
{
	size_t n = tr_reader_stream_count(reader);
	struct tr_replay_team *team = mmap(NULL, sizeof *team + n,
					   PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (team == MAP_FAILED) {
		tr_fail_errno(err, "memory for %zu streams", n);
		return NULL;
	}
	team->bytes = sizeof *team + n;
	team->n = n;
	return team;
}

void tr_replay_team_free(struct tr_replay_team *team)
{
	if (team)
		munmap(team, team->bytes);
}

/* The member-th core of those this process may use. */
static int64_t core_of(const struct tr_replay *r, unsigned member)
{
	int n = CPU_COUNT(&r->old_cpus), left;

	left = n ? (int)(member % (unsigned)n) : 0;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &r->old_cpus) && left-- == 0)
			return i;
	return -1;
}

void tr_replay_join(struct tr_replay *r, struct tr_replay_team *team,
		    unsigned member)
{
	struct rep_member *m = tr_alloc(sizeof *m);

	m->team = team;
	m->cpu = core_of(r, member);
	m->stream = tr_alloc((team->n + 1) * sizeof *m->stream);
	r->member = m;
}

void rep_member_free(struct rep_member *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->team->n; i++)
		tr_calls_release(&m->stream[i].calls);
	free(m->stream);
	free(m->use);
	free(m);
}

int64_t rep_member_cpu(const struct rep_member *m)
{
	return m->cpu;
}

static enum whose take(struct rep_member *m, uint32_t stream)
{
	unsigned char nobody = 0;

	return atomic_compare_exchange_strong(&m->team->taken[stream], &nobody,
					      1) ? MINE : OTHERS;
}

static struct file_use *use_of(struct tr_replay *r, uint32_t file)
{
	struct rep_member *m = r->member;
	struct file_use want = {0};

	for (size_t i = 0; i < r->backing.n; i++)
		if (r->backing.f[i].file == file)
			want = (struct file_use){.dev = r->backing.f[i].dev,
						 .ino = r->backing.f[i].ino};
	for (size_t i = 0; i < m->nuses; i++)
		if (m->use[i].dev == want.dev && m->use[i].ino == want.ino)
			return &m->use[i];
	TR_GROW(m->use, m->nuses, m->use_cap);
	m->use[m->nuses] = want;
	return &m->use[m->nuses++];
}

/* False when the file is shared by programs of different members. */
static bool use(struct tr_replay *r, uint32_t file, enum whose whose,
		bool written)
{
	struct file_use *u = use_of(r, file);

	u->by_me |= whose == MINE;
	u->by_others |= whose == OTHERS;
	u->written |= written;
	return !(u->by_me && u->by_others && u->written);
}

static bool use_files(struct tr_replay *r, const struct tr_event *ev,
		      enum whose whose)
{
	bool apart = true;

	for (size_t i = 0; i < ev->nmap; i++)
		if (ev->map[i].flags & MAP_SHARED && ev->map[i].file)
			apart &= use(r, ev->map[i].file, whose,
				     ev->map[i].prot & PROT_WRITE);
	if (ev->type == TR_EV_SYSCALL && tr_event_has(ev, TR_F_FILE))
		apart &= use(r, (uint32_t)tr_event_get(ev, TR_F_FILE), whose,
			     true);
	return apart;
}

/* Domains that share memory from here on are both of this member's programs,
 * or neither is. */
static bool joins_apart(const struct tr_replay *r, const struct tr_event *ev)
{
	bool mine = rep_task_find(r, ev->task), other = false;

	if (tr_event_get(ev, TR_F_CODE) != TR_NOTE_DOMAIN_JOINED)
		return true;
	for (const struct rtask *t = r->tasks; t; t = t->next)
		other |= t->as->domain == tr_event_get(ev, TR_F_DOMAIN);
	return mine == other;
}

static void follow_mapping(struct tr_calls *c, const struct tr_event *ev)
{
	const struct tr_sys *sys = tr_sys_lookup(tr_event_get(ev, TR_F_NR));
	int64_t result = (int64_t)tr_event_get(ev, TR_F_RESULT);
	const struct tr_regs *g = &ev->regs;

	if (!sys || sys->class != TR_SYS_MAP || !rep_was_made(ev) ||
	    (result < 0 && result > -4096))
		return;
	switch (tr_event_get(ev, TR_F_NR)) {
	case SYS_munmap:
	case SYS_mremap:
		tr_calls_unmap(c, g->rdi, g->rdi + g->rsi);
		break;
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		if (g->rdx & PROT_WRITE)
			tr_calls_leave(c, g->rdi, g->rdi + g->rsi);
		break;
	default:
		for (size_t i = 0; i < ev->nmap; i++)
			tr_calls_map(c, &ev->map[i]);
	}
}

/* The event changed the site; here the same is only known of it. */
static void learn(struct tr_replay *r, const struct tr_calls *c,
		  const struct tr_event *ev, uint64_t at,
		  struct tr_patchable what)
{
	const struct tr_stub s = {.at = at, .what = what,
				  .way = {.via = tr_event_get(ev, TR_F_VIA),
					  .hole = tr_event_get(ev, TR_F_VALUE)}};

	if (tr_event_has(ev, TR_F_VALUE))
		tr_known_learn_of(&r->known, c, tr_reader_dirfd(r->reader), &s);
}

/* What other members' programs teach of sites in the code: see apply.c. */
static void follow_code(struct tr_replay *r, const struct tr_event *ev)
{
	struct other *of = r->member->stream, *o = &of[ev->stream];
	uint32_t child = (uint32_t)tr_event_get(ev, TR_F_CHILD_STREAM);

	switch (ev->type) {
	case TR_EV_IMAGE:
		for (size_t i = 0; i < ev->nmap; i++)
			tr_calls_map(&o->calls, &ev->map[i]);
		break;
	case TR_EV_CLONE:
		if (child != ev->stream && child < r->member->team->n)
			tr_calls_copy(&of[child].calls, &o->calls);
		break;
	case TR_EV_SYSCALL:
		follow_mapping(&o->calls, ev);
		learn(r, &o->calls, ev, ev->regs.rip - 2, TR_PATCH_CALL);
		break;
	case TR_EV_INSN:
		learn(r, &o->calls, ev, ev->regs.rip, (struct tr_patchable){
		      (enum tr_insn)tr_event_get(ev, TR_F_INSN),
		      (uint8_t)tr_event_get(ev, TR_F_LENGTH)});
		break;
	default:
		break;
	}
}

static void pass_over(struct tr_replay *r, const struct tr_event *ev)
{
	struct rtask *t = rep_task_find(r, ev->task);

	follow_code(r, ev);
	/* It has left an address space of this member's for another one's. */
	if (t && ev->type == TR_EV_IMAGE)
		rep_task_end(r, t);
}

enum rep_part rep_member_part(struct tr_replay *r, const struct tr_event *ev)
{
	struct rep_member *m = r->member;
	uint32_t child = (uint32_t)tr_event_get(ev, TR_F_CHILD_STREAM);
	enum whose *whose;

	if (ev->type == TR_EV_NOTE)
		return joins_apart(r, ev) ? REP_APPLY : REP_LEAVE;
	if (ev->stream == 0)
		return REP_APPLY;
	if (ev->stream >= m->team->n)
		return REP_LEAVE;
	whose = &m->stream[ev->stream].whose;
	if (*whose == NOBODYS)
		*whose = take(m, ev->stream);
	if (!use_files(r, ev, *whose))
		return REP_LEAVE;
	if (ev->type == TR_EV_CLONE && child < m->team->n)
		m->stream[child].whose = *whose;
	if (*whose == MINE)
		return REP_APPLY;
	pass_over(r, ev);
	return REP_PASS;
}
