/*
 * System calls that the injected code makes in the program's stead: where the
 * program's syscall instructions are, and what is put in their place.
 *
 * A site is patched when it has trapped once.  Jumps lead from it to its stub in
 * the injected code, by way of padding nearby, or of the room behind the code
 * in its last page (stub.h).  Most syscall instructions follow the MOV that
 * names the call, whose five bytes are room for a jump.  Elsewhere the two bytes
 * of the instruction become a short one.  A task that is in a call made at the
 * site, or returns to it, finds everything where it was.
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
#include "libtrace/tracee/known.h"
#include "libtrace/tracee/patch.h"
#include "libtrace/tracee/stub.h"

#define TR_PATCH_CALL ((struct tr_patchable){0, 2})

/* The code and the patched sites of one address space. */
struct tr_calls {
	struct tr_text {
		uint64_t start, end, offset;
		uint32_t file; /* store id */
	} *text; /* mapped files in which sites can be patched */
	size_t ntext, text_cap;
	struct tr_stub *stub; /* in the order of their code */
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

/* The room near the sites of stored files, found once each. */
struct tr_room_cache {
	int dirfd; /* the trace directory; the caller's */
	struct tr_room_file {
		uint32_t file;
		struct tr_padding *padding; /* NULL: it is no code */
	} *file;
	size_t nfiles, files_cap;
	struct tr_room_near {
		uint32_t file;
		uint64_t offset;
		struct tr_room room;
	} *p;
	size_t n, cap;
};
void tr_room_cache_release(struct tr_room_cache *rc);
void tr_room_cache_add(struct tr_room_cache *rc, uint32_t file,
		       uint64_t offset, const struct tr_room *room);

/* Learn of a site that was patched elsewhere, where the same files are mapped at
 * the same places: its code is in the file stored under dirfd. */
void tr_known_learn_of(struct tr_known *k, const struct tr_calls *c, int dirfd,
		       const struct tr_stub *stub);
/* Learn of a site just patched. */
void tr_known_learn(struct tr_known *k, const struct tr_calls *c, uint64_t at);
/* Patch a mapping just made: breakpoints and, with k, what is known of its sites,
 * which *changed counts. */
int tr_calls_patch_mapping(pid_t tid, struct tr_calls *c,
			   struct tr_patches *ps, struct tr_site_cache *sites,
			   const struct tr_known *k, const struct tr_map *m,
			   uint64_t *changed, struct tr_error *err)
	TR_MUST_CHECK;

/* How the site of an instruction, or of a system call when `what` is 0, can be
 * patched; false: it cannot, or is already.  `steady`: no
 * task can stand between the instructions before the site. */
bool tr_calls_way(struct tr_calls *c, struct tr_room_cache *rc,
		  const struct tr_known *known, uint64_t at, enum tr_insn what,
		  bool steady, struct tr_way *way);
/* Patch the instruction, or leave it as it was.  An XSAVEC has no breakpoint
 * any more, others keep theirs for when they trap nevertheless. */
bool tr_calls_patch(pid_t tid, struct tr_calls *c, struct tr_patches *ps,
		    uint64_t at, struct tr_patchable what, struct tr_way way);

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

/* Is the address a patched site's, or that of a jump between it and its stub? */
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
