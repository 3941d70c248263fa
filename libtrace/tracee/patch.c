/* Trapping nondeterministic instructions by breakpoints in mapped files. */
#include "libtrace/tracee/patch.h"

#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <x86intrin.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/home.h"
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

static void make_room(struct tr_site_cache *c, uint32_t file)
{
	size_t n = file + 16;

	if (file < c->n)
		return;
	c->by_file = tr_realloc(c->by_file, n * sizeof *c->by_file);
	c->known = tr_realloc(c->known, n * sizeof *c->known);
	memset(c->by_file + c->n, 0, (n - c->n) * sizeof *c->by_file);
	memset(c->known + c->n, 0, (n - c->n) * sizeof *c->known);
	c->n = n;
}

void tr_site_cache_set(struct tr_site_cache *c, uint32_t file,
		       const struct tr_sites *sites)
{
	make_room(c, file);
	tr_sites_release(&c->by_file[file]);
	c->by_file[file] = *sites;
	c->known[file] = true;
}

const struct tr_sites *tr_site_cache_get(const struct tr_site_cache *c,
					 uint32_t file)
{
	return file < c->n && c->known[file] ? &c->by_file[file] : NULL;
}

static const struct tr_sites *sites_of(struct tr_site_cache *c, uint32_t file)
{
	make_room(c, file);
	if (!c->known[file]) {
		TR_AUTOCLOSE int fd = tr_stored_open(c->dirfd, file);

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
	to->translated = from->translated;
}

static const uint8_t int3 = 0xcc;

bool tr_translates(const struct tr_bytes *path)
{
	static const char dir[] = "/valgrind/", end[] = "-amd64-linux";
	size_t n = sizeof end - 1;

	return path->len > n &&
	       memcmp((const char *)path->data + path->len - n, end, n) == 0 &&
	       memmem(path->data, path->len, dir, sizeof dir - 1);
}

size_t tr_patches_list(struct tr_patches *ps, const struct tr_map *m,
		       struct tr_site_cache *c)
{
	const struct tr_sites *sites;
	size_t first;

	tr_patches_drop(ps, m->start, m->end);
	first = ps->n;
	if (!m->file || !(m->prot & PROT_EXEC) || ps->translated)
		return 0;
	sites = sites_of(c, m->file);
	for (size_t i = 0; i < sites->n; i++) {
		const struct tr_site *s = &sites->s[i];
		uint64_t addr = m->start + (s->offset - m->offset);
		/* What was just mapped is what is in the file. */
		struct tr_patch patch = {.addr = addr, .site = *s,
					 .byte = s->first};

		if (s->offset < m->offset || addr >= m->end ||
		    (c->tsc_traps && (s->insn == TR_INSN_RDTSC ||
				      s->insn == TR_INSN_RDTSCP)) ||
		    (!c->settles && s->insn == TR_INSN_XSAVEC))
			continue;
		TR_GROW(ps->p, ps->n, ps->cap);
		ps->p[ps->n++] = patch;
	}
	return ps->n - first;
}

size_t tr_patches_pieces(const struct tr_patches *ps, const struct tr_map *m,
			 struct tr_piece *piece)
{
	size_t n = 0;

	for (size_t i = 0; i < ps->n; i++)
		if (ps->p[i].addr >= m->start && ps->p[i].addr < m->end &&
		    !ps->p[i].jumps)
			piece[n++] = (struct tr_piece){ps->p[i].addr, &int3, 1};
	return n;
}

bool tr_patches_hold(const struct tr_patches *ps, uint64_t addr)
{
	for (size_t i = 0; i < ps->n; i++)
		if (ps->p[i].addr == addr && !ps->p[i].jumps &&
		    !ps->p[i].overridden)
			return true;
	return false;
}

void tr_patches_remove(pid_t tid, struct tr_patches *ps, uint64_t addr)
{
	for (size_t i = 0; i < ps->n; i++)
		if (ps->p[i].addr == addr &&
		    tr_memory_write(tid, addr, &ps->p[i].byte, 1) == 0)
			ps->p[i--] = ps->p[--ps->n];
}

void tr_patches_jump(struct tr_patches *ps, uint64_t addr)
{
	for (size_t i = 0; i < ps->n; i++)
		ps->p[i].jumps |= ps->p[i].addr == addr;
}

void tr_patches_drop(struct tr_patches *ps, uint64_t start, uint64_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < ps->n; i++)
		if (ps->p[i].addr < start || ps->p[i].addr >= end)
			ps->p[kept++] = ps->p[i];
	ps->n = kept;
}

void tr_patches_show(const struct tr_patches *ps, uint64_t addr, void *buf,
		     size_t n)
{
	for (size_t i = 0; i < ps->n; i++)
		if (ps->p[i].addr - addr < n && !ps->p[i].overridden)
			((uint8_t *)buf)[ps->p[i].addr - addr] = ps->p[i].byte;
}

int tr_patches_settle(pid_t tid, struct tr_patches *ps, uint64_t addr,
		      uint64_t n)
{
	size_t kept = 0;
	int failed = 0;

	for (size_t i = 0; i < ps->n; i++) {
		struct tr_patch p = ps->p[i];
		uint8_t now;

		if (p.addr - addr >= n || p.jumps ||
		    tr_memory_read(tid, p.addr, &now, 1) < 0) {
			ps->p[kept++] = p;
			continue;
		}
		p.overridden = now == int3;
		if (now == p.byte && tr_memory_write(tid, p.addr, &int3, 1) < 0)
			failed = -1;
		if (now == p.byte || now == int3)
			ps->p[kept++] = p;
	}
	ps->n = kept;
	return failed;
}

bool tr_trapped_insn(pid_t tid, int signo, int info_code, struct tr_regs *regs,
		     const struct tr_patches *ps, struct tr_site *site)
{
	uint8_t bytes[15];

	/* PR_TSC_SIGSEGV: a general protection fault, SI_KERNEL. */
	if (signo == SIGSEGV && info_code == SI_KERNEL) {
		size_t n = tr_memory_read_some(tid, regs->rip, bytes,
					       sizeof bytes);
		enum tr_insn insn = tr_insn_decode(bytes, n, site);

		return insn == TR_INSN_RDTSC || insn == TR_INSN_RDTSCP;
	}
	if (signo != SIGTRAP || info_code != SI_KERNEL)
		return false;
	for (size_t i = 0; i < ps->n; i++) {
		if (ps->p[i].addr != regs->rip - 1 || ps->p[i].overridden)
			continue;
		regs->rip--;
		*site = ps->p[i].site;
		return true;
	}
	return false;
}

static uint64_t *register_by_encoding(struct tr_regs *r, uint8_t reg)
{
	uint64_t *const order[16] = {
		&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp, &r->rsi,
		&r->rdi, &r->r8, &r->r9, &r->r10, &r->r11, &r->r12, &r->r13,
		&r->r14, &r->r15};

	return order[reg & 15];
}

/* A 32-bit result clears the upper half, a 16-bit one leaves the rest. */
static void set_result(struct tr_regs *r, const struct tr_site *site,
		       uint64_t value)
{
	uint64_t *reg = register_by_encoding(r, site->reg);

	if (site->width == 2)
		*reg = (*reg & ~(uint64_t)0xffff) | (value & 0xffff);
	else
		*reg = site->width == 4 ? (uint32_t)value : value;
}

/* CF tells success; OF, SF, ZF, AF and PF are cleared (Intel SDM, RDRAND). */
static void execute_random(const struct tr_site *site, struct tr_regs *regs)
{
	uint64_t value = 0;
	bool ok = getrandom(&value, sizeof value, 0) == sizeof value;

	regs->eflags = (regs->eflags & ~UINT64_C(0x8d5)) | (ok ? 1 : 0);
	set_result(regs, site, ok ? value : 0);
}

void tr_insn_execute(const struct tr_site *site, struct tr_regs *regs)
{
	unsigned a, b, c, d, aux;
	uint64_t tsc = __rdtscp(&aux);

	switch (site->insn) {
	case TR_INSN_RDTSCP:
		regs->rcx = aux;
		/* fall through */
	case TR_INSN_RDTSC:
		regs->rax = (uint32_t)tsc;
		regs->rdx = tsc >> 32;
		break;
	case TR_INSN_CPUID:
		__cpuid_count((unsigned)regs->rax, (unsigned)regs->rcx, a, b, c,
			      d);
		regs->rax = a;
		regs->rbx = b;
		regs->rcx = c;
		regs->rdx = d;
		break;
	case TR_INSN_RDRAND:
	case TR_INSN_RDSEED:
		execute_random(site, regs);
		break;
	case TR_INSN_RDPID:
		set_result(regs, site, aux);
		break;
	case TR_INSN_XSAVEC:
		return; /* the task does it, elsewhere */
	}
	regs->rip += site->length;
}
