/*
 * System calls that the injected code makes in the program's stead: where the
 * program's syscall instructions are, and what is put in their place.
 *
 * A site is patched when it has trapped once.  The two bytes of the
 * instruction become a short jump to padding between functions nearby, which
 * holds a jump to the injected code (intercept/abi.h): no other instruction
 * moves, and a task that is in a call made at the site, or returns to it, finds
 * everything where it was.
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

/* The code and the patched sites of one address space. */
struct tr_calls {
	struct tr_text {
		uint64_t start, end, offset;
		uint32_t file; /* store id */
	} *text; /* mapped files in which sites can be patched */
	size_t ntext, text_cap;
	struct tr_stub {
		uint64_t after;   /* address after the site, 0 when gone */
		uint64_t hole;    /* where its jump is */
		uint8_t padding[7]; /* what was there */
	} *stub;
	size_t n, cap;
	uint64_t *refused; /* addresses after sites that cannot be patched */
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

/* Where the jump of the site before `after` can go; 0: nowhere, or it is
 * patched already. */
uint64_t tr_calls_hole(pid_t tid, struct tr_calls *c,
		       struct tr_padding_cache *pc, uint64_t after);
/* Patch the site, or leave it as it was. */
bool tr_calls_patch(pid_t tid, struct tr_calls *c, uint64_t after,
		    uint64_t hole);

/* Take the patches out of n bytes that were read at addr. */
void tr_calls_show(const struct tr_calls *c, uint64_t addr, void *buf,
		   size_t n);

/*
 * A task that stopped at a stub's syscall instruction is where the program
 * would have trapped without the patch: change its registers to say so.  False
 * when it stopped elsewhere.
 */
bool tr_calls_come_home(const struct tr_calls *c, struct tr_regs *regs);

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
