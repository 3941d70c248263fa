/*
 * Trapping the instructions whose results the program's state does not
 * determine: RDTSC and RDTSCP where the CPU does not trap them (on some
 * hypervisors PR_SET_TSC has no effect), CPUID, RDRAND, RDSEED and RDPID,
 * which nothing traps.  Their sites in the text of mapped files are
 * overwritten with int3 when the file is mapped.  Recorder and replayer do the
 * same, each as its own machine needs it.
 */
#ifndef TR_TRACEE_PATCH_H
#define TR_TRACEE_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"
#include "libtrace/state/code.h"
#include "libtrace/tracee/memory.h"

/* The sites of stored files, found once each. */
struct tr_site_cache {
	bool tsc_traps; /* RDTSC and RDTSCP need no patch */
	bool settles;   /* XSAVEC gets one */
	int dirfd; /* the trace directory; the caller's */
	struct tr_sites *by_file; /* index: file id */
	bool *known;
	size_t n;
};
void tr_site_cache_release(struct tr_site_cache *c);
/* Give it a file's sites, which become its own; take a look at what it has:
 * NULL when nobody has asked for them. */
void tr_site_cache_set(struct tr_site_cache *c, uint32_t file,
		       const struct tr_sites *sites);
const struct tr_sites *tr_site_cache_get(const struct tr_site_cache *c,
					 uint32_t file);

/* The patched sites of one address space. */
struct tr_patches {
	struct tr_patch {
		uint64_t addr;
		struct tr_site site;
		uint8_t byte;    /* what the breakpoint stands in place of */
		bool jumps;      /* there is a jump instead, see calls.h */
		bool overridden; /* the program has a breakpoint there, too */
	} *p;
	size_t n, cap;
	bool translated; /* what is mapped from now on gets none */
};
void tr_patches_release(struct tr_patches *ps);
void tr_patches_copy(struct tr_patches *to, const struct tr_patches *from);

/*
 * Does the program execute translations of the code that it maps, which it reads
 * as data (valgrind)?  By its path: nothing else tells before it does.
 */
bool tr_translates(const struct tr_bytes *path);

/* List what an executable file mapping just made holds, in place of what was
 * there; how many there are. */
size_t tr_patches_list(struct tr_patches *ps, const struct tr_map *m,
		       struct tr_site_cache *c);
/* The breakpoints to be written into it: where no jump is. */
size_t tr_patches_pieces(const struct tr_patches *ps, const struct tr_map *m,
			 struct tr_piece *piece);
/* Is there a breakpoint of ours at addr? */
bool tr_patches_hold(const struct tr_patches *ps, uint64_t addr);
/* Take away the breakpoint at addr. */
void tr_patches_remove(pid_t tid, struct tr_patches *ps, uint64_t addr);
/* There is a jump in place of the breakpoint now. */
void tr_patches_jump(struct tr_patches *ps, uint64_t addr);
/* Forget the sites of a range that is unmapped or mapped anew. */
void tr_patches_drop(struct tr_patches *ps, uint64_t start, uint64_t end);

/*
 * Memory as the program sees it: show takes the breakpoints out of n bytes
 * that were read at addr; settle puts them back after bytes were written
 * there, but where the program's own breakpoint or other code is now.
 */
void tr_patches_show(const struct tr_patches *ps, uint64_t addr, void *buf,
		     size_t n);
int tr_patches_settle(pid_t tid, struct tr_patches *ps, uint64_t addr,
		      uint64_t n) TR_MUST_CHECK;

/*
 * Did the task stop at a trapped instruction?  `signo` and `info_code` are
 * those of its signal stop.  Fills *site and moves regs->rip to the
 * instruction's start (int3 leaves it behind the breakpoint).
 */
bool tr_trapped_insn(pid_t tid, int signo, int info_code, struct tr_regs *regs,
		     const struct tr_patches *ps, struct tr_site *site);

/* What the instruction does, done here: changes the registers as it would and
 * moves rip behind it. */
void tr_insn_execute(const struct tr_site *site, struct tr_regs *regs);

#endif
