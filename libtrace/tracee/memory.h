/*
 * Memory of a traced task.  Plain transfers use process_vm_readv(2) and
 * process_vm_writev(2); where those are refused (protected pages, a stack that
 * has yet to grow) /proc/PID/mem is used, which forces access as a debugger's.
 */
#ifndef TR_TRACEE_MEMORY_H
#define TR_TRACEE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"

/* All n bytes or -1 with errno (EFAULT, or ESRCH when the task is gone). */
int tr_memory_read(pid_t tid, uint64_t addr, void *buf, size_t n) TR_MUST_CHECK;
int tr_memory_write(pid_t tid, uint64_t addr, const void *buf, size_t n)
	TR_MUST_CHECK;
/* Write many small pieces, code for the most part; sorts them, and writes
 * those of a page at once.  No two of them overlap. */
struct tr_piece {
	uint64_t addr;
	const void *bytes;
	size_t n;
};
int tr_memory_write_pieces(pid_t tid, struct tr_piece *p, size_t n)
	TR_MUST_CHECK;
/* Pages read, for many small reads while the task is stopped. */
#define TR_WINDOW_PAGES 4u
struct tr_window {
	pid_t tid;
	unsigned next; /* to be replaced */
	struct tr_window_page {
		uint64_t addr; /* 0: none yet */
		bool readable;
		uint8_t bytes[4096];
	} page[TR_WINDOW_PAGES];
};
static inline void tr_window_open(struct tr_window *w, pid_t tid)
{
	w->tid = tid;
	w->next = 0;
	for (unsigned i = 0; i < TR_WINDOW_PAGES; i++)
		w->page[i].addr = 0;
}
/* As tr_memory_read_some. */
size_t tr_window_read(struct tr_window *w, uint64_t addr, void *buf, size_t n);

/* As many of the first n bytes as are readable. */
size_t tr_memory_read_some(pid_t tid, uint64_t addr, void *buf, size_t n);

#endif
