/* The state of a replayed task. */
#include "libtrace/replay/inspect.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/replay/replayer.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/page_hash.h"
#include "libtrace/tracee/pagemap.h"
#include "libtrace/tracee/tracee.h"

/* A stored file is mapped from the trace: its name ends in "/files/ID". */
static uint32_t stored_file(const char *name)
{
	const char *slash = strrchr(name, '/');

	if (!slash || slash - name < 6 || memcmp(slash - 6, "/files", 6) != 0 ||
	    !isdigit((unsigned char)slash[1]))
		return 0;
	return (uint32_t)strtoul(slash + 1, NULL, 10);
}

/* A file that is mapped shared is one memory for all: see backing.h. */
static uint32_t shared_file(const struct tr_replay *r, const struct tr_vma *v)
{
	struct stat st;

	for (size_t i = 0; i < r->backing.n; i++)
		if (r->backing.f[i].fd >= 0 &&
		    fstat(r->backing.f[i].fd, &st) == 0 && st.st_ino == v->ino)
			return r->backing.f[i].file;
	return 0;
}

/* The replay's heap and stack are memory as any other to the kernel. */
static const char *name_of(const struct rtask *t, const struct tr_regs *regs,
			   const struct tr_vma *v)
{
	uint64_t brk = (t->as->brk + TR_PAGE - 1) & ~(uint64_t)(TR_PAGE - 1);

	if (v->ino)
		return "";
	if (v->start <= regs->rsp && regs->rsp < v->end)
		return "[stack]";
	if (v->end == brk)
		return "[heap]";
	return v->name;
}

static bool is_engine(const struct tr_vma *v)
{
	return tr_is_engine(v->start, v->end);
}

static int visit_mappings(const struct tr_replay *r, const struct rtask *t,
			  const struct tr_regs *regs,
			  const struct tr_state_visitor *visitor,
			  struct tr_error *err)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};

	if (tr_vmas_read(t->tid, &vmas, err) < 0)
		return -1;
	for (size_t i = 0; i < vmas.n; i++) {
		const struct tr_vma *v = &vmas.v[i];
		struct tr_state_mapping m = {
			v->start, v->end, v->prot, v->flags,
			v->ino ? stored_file(v->name) : 0, v->offset,
			name_of(t, regs, v)};

		if (v->ino && !m.file)
			m.file = shared_file(r, v);
		if (!is_engine(v))
			visitor->mapping(visitor->ctx, &m);
	}
	return 0;
}

/* Not the engine's, not the kernel's ([vdso] and its like), not code. */
static bool has_pages(const struct tr_vma *v)
{
	return !is_engine(v) && strncmp(v->name, "[v", 2) != 0 &&
	       !((v->prot & PROT_EXEC) && v->ino);
}

static void visit_run(const struct rtask *t, bool contents,
		      const struct tr_state_visitor *v, uint64_t start,
		      uint64_t end)
{
	uint8_t page[TR_PAGE];

	for (uint64_t at = start; at < end; at += TR_PAGE) {
		uint64_t hash;

		/* A shared mapping may reach beyond its file. */
		if (tr_memory_read(t->tid, at, page, sizeof page) < 0)
			continue;
		hash = tr_page_hash(page);
		if (hash)
			v->page(v->ctx, at, hash, contents ? page : NULL);
	}
}

static int visit_pages(const struct rtask *t, bool contents,
		       const struct tr_state_visitor *v, struct tr_error *err)
{
	TR_AUTOCLOSE int pagemap = tr_pagemap_open(t->tid, err);
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct tr_own_runs own = {0};
	int failed = 0;

	if (pagemap < 0 || tr_vmas_read(t->tid, &vmas, err) < 0)
		return -1;
	for (size_t i = 0; i < vmas.n && !failed; i++) {
		const struct tr_vma *m = &vmas.v[i];

		own.n = 0;
		if (!has_pages(m))
			continue;
		if (m->flags & MAP_SHARED)
			visit_run(t, contents, v, m->start, m->end);
		else
			failed = tr_pagemap_own(pagemap, m->start, m->end,
						false, &own, err);
		for (size_t k = 0; k < own.n && !failed; k++)
			visit_run(t, contents, v, own.r[k].start,
				  own.r[k].end);
	}
	tr_own_runs_release(&own);
	return failed;
}

int tr_replay_inspect(struct tr_replay *r, uint32_t task, bool contents,
		      const struct tr_state_visitor *v, struct tr_error *err)
{
	const struct rtask *t = rep_task_find(r, task);
	struct tr_regs regs;

	if (!t)
		return tr_fail(err, TR_EINVAL, "task %u is not there any more",
			       task);
	if (t->running)
		return tr_fail(err, TR_EINVAL, "task %u is not at an event",
			       task);
	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return tr_fail_errno(err, "task %u: reading its state", task);
	v->registers(v->ctx, &regs);
	if (visit_mappings(r, t, &regs, v, err) < 0)
		return -1;
	return visit_pages(t, contents, v, err);
}
