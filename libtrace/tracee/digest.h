/*
 * State digests: one number for everything a task's future depends on.
 *
 * The memory digest is XXH3-64 over (address, XXH3-64 of the page) of every
 * page that can differ between two runs and is not zero, in address order:
 * pages of anonymous memory, written pages of private file mappings, and all
 * pages of shared mappings.  An absent page equals a zero page.  The engine's
 * pages and text that may hold its breakpoints are left out.  The task digest
 * is XXH3-64 over the general registers as struct tr_regs with orig_rax 0.
 */
#ifndef TR_TRACEE_DIGEST_H
#define TR_TRACEE_DIGEST_H

#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"

int tr_digest_memory(pid_t tid, uint64_t *digest, struct tr_error *err)
	TR_MUST_CHECK;
uint64_t tr_digest_regs(const struct tr_regs *regs);

/* As tr_digest_memory, and calls `page` for every page it covers. */
typedef void tr_digest_page_fn(void *ctx, uint64_t addr, uint64_t hash);
int tr_digest_pages(pid_t tid, tr_digest_page_fn *page, void *ctx,
		    uint64_t *digest, struct tr_error *err) TR_MUST_CHECK;

#endif
