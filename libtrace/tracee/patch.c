/* Trapping RDTSC and RDTSCP by breakpoints in mapped files. */
#include "libtrace/tracee/patch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libtrace/base/alloc.h"
#include "libtrace/tracee/memory.h"

void tr_site_cache_release(struct tr_site_cache *c)
{
	for (size_t i = 0; i < c->n; i++)
		tr_sites_release(&c->by_file[i]);
	free(c->by_file);
	free(c->known);
	c->by_file = NULL;
	c->known = NULL;
	c->n = 0;
}

static const struct tr_sites *sites_of(struct tr_site_cache *c, uint32_t file)
{
	if (file >= c->n) {
		size_t n = file + 16;

		c->by_file = tr_realloc(c->by_file, n * sizeof *c->by_file);
		c->known = tr_realloc(c->known, n * sizeof *c->known);
		memset(c->by_file + c->n, 0, (n - c->n) * sizeof *c->by_file);
		memset(c->known + c->n, 0, (n - c->n) * sizeof *c->known);
		c->n = n;
	}
	if (!c->known[file]) {
		char name[32];

		snprintf(name, sizeof name, "files/%u", file);
		TR_AUTOCLOSE int fd = openat(c->dirfd, name,
					     O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			tr_sites_find(fd, &c->by_file[file]);
		c->known[file] = true;
	}
	return &c->by_file[file];
}

void tr_patches_release(struct tr_patches *ps)
{
	free(ps->p);
	*ps = (struct tr_patches){0};
}

void tr_patches_copy(struct tr_patches *to, const struct tr_patches *from)
{
	to->p = tr_memdup(from->p, from->n * sizeof *from->p);
	to->n = to->cap = from->n;
}

int tr_patch_mapping(pid_t tid, const struct tr_map *m, struct tr_site_cache *c,
		     struct tr_patches *ps, struct tr_error *err)
{
	static const uint8_t int3 = 0xcc;
	const struct tr_sites *sites;

	if (!m->file || !(m->prot & PROT_EXEC))
		return 0;
	sites = sites_of(c, m->file);
	for (size_t i = 0; i < sites->n; i++) {
		const struct tr_site *s = &sites->s[i];
		uint64_t addr = m->start + (s->offset - m->offset);

		if (s->offset < m->offset || addr >= m->end)
			continue;
		if (tr_memory_write(tid, addr, &int3, 1) < 0)
			return tr_fail_errno(err, "task %d: patching",
					     (int)tid);
		TR_GROW(ps->p, ps->n, ps->cap);
		ps->p[ps->n++] = (struct tr_patch){addr, s->insn, s->length};
	}
	return 0;
}

void tr_patches_drop(struct tr_patches *ps, uint64_t start, uint64_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < ps->n; i++)
		if (ps->p[i].addr < start || ps->p[i].addr >= end)
			ps->p[kept++] = ps->p[i];
	ps->n = kept;
}

bool tr_trapped_insn(pid_t tid, int signo, int info_code, struct tr_regs *regs,
		     const struct tr_patches *ps, enum tr_insn *insn,
		     uint8_t *length)
{
	uint8_t bytes[3];

	/* PR_TSC_SIGSEGV: a general protection fault, SI_KERNEL. */
	if (signo == SIGSEGV && info_code == SI_KERNEL) {
		size_t n = tr_memory_read_some(tid, regs->rip, bytes,
					       sizeof bytes);

		*insn = tr_insn_decode(bytes, n, length);
		return *insn != 0;
	}
	if (signo != SIGTRAP || info_code != SI_KERNEL)
		return false;
	for (size_t i = 0; i < ps->n; i++) {
		if (ps->p[i].addr != regs->rip - 1)
			continue;
		regs->rip--;
		*insn = ps->p[i].insn;
		*length = ps->p[i].length;
		return true;
	}
	return false;
}
