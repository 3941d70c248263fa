/*
 * --portable: what of the program could not be held to the level, by name.
 *
 * The level is what CPUID tells, and CPUID is trapped where it was found in a
 * mapped file.  Code that the program makes has its own, bytes that no function
 * is known to contain may be one, and the kernel tells of the processor, too.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/maps.h"

/* Each thing once; what has no room is counted by an ellipsis. */
__attribute__((format(printf, 2, 3)))
static void add(struct recorder *r, const char *fmt, ...)
{
	const size_t room = sizeof r->unreached - sizeof ", ...";
	size_t n = strlen(r->unreached);
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (strstr(r->unreached, what) || n >= room)
		return;
	if (n + strlen(what) + 2 > room)
		snprintf(what, sizeof what, "...");
	snprintf(r->unreached + n, sizeof r->unreached - n, "%s%s",
		 n ? ", " : "", what);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void program_of(const struct task *t, char *name, size_t size)
{
	TR_AUTOFREE char *link = tr_printf("/proc/%d/exe", (int)t->tid);
	char path[4096];
	ssize_t n = readlink(link, path, sizeof path - 1);

	path[n < 0 ? 0 : n] = '\0';
	snprintf(name, size, "%.100s",
		 n > 0 ? base_name(path) : "the program");
}

void rec_portable_start(struct recorder *r)
{
	/* Below, programs are told that there is no XSAVE. */
	if (r->cpu_level >= TR_CPU_V3)
		add(r, "the layout of XSAVE (XCR0 0x%llx)",
		    (unsigned long long)r->manifest.xcr0);
}

static void add_undecided(struct recorder *r, const struct task *t,
			  const struct tr_map *m)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	const struct tr_vma *v;
	struct tr_error err;
	size_t n = m->file < r->sites.n ?
		   r->sites.by_file[m->file].undecided_cpuid : 0;

	if (n == 0 || tr_vmas_read(t->tid, &vmas, &err) < 0)
		return;
	v = tr_vmas_find(&vmas, m->start);
	add(r, "%zu place%s in %s that may be CPUID", n, n == 1 ? "" : "s",
	    v ? base_name(v->name) : "a file");
}

static void add_generated(struct recorder *r, const struct task *t)
{
	char name[128];

	program_of(t, name, sizeof name);
	add(r, "code that %s makes", name);
}

void rec_portable_mapped(struct recorder *r, const struct task *t,
			 const struct tr_map *m)
{
	if (r->cpu_level == TR_CPU_ALL || !(m->prot & PROT_EXEC))
		return;
	if (m->file)
		add_undecided(r, t, m);
	else
		add_generated(r, t);
}

void rec_portable_protected(struct recorder *r, const struct task *t)
{
	if (r->cpu_level != TR_CPU_ALL && t->fl.call.args[2] & PROT_EXEC)
		add_generated(r, t);
}

void rec_portable_opened(struct recorder *r, const struct task *t,
			 const struct tr_bytes *path)
{
	static const char file[] = "/proc/cpuinfo";
	char name[128];

	if (r->cpu_level == TR_CPU_ALL || path->len < strlen(file) ||
	    memcmp(path->data, file, strlen(file)) != 0)
		return;
	program_of(t, name, sizeof name);
	add(r, "%s, which %s reads", file, name);
}
