/* Starting the program to record, traced and filtered from its exec on. */
#ifndef TR_TRACEE_SPAWN_H
#define TR_TRACEE_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "libtrace/base/error.h"

/*
 * Find `name` as execvp(3) would. Returns an owned path, or NULL with
 * TR_ENOPROG, TR_ENOEXEC (not executable) or TR_EUNSUPPORTED (not 64-bit).
 */
char *tr_find_program(const char *name, struct tr_error *err) TR_MUST_CHECK;

struct tr_spawn {
	const char *path;          /* from tr_find_program */
	const char *const *argv;
	int cpu;                   /* core to pin to, or -1 */
};

/*
 * Fork a child that is traced, cannot read the time stamp counter unseen
 * where the CPU allows, has address-space randomisation off, reports every
 * system call, and is about to execute the program (a script without #! by
 * /bin/sh, as execvp does).  It is not ours to wait for until it has stopped.
 */
pid_t tr_spawn(const struct tr_spawn *s, struct tr_error *err) TR_MUST_CHECK;

/* Does PR_SET_TSC make RDTSC trap here?  Some hypervisors ignore it. */
bool tr_tsc_traps(void);

#endif
