/*
 * What changes in a task's memory while a system call is in progress: every
 * writable page present before and after is compared.  This is how the effects
 * of calls are found that the model does not know, and how the model itself
 * is audited.
 */
#ifndef TR_TRACEE_PAGES_H
#define TR_TRACEE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/model/syscalls.h"

struct tr_pages;

/* Remember the pages; with `contents` their bytes, too, so that differences
 * are found to the byte and not to the page. */
struct tr_pages *tr_pages_take(pid_t tid, bool contents, struct tr_error *err)
	TR_MUST_CHECK;
void tr_pages_free(struct tr_pages *p);

/*
 * Append what differs now: whole pages, or runs of bytes when the contents
 * were kept.  A page that was absent counts as zero.  *layout_changed tells
 * whether mappings came, went or moved.
 */
int tr_pages_changes(pid_t tid, const struct tr_pages *p,
		     struct tr_ranges *changed, bool *layout_changed,
		     struct tr_error *err) TR_MUST_CHECK;

#endif
