/*
 * Probes: stopping a task when it comes to an instruction in a given state.
 *
 * A probe begins as a breakpoint instruction, which stops the task every time.
 * It can become a jump to code beside the program's that compares registers
 * and words of memory in some nanoseconds, and stops the task only when all
 * of them are as wanted.  Hardware breakpoints are not used: some hypervisors
 * accept them and never report one.
 *
 * The displaced instructions run elsewhere (relocate.h).  The four bytes of
 * the jump's distance are chosen so that whoever jumps to one of these
 * instructions meets a breakpoint there and is sent on to the copy.
 *
 * The program could see the changed bytes by reading its own code, and nothing
 * else: the probe's code is in a mapping of its own, and neither the stack nor
 * a register is touched.  Between the events
 * of a trace no system call happens, so code that is not writable cannot
 * change under a probe.  Where it is writable it is write-protected, and stores
 * to it are made one by one (tr_probe_store); where it could be written through
 * another mapping the probe stays a breakpoint.
 */
#ifndef TR_TRACEE_PROBE_H
#define TR_TRACEE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"

/* Memory for the code of probes, which the traced tasks map. */
struct tr_probe_memory {
	int fd; /* a memfd */
	uint32_t used; /* slots, as bits */
	char path[48];
};
int tr_probe_memory_init(struct tr_probe_memory *m, struct tr_error *err)
	TR_MUST_CHECK;
void tr_probe_memory_release(struct tr_probe_memory *m);

struct tr_probe;

/*
 * Plant one in a stopped task, as a breakpoint.  The memory is borrowed.  No
 * other task of the address space may run while it is there.
 */
struct tr_probe *tr_probe_new(pid_t tid, uint64_t site,
			      struct tr_probe_memory *m, struct tr_error *err)
	TR_MUST_CHECK;
/* Take it out of the stopped task. */
int tr_probe_remove(struct tr_probe *p, struct tr_error *err) TR_MUST_CHECK;
/* Also when the task is gone. */
void tr_probe_free(struct tr_probe *p);

/* What a state must have for the task to stop. */
struct tr_probe_state {
	const struct tr_regs *regs; /* general registers and arithmetic flags */
	uint32_t ignored; /* registers that do not matter: bits by encoding
			     (rax 0, rcx 1, rdx 2, rbx 3, ...) */
	bool flags_ignored;
	const struct tr_mem *words; /* memory, of which the beginning is used */
	size_t nwords;
	/* What is compared first, because it was not as wanted when it was
	 * last looked at: a register by its encoding, or -1; if -1, the four
	 * bytes at an address, or 0. */
	int first_reg;
	uint64_t first_addr;
	uint32_t first_value;
};

/* Make it a jump.  False: it cannot be one here, and stays a breakpoint. */
bool tr_probe_jump(struct tr_probe *p, const struct tr_probe_state *want);

enum tr_probe_stop {
	TR_PROBE_HERE,   /* at the instruction, in a state as wanted */
	TR_PROBE_PASSED, /* let it run on */
	TR_PROBE_STORE,  /* about to change guarded code: tr_probe_store */
	TR_PROBE_ALONE,  /* behind the instruction that ran alone */
	TR_PROBE_OTHER,  /* something else stopped it */
};

/* Why did the task stop by the signal?  `regs` become what they would be
 * without the probe. */
enum tr_probe_stop tr_probe_stopped(struct tr_probe *p, int signo, int code,
				    struct tr_regs *regs);

/* Where a task must be set to go on that would go on at `ip`: past the probe
 * when it is at its instruction.  0: with tr_probe_step first. */
uint64_t tr_probe_way_on(const struct tr_probe *p, uint64_t ip);
/* One instruction of the original code; gives the wait status. */
int tr_probe_step(struct tr_probe *p, int *status) TR_MUST_CHECK;
/* Make the store that TR_PROBE_STORE is about, by a step from where the task is
 * set; gives the wait status.  tr_probe_stored follows: where the code of the
 * probe has changed, that is a breakpoint until it is made a jump again. */
int tr_probe_store(struct tr_probe *p, int *status) TR_MUST_CHECK;
int tr_probe_stored(struct tr_probe *p) TR_MUST_CHECK;
/* Where the instruction can be run alone, followed by a breakpoint; or 0. */
uint64_t tr_probe_alone(const struct tr_probe *p);

/* Take it out, and put it in again, for a digest of the memory, which must also
 * leave out the region of its code. */
int tr_probe_hide(struct tr_probe *p) TR_MUST_CHECK;
int tr_probe_show(struct tr_probe *p) TR_MUST_CHECK;
void tr_probe_region(const struct tr_probe *p, uint64_t *start, uint64_t *end);

#endif
