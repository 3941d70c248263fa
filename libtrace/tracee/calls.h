/*
 * System calls that the injected code makes in the program's stead: where the
 * program's syscall instructions are, and what is put in their place.
 *
 * A site is patched when it has trapped once.  The two bytes of the
 * instruction become a short jump to padding between functions nearby, which
 * holds a jump to the injected code (intercept/abi.h): no other instruction
 * moves, and a task that is in a call made at the site, or returns to it, finds
 * everything where it was.
 *
 * CPUID and RDTSC are treated the same way: the injected code logs what they
 * give.  So is XSAVEC.  What it leaves out depends on which parts
 * of the state the processor takes for unused, and that on when the task was
 * last switched; the injected code makes its result one of the registers alone.
 */
#ifndef TR_TRACEE_CALLS_H
#define TR_TRACEE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"
#include "libtrace/intercept/rules.h"
#include "libtrace/state/padding.h"
#include "libtrace/tracee/patch.h"

/* An instruction that is patched: a system call, an XSAVEC, or one of CPUID,
 * RDTSC and RDTSCP. */
struct tr_patchable {
	enum tr_insn insn; /* 0: a system call */
	uint8_t length;
};
#define TR_PATCH_CALL ((struct tr_patchable){0, 2})
/* Can the injected code do what the instruction does? */
bool tr_calls_can_do(enum tr_insn insn);

/* The code and the patched sites of one address space. */
struct tr_calls {
	struct tr_text {
		uint64_t start, end, offset;
		uint32_t file; /* store id */
	} *text; /* mapped files in which sites can be patched */
	size_t ntext, text_cap;
	struct tr_stub {
		uint64_t at;      /* address of the site, 0 when gone */
		uint64_t hole;    /* where its jump is */
		uint8_t padding[7]; /* what was there, */
		struct tr_patchable what; /* and the instruction */
		uint8_t insn[TR_SITE_MAX];
	} *stub;
	size_t n, cap;
	uint64_t *refused; /* sites that cannot be patched */
	size_t nrefused, refused_cap;
};
void tr_calls_release(struct tr_calls *c);
void tr_calls_copy(struct tr_calls *to, const struct tr_calls *from);

/* A mapping was made, went, or will not be patched any more. */
void tr_calls_map(struct tr_calls *c, const struct tr_map *m);
void tr_calls_unmap(struct tr_calls *c, uint64_t start, uint64_t end);
void tr_calls_leave(struct tr_calls *c, uint64_t start, uint64_t end);
/* Make the code what it was: it is going to be moved. */
void tr_calls_unpatch(pid_t tid, struct tr_calls *c, uint64_t start,
		      uint64_t end);

/* Padding near the sites of stored files, found once each. */
struct tr_padding_cache {
	int dirfd; /* the trace directory; the caller's */
	struct tr_padding {
		uint32_t file;
		uint64_t offset;
		struct tr_gaps gaps;
	} *p;
	size_t n, cap;
};
void tr_padding_cache_release(struct tr_padding_cache *pc);

/* Where the jump of the site can go; 0: nowhere, or it is patched already. */
uint64_t tr_calls_hole(pid_t tid, struct tr_calls *c,
		       struct tr_padding_cache *pc, uint64_t at);
/* Patch the instruction, or leave it as it was.  An XSAVEC has no breakpoint
 * any more, others keep theirs for when they trap nevertheless. */
bool tr_calls_patch(pid_t tid, struct tr_calls *c, struct tr_patches *ps,
		    uint64_t at, struct tr_patchable what, uint64_t hole);

/*
 * The sites that have been patched so far, by file.  When a file is mapped
 * again, by another process for the most part, they are patched at once: it
 * does not have to trap at each of them.  Recorder and replayer learn of a site
 * by the same event, so they know the same ones when they come to a mapping.
 */
struct tr_known {
	struct tr_known_site {
		uint64_t at, hole; /* in the file */
		uint32_t file;
		struct tr_patchable what;
	} *site;
	size_t n, cap;
};
void tr_known_release(struct tr_known *k);
void tr_known_learn(struct tr_known *k, const struct tr_calls *c, uint64_t at,
		    struct tr_patchable what, uint64_t hole);
/* Patch what is known of a mapping just made; the number of sites. */
uint64_t tr_calls_patch_known(pid_t tid, struct tr_calls *c,
			      struct tr_patches *ps, const struct tr_known *k,
			      const struct tr_map *m);

/* Take the patches out of n bytes that were read at addr. */
void tr_calls_show(const struct tr_calls *c, uint64_t addr, void *buf,
		   size_t n);

/*
 * A task that stopped at a stub's own system call or XSAVEC is where the
 * program would have stopped without the patch: change its registers to say so.
 * False when it stopped elsewhere.
 */
bool tr_calls_come_home(const struct tr_calls *c, struct tr_regs *regs);

/* The same for the breakpoint in the stub of an instruction: as if the site's
 * own had been hit. */
bool tr_calls_trapped(const struct tr_calls *c, struct tr_regs *regs);

/* Is the address a patched site's, or that of its jump in the padding? */
bool tr_calls_lead_in(const struct tr_calls *c, uint64_t ip);

/* Is the address in the injected code? */
static inline bool tr_calls_hold(uint64_t rip)
{
	return rip >= TR_INJECT_CALLS &&
	       rip < TR_INJECT_STUBS + TR_INJECT_STUBS_SIZE;
}

/* Members of the control block in the task. */
#define TR_CONTROL_AT(member) \
	(TR_INJECT_CONTROL + offsetof(struct tr_calls_control, member))

#endif
