/*
 * The recorder's own structures, shared by the files of this directory.
 *
 * One thread handles every stop.  Tasks that share no memory run in parallel
 * between their stops; those that do form a domain, of which one at a time
 * runs user code (sched.c).
 */
#ifndef TR_RECORD_RECORDER_H
#define TR_RECORD_RECORDER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "libtrace/base/buf.h"
#include "libtrace/base/table.h"
#include "libtrace/format/event.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/writer.h"
#include "libtrace/model/syscalls.h"
#include "libtrace/record/record.h"
#include "libtrace/state/cpu.h"
#include "libtrace/state/maps.h"
#include "libtrace/store/store.h"
#include "libtrace/tracee/state_event.h"
#include "libtrace/tracee/calls.h"
#include "libtrace/tracee/pages.h"
#include "libtrace/tracee/patch.h"

struct recorder;

/* Address spaces that share memory. */
struct domain {
	uint32_t id;          /* stream of its first address space */
	unsigned ntasks;
	struct task *current; /* the one that may run user code, or NULL */
	bool in_kernel;       /* current is in a system call */
	uint64_t since;       /* when current entered it */
	uint64_t slice;       /* when current began its turn, */
	uint64_t length;      /* and how long it may compute, ns; 0: not known */
	struct task *first, *last; /* others that could run, as they came */
	bool settling;        /* chaos: the next turn is given when all tasks
				 that have been woken have stopped */
	unsigned halting;     /* so many reasons why nobody is given the turn */
	uint64_t random;      /* state of chaos; 0: none */
	unsigned epoch, rate; /* decisions left in it; a turn ends at 1 in rate */
	struct domain *next;
};

/* An address space and its event stream. */
struct aspace {
	uint32_t stream;
	struct domain *domain;
	unsigned ntasks;
	bool shared;   /* has writable mappings that a fork shares */
	bool stopped;  /* a note ended its replayable part */
	bool undumpable; /* as prctl(2) was told, not as it is */
	struct tr_patches patches;
	struct tr_digest *digest; /* of its memory, or NULL */
	uint64_t digested;        /* when it was last computed */
	struct block {  /* of scratch memory, in ascending order */
		uint64_t start, end;
		const struct task *owner;
	} *blocks;
	size_t nblocks, blocks_cap;
	struct extent { /* writable memory, as last seen; 0: not known */
		uint64_t start, end;
	} *writable;
	size_t nwritable, writable_cap;
	struct followed { /* privately mapped file whose size may change */
		uint64_t ino, size;
		uint32_t file; /* in the store */
		int fd;
	} *followed;
	size_t nfollowed, followed_cap;
	bool grows; /* one of them is written to by a recorded task */
	struct tr_calls calls;
	bool points;      /* a task was stopped inside a computation */
	bool intercept;   /* its calls may be made by the injected code */
	bool alone;        /* as the injected code was told */
	bool mixed_files;  /* its tasks may have different descriptors */
	bool shared_files; /* other address spaces change its descriptors */
	bool writes_inside; /* to the outputs, by the injected code */
	uint64_t drained; /* when the log was last looked at, */
	uint64_t log_from, log_done; /* and the bytes and calls seen then */
	struct tr_regs last; /* registers after its last call in the log */
};

/* A signal taken from the kernel but not yet given to the program. */
struct held_signal {
	siginfo_t info;
	uint64_t since;
	bool queued; /* sent again, to arrive at the next boundary */
	bool passed; /* the program's own tracer has let it through */
};

/* A system call between its entry and its exit. */
struct inflight {
	const struct tr_sys *sys; /* NULL: number unknown to the model */
	struct tr_call call;
	struct tr_regs entry;
	uint64_t since, until;
	struct tr_arg *arg; /* memory it read; owned with its bytes */
	size_t narg, arg_cap;
	int denied;         /* errno the recorder answers with, or 0 */
	bool skipped;       /* and the kernel has been made to skip the call */
	bool steady;        /* it reads a file: waits for nobody */
	struct moved *moved; /* it writes to scratch memory, or NULL */
	bool exposed;       /* it may write to the program's at any time */
	uint32_t halted;    /* domain that waits for its end, or 0 */
	int output;         /* 1 stdout, 2 stderr of the recording */
	bool held_up;       /* while another process writes there */
	bool recorded;      /* an enter or clone event was written */
	bool interrupted;   /* stopped with a restart code, may go on */
	bool args_changed;  /* registers to put back at the exit */
	bool answered;      /* in the kernel's place, with `answer` */
	int64_t answer;
	bool changed;       /* the task's tracer has changed its registers */
	bool past_filter;   /* a filter of the program's own has let it pass */
	bool restarted;     /* goes into the kernel another time */
	bool again;         /* sent back into the kernel by the recorder, */
	bool pausing;       /* and waits in pause(2) */
	bool unknown;       /* the model does not know what it writes */
	bool layout_changed; /* unknown, and mappings changed */
	struct tr_way way;   /* how its site was patched, or no hole */
	struct tr_pages *pages; /* memory before it, or NULL */
};

struct task {
	uint32_t id, parent;
	pid_t tid, pid;
	int cpu;
	uint64_t calls;    /* since the last state digest */
	bool state_due;    /* digest its state before it runs on */
	struct aspace *as;
	bool started;      /* its first event was written */
	bool ended;        /* and its last */
	bool filtered;     /* has a seccomp filter of its own */
	bool untraced;     /* made with CLONE_UNTRACED, which was taken out */
	bool in_call;
	bool new_image;    /* execve has replaced the address space */
	bool leaving;      /* stopped at its exit from injected code */
	bool stop_later;   /* to be stopped when it is out of it */
	struct tr_regs seen; /* when a call of its was last traced */
	struct inflight fl;
	struct held_signal *held;
	size_t nheld, held_cap;
	struct traced *vt; /* traced by another task, or NULL: ptrace.h */
	bool no_cldstop;   /* its process takes no SIGCHLD for stops */
	bool telling;      /* SIGCHLD with this information is on its way */
	siginfo_t told;
	bool regs_set;     /* by its tracer, since it stopped */
	bool passed;       /* the signal at hand was let through by its tracer */
	struct forced {    /* SIGTRAP and SIGSEGV, as the program set them */
		bool blocked;
		struct kernel_action { /* the kernel's struct sigaction */
			uint64_t handler, flags, restorer, mask;
		} action;
	} forced[2];
	int entering;      /* signal whose handler waits for the turn */
	int delivering;    /* signal whose handler is being entered, or 0 */
	siginfo_t delivering_info;
	struct tr_regs delivering_regs;
	uint64_t interrupting; /* since when it is being stopped in its
				  computation, or 0; because: */
	bool force;        /* a held signal waited too long */
	bool put_off;      /* it is about to enter the call it came to first */
	/* scheduling */
	bool queued, yields, exiting;
	bool favoured;        /* chaos: runs before those that are not */
	uint64_t latency;     /* the program's wish: ns it may wait */
	uint64_t deadline;    /* of the turn it waits for */
	uint64_t ran_since;   /* when it was last given the turn */
	struct spinning {     /* does it wait in a loop? (spin.c) */
		uint64_t next;      /* not to be looked at before, */
		uint64_t gap;       /* nor sooner than that after a look */
		unsigned trust;     /* looks at which it need not be found */
		struct code { /* from one instruction to another */
			uint64_t low, high;
		} loop,       /* it waited in last; */
		  other;      /* where it looked like that, but computed */
		bool inside;        /* its last turn ended in the loop */
		unsigned counted;   /* so many times, since it was elsewhere,
				       in one that may be a computation */
		bool looking;       /* it is being stopped for a look */
	} spin;
	int stop_status;      /* of a stop that is handled in its turn */
	int run_how, run_sig; /* how to resume it when its turn comes, */
	void (*on_turn)(struct recorder *r, struct task *t); /* or what to do */
	struct task *run_next;
	/* memory the kernel writes when the task ends */
	uint64_t clear_tid;   /* set_tid_address(2) */
	uint64_t robust_list; /* set_robust_list(2) */
	struct end_write {
		uint64_t addr;
		uint32_t value;
	} *end_writes;
	size_t nend, end_cap;
	struct task *next;
};

/* A stop or death of a task whose creation has not been seen yet. */
struct early {
	pid_t tid;
	int status;
};

/* A tracee that has ended, to be told to its tracer's wait call. */
struct death {
	pid_t tracer, tid, pgid;
	int status;
};

/* A file that a domain has mapped shared. */
struct shared_file {
	dev_t dev;
	ino_t ino;
	uint32_t file; /* store id */
	struct domain *domain;
	bool writable;
};

#define REC_READINGS 8

struct recorder {
	const struct tr_record_options *options;
	enum tr_cpu_level cpu_level; /* what CPUID tells the program of */
	int dirfd;
	struct tr_writer *writer; /* NULL once events cannot be written */
	struct tr_store *store;
	struct tr_manifest manifest;
	struct tr_site_cache sites;
	struct tr_digester *digester;
	struct tr_state_room state_room;
	bool intercept;
	struct tr_calls_control *control; /* what the injected code begins with */
	struct tr_room_cache rooms;
	struct tr_known known; /* sites that have been patched */
	int learned_dir;       /* what is kept of files' code, or -1 */
	struct learned {
		uint32_t file; /* store id */
		struct stat st;
		uint64_t first_page; /* XXH3 of it */
		bool settled;  /* changes since would be seen in st */
		bool found;    /* it was there, */
		size_t nknown; /* with so many sites patched before, */
		size_t nrooms; /* and so many that could not be */
	} *learned;            /* stored files */
	size_t nlearned, learned_cap;
	uint8_t *log; /* room for one log */
	FILE *audit; /* where disagreements with the model go, or NULL */

	const struct task *writing; /* to an output, or NULL, */
	uint64_t writing_since;     /* and since when */

	struct reading {              /* files whose data is read (reading.c) */
		const struct aspace *as; /* NULL: unused */
		int fd;
		struct tr_source *source; /* NULL: nothing can be cloned */
		uint64_t next;            /* where the descriptor stands */
		uint64_t used;
	} reading[REC_READINGS];
	uint64_t readings;
	unsigned wrong_sources;
	bool no_clones;

	uint64_t start_ns, number;
	uint64_t latest; /* time of the last event */
	uint32_t next_task, next_stream;
	uint64_t files;
	struct task *tasks;
	struct domain *domains;
	struct shared_file *shared;
	size_t nshared, shared_cap;
	struct tr_table written; /* inodes of files that tasks write to */
	struct early *early;
	size_t nearly, early_cap;
	struct death *deaths;
	size_t ndeaths, deaths_cap;
	bool memory_files; /* a /proc/PID/mem has been opened */
	int *cpus;
	size_t ncpus, next_cpu;
	uint64_t moments; /* random numbers: when to interrupt computations */
	bool hurry;  /* something waits for less than a full tick */
	bool soon;   /* and what has just got the turn, for much less */
	int own_cpu; /* the core this thread is on with its only task, or -1 */

	int terms_passed;    /* SIGTERMs to the recorder that were obeyed */
	uint64_t term_since; /* the first */
	pid_t root;
	int root_status;
	bool root_done;
	char stopped[256]; /* first reason why replay ends early */
	char unreached[512]; /* what --portable does not hold, by name */
	uint64_t stopped_at;
	char refused[160]; /* first request of a tracer that was refused */
	uint64_t refusals;
	bool lost;
	struct tr_buf scratch; /* effect data of the event being built, */
	struct tr_mem *pieces; /* and where it belongs */
	size_t pieces_cap;
};

/* events.c: numbering and writing events. */
void rec_emit(struct recorder *r, struct tr_event *ev);
void rec_emit_at(struct recorder *r, struct tr_event *ev, uint64_t now);
struct tr_event rec_event(enum tr_event_type type, const struct task *t);
/* From here on the task's address space cannot be replayed. */
void rec_stop_replay(struct recorder *r, struct task *t, enum tr_note code,
		     const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void rec_note(struct recorder *r, uint32_t stream, uint32_t task,
	      enum tr_note code, const char *text);
/* Read memory ranges of a task into pieces an event can carry; the arrays are
 * valid until the next call. */
void rec_read_ranges(struct recorder *r, const struct task *t,
		     const struct tr_ranges *ranges, struct tr_event *ev);
/* Take the finished digests of stored files; all of them when `wait`. */
void rec_digests(struct recorder *r, bool wait);

/* state.c */
/* Record the digests of the stopped task's state, unless the kernel may change
 * it at any time.  may_call: it can make remote calls at this stop. */
void rec_state(struct recorder *r, struct task *t, bool may_call);
/* The digest of its memory at a point inside a computation; false when there is
 * none. */
bool rec_point_digest(struct recorder *r, struct task *t, uint64_t *root);

/* Note that a call has returned: a state may be due before the task goes on. */
void rec_state_count(const struct recorder *r, struct task *t);
/* Is one due by time? */
bool rec_state_overdue(const struct recorder *r, const struct task *t,
		       uint64_t now);

/*
 * learned.c: what is kept of files' code from one recording to the next.
 * Without the directory, or when something is wrong with it, nothing is.
 */
void rec_learned_open(struct recorder *r);
/* A file enters the store: take what is kept of it; the list of its sites, which
 * its event tells the replay, goes to `known`. */
void rec_learned_load(struct recorder *r, const struct tr_store_file *f,
		      struct tr_buf *known);
void rec_learned_save(struct recorder *r);
void rec_learned_release(struct recorder *r);

/* files.c: the store.  Each gives a file's id, 0 for what is anonymous memory,
 * -1 with err for what cannot be stored. */
int64_t rec_store_fd(struct recorder *r, const struct task *t, int fd,
		     struct stat *st, struct tr_error *err) TR_MUST_CHECK;
/* The System V segment mapped at addr; fills the mapping, too. */
int64_t rec_store_segment(struct recorder *r, const struct task *t,
			  uint64_t addr, struct tr_map *m, struct stat *st,
			  struct tr_error *err) TR_MUST_CHECK;
int64_t rec_store_vma(void *recorder, pid_t tid, const struct tr_vma *v,
		      struct tr_error *err);

/* calls.c: system calls. */
void rec_call_enter(struct recorder *r, struct task *t);
void rec_call_exit(struct recorder *r, struct task *t);
bool rec_is_exec(const struct task *t); /* the call in flight */
/* The filter's stop, for tasks whose entry was seen before it. */
void rec_call_filtered(struct recorder *r, struct task *t);
/* Was it put off, at its entry, until after a stop that is due? */
bool rec_call_put_off(struct task *t);
/* The task's turn has come, and its tracer, if it has one, lets it enter. */
void rec_call_proceed(struct recorder *r, struct task *t);
void rec_call_record_entry(struct recorder *r, struct task *t);
/* The same for a call that has blocked, with what it wrote so far. */
void rec_call_record_blocked(struct recorder *r, struct task *t);
void rec_call_finish_interrupted(struct recorder *r, struct task *t);
/* The same with these registers. */
void rec_call_finish_as(struct recorder *r, struct task *t,
			const struct tr_regs *regs);
void rec_call_release(struct task *t);
/* What follows from a call for the recorder, be it traced or made by the
 * injected code. */
void rec_call_made(struct recorder *r, struct task *t,
		   const struct tr_call *c);

/* denied.c: calls answered in the kernel's place. */
/* The errno for a request that the engine cannot support, or 0. */
int rec_refusal(const struct tr_call *c);
/* True when the task is told *result, and nothing is done. */
bool rec_pretend(struct task *t, int64_t *result);

/* buffered.c: calls made by the injected code. */
/* A new image, stopped before its first instruction: may injected code make its
 * calls?  Let it. */
void rec_calls_admit(struct recorder *r, struct task *t);
void rec_calls_begin(struct recorder *r, struct task *t);
/* The task stopped: record what it did since it last ran. */
void rec_calls_drain(struct recorder *r, struct task *t);
/* Record what running tasks have done so far, and see that turns end. */
void rec_calls_tick(struct recorder *r);
/* The task runs on: tell the injected code what has changed. */
void rec_calls_update(const struct recorder *r, struct task *t);
/* A call was traced: let the injected code make the next one at its site. */
void rec_calls_patch(struct recorder *r, struct task *t,
		     const struct tr_regs *regs);
/*
 * Does the injected code do the instruction, or a system call when it is 0, in
 * this recording?  With --portable CPUID does not tell the truth, and what the
 * kernel traps it would trap in there.
 */
bool rec_calls_do(const struct recorder *r, enum tr_insn insn);
/* An instruction has trapped: let the injected code do it from here on; false:
 * it goes on trapping. */
bool rec_calls_patch_insn(struct recorder *r, struct task *t, uint64_t at,
			  const struct tr_site *site, struct tr_way *way);
/* Tell in the event how the code was changed. */
void rec_calls_tell_way(struct tr_event *ev, const struct tr_way *way);
/* The next call must be traced. */
void rec_calls_trace_next(struct task *t);
/* It is to stop behind the call that is under way, or else the next one. */
void rec_calls_trace_this(struct task *t);
/* A descriptor is the output with that number or none (0), or may change. */
void rec_calls_know_fd(struct recorder *r, struct task *t, uint64_t fd,
		       int output);
void rec_calls_forget_fd(struct task *t, uint64_t fd);
void rec_calls_forget_fds(struct task *t);
/* Is this a stop of the injected code's own? */
bool rec_calls_stop_here(const struct tr_regs *regs);
/* The task is at one: to show a call that it has made, which was in the log, or
 * at its exit, as asked for. */
bool rec_calls_leaves(struct task *t, struct tr_regs *regs);
void rec_calls_left(struct recorder *r, struct task *t);
/* The task stopped inside the injected code: see that it comes out. */
void rec_calls_expel(struct task *t, struct tr_regs *regs);
/* The task's tracer has stopped it: when it is inside the injected code, that
 * has to wait. */
bool rec_calls_stop_later(struct task *t);
/* A fault of the injected code itself: true when that was dealt with. */
bool rec_calls_fault(struct recorder *r, struct task *t, int sig, int si_code,
		     struct tr_regs *regs);

/* mapping.c: calls that map. */
/* What follows from a call that changes mappings. */
void rec_mapping_changed(struct task *t, const struct tr_call *c);
/*
 * The mapping a successful call made, which the event tells, and the status of
 * the file behind it; its code is patched.  -1 with err when replay could not
 * make it.
 */
int rec_describe_mapping(struct recorder *r, struct task *t,
			 const struct tr_call *c, struct tr_map *m,
			 struct stat *st, struct tr_event *ev,
			 struct tr_error *err) TR_MUST_CHECK;
void rec_after_mapping(struct recorder *r, struct task *t,
		       const struct tr_call *c, const struct tr_map *m,
		       const struct stat *st);
/* Patch the code in it; *changed counts the sites that are known. */
int rec_patch_mapping(struct recorder *r, struct task *t,
		      const struct tr_map *m, uint64_t *changed,
		      struct tr_error *err) TR_MUST_CHECK;

/* capture.c: what calls write. */
void rec_capture_begin(struct recorder *r, struct task *t);
/* ev is the call's event, with all but its memory. */
void rec_call_effects(struct recorder *r, struct task *t,
		      const struct tr_event *ev, struct tr_ranges *out);
/* Others write the domain's memory, too, from here on: there is nothing to
 * audit in calls that have begun. */
void rec_capture_disturbed(struct recorder *r, const struct domain *d);

/* scratch.c: memory that the kernel writes while other tasks run. */
/* The task is at its call's entry: exchange what must be. */
void rec_scratch_begin(const struct recorder *r, struct task *t);
/* The kernel makes the interrupted call again. */
bool rec_scratch_again(struct task *t);
/* Put the arguments back as the program knows them. */
void rec_scratch_args(const struct task *t, struct tr_regs *regs);
/* Copy the results to where they belong; false: the program's memory is not
 * there any more. */
bool rec_scratch_finish(struct task *t);
void rec_scratch_release(struct moved *m);
/* The task leaves its address space; a new one is a copy of another. */
void rec_scratch_leave(struct task *t);
void rec_scratch_copy(struct aspace *to, const struct aspace *from);
/* Memory may not be writable any more. */
void rec_writable_forget(struct aspace *as);

/* signals.c: signal-delivery stops and trapped instructions. */
void rec_signal_stop(struct recorder *r, struct task *t, int sig);
/* Deliver a signal that the task's tracer has let through. */
void rec_signal_pass(struct recorder *r, struct task *t, const siginfo_t *si,
		     bool exact);
/* SIGCHLD as from the kernel, unless the task would not notice. */
void rec_send_sigchld(struct recorder *r, const struct task *tracer,
		      const siginfo_t *si);
/* Has the program a handler for it? */
bool rec_handles(const struct task *t, int sig);
/* Send the held signals again: they arrive at the exit of the next call, or at
 * the point where the task stands. */
void rec_release_held(struct task *t);
/* Interrupt tasks that compute on while a signal waits for them. */
void rec_force_overdue(struct recorder *r);
/* The task has stopped by a signal inside a computation: hold it back, if that
 * is what is done with it.  The task stays stopped. */
bool rec_signal_keep(struct recorder *r, struct task *t, int sig);
bool rec_signals_waiting(const struct recorder *r);
/* Has the program asked that the signal be ignored? */
bool rec_ignores(const struct task *t, int sig);

/* async.c: points inside computations. */
/* Stop the task, which is computing; its stop is for rec_interrupted. */
void rec_interrupt(struct task *t);
/* Is it going to stop, for that or at a call? */
bool rec_is_interrupting(const struct task *t);
void rec_interrupted(struct recorder *r, struct task *t);
/* Does the stop leave the task in its computation?  A signal is kept then. */
bool rec_still_computes(struct recorder *r, struct task *t, int status);
/* Is there a system call at ip, or something else that has its own event? */
bool rec_at_an_event(const struct task *t, uint64_t ip);
/* Single steps: let the task trap, if that is possible, and no longer. */
bool rec_allow_traps(const struct task *t, uint64_t *mask);
void rec_forbid_traps(const struct task *t, uint64_t mask);
/* One instruction.  False when the task came to something else, which has been
 * handled, or is gone. */
bool rec_step(struct recorder *r, struct task *t, uint64_t mask);
/* Record where the task stands, or a little further on; nothing where an event
 * has brought it.  False as rec_step. */
bool rec_record_point(struct recorder *r, struct task *t, enum tr_async reason);
/* Record a point in the loop in which the task waits for others.  It is told by
 * the registers and these words, or if not `exact`, with the memory's digest.
 * False as rec_step. */
bool rec_record_wait(struct recorder *r, struct task *t,
		     const struct tr_ranges *words, bool exact, uint64_t began);

/* spin.c: tasks that wait in a loop for others. */
/* Is the domain's running task to be looked at? */
bool rec_spin_due(const struct domain *d, uint64_t now);
/* How long until the next look, at most `most`, in ns. */
uint64_t rec_spin_wait(const struct recorder *r, uint64_t most);
/* Stop the task for a look; and look. */
void rec_spin_look_at(struct task *t);
void rec_spin_look(struct recorder *r, struct task *t);

/* words.c: memory that tells the passes of a computation apart. */
struct rec_words;
/* Let the task, which is stopped in a computation, run for so long.  False when
 * it came to something else, which has been handled. */
bool rec_run_a_moment(struct recorder *r, struct task *t, uint64_t ns);
/* Let the task, which is stopped in a computation, run for a moment to see what
 * changes.  False when it came to something else, which has been handled.
 * *words is for the caller to free in any case. */
bool rec_words_watch(struct recorder *r, struct task *t,
		     struct rec_words **words);
/* Where those words are that have changed until now (w is not NULL), and the
 * stack; once. */
void rec_words_take(const struct task *t, struct rec_words *w,
		    const struct tr_regs *regs, struct tr_ranges *words);
void rec_words_free(struct rec_words *w);

/* forced.c: signals that trapped instructions raise. */
/* The task's signal mask may have changed; its call has set an action. */
void rec_forced_mask(struct task *t);
/* The same by what was asked of rt_sigprocmask(2). */
void rec_forced_changes(struct task *t, int how, const struct tr_bytes *set);
void rec_forced_action(struct recorder *r, struct task *t);
void rec_forced_inherit(const struct task *t, struct task *child);
void rec_forced_exec(struct task *t);
/* An instruction has trapped by the signal. */
void rec_forced_restore(struct task *t, int sig);
/* Then the task must make no remote calls that end in int3. */
bool rec_ignores_trap(const struct task *t);

/* lifecycle.c: tasks and address spaces. */
struct task *rec_task_new(struct recorder *r, pid_t tid, pid_t pid,
			  struct aspace *as);
struct task *rec_task_find(struct recorder *r, pid_t tid);
/* In the given domain, or in one of its own. */
struct aspace *rec_aspace_new(struct recorder *r, struct domain *d);
void rec_aspace_leave(struct recorder *r, struct task *t);
void rec_clone_event(struct recorder *r, struct task *t);
void rec_task_first_stop(struct recorder *r, struct task *t);
/* PTRACE_EVENT_EXIT: the task is about to end. */
void rec_task_ends(struct recorder *r, struct task *t);
void rec_task_died(struct recorder *r, struct task *t, int status);
/* The task that goes on after execve under the leader's id. */
struct task *rec_task_takes_over(struct recorder *r, struct task *leader,
				 pid_t former);
int rec_next_cpu(struct recorder *r);
/* The task has memory of its own from here on: to a core that has less to do
 * than its own, if there is one. */
void rec_place(struct recorder *r, struct task *t);

/* exec.c: a new program image. */
void rec_exec_done(struct recorder *r, struct task *t);

/* growth.c: private mappings of files that grow or shrink. */
/* A task writes to the descriptor.  Has anybody mapped its file so?  Then they
 * are looked at, and nothing is known of the descriptor. */
bool rec_growth_written(struct recorder *r, const struct task *t, int fd);
void rec_growth_mapped(struct recorder *r, struct task *t,
		       const struct tr_call *c, const struct tr_map *m,
		       const struct stat *st);
void rec_growth_copy(struct aspace *to, const struct aspace *from);
void rec_growth_release(struct aspace *as);
/* After a call: record what has changed. */
void rec_growth_check(struct recorder *r, struct task *t);

/* shared.c: shared mappings of files. */
/*
 * reading.c: the writer is told what the data of a call that reads much is from,
 * if that is known, until rec_reading_over.  `later`: bytes that calls after it,
 * which have been made, read from the same descriptor.
 */
bool rec_reads_much(const struct tr_call *c);
void rec_reading(struct recorder *r, const struct task *t,
		 const struct tr_call *c, uint64_t later);
void rec_reading_over(struct recorder *r);
/* The descriptor is closed, is another file's, or was set to another place. */
void rec_reading_moved(struct recorder *r, const struct aspace *as,
		       uint64_t fd);
void rec_reading_release(struct recorder *r, const struct aspace *as);

/* outputs.c: processes that run side by side write one after the other. */
/* Are there several? */
bool rec_outputs_in_turn(const struct recorder *r);
/* From now on there are: none writes to them by the injected code. */
void rec_outputs_shared(struct recorder *r);
/* May the task enter its call?  If not, rec_call_proceed comes later. */
bool rec_output_begin(struct recorder *r, struct task *t);
/* Its event is written, or the call is not going to be finished. */
void rec_output_end(struct recorder *r, const struct task *t);
/* Do not wait for who takes too long.  Is anybody waiting? */
bool rec_outputs_overdue(struct recorder *r);

/* The task has mapped the file shared: domains that see each other's writes
 * through it become one. */
void rec_map_shared(struct recorder *r, struct task *t, const struct stat *st,
		    uint32_t file, bool writable);
/* If the call in flight changed a file that is mapped shared, say in the event
 * where, so that replay changes the mapping. */
void rec_write_shared(struct recorder *r, const struct task *t,
		      struct tr_event *ev);
/* Where the descriptor's file stands, from /proc/PID/fdinfo/FD. */
bool rec_file_position(pid_t tid, int fd, uint64_t *pos);
/* Where in a file a call that has read or written began; false when it is no
 * such call. */
bool rec_file_offset(const struct task *t, uint64_t *offset, bool *writes);
/* The store's id of a file that is mapped shared, or 0. */
int64_t rec_shared_file(const struct recorder *r, const struct stat *st);
/*
 * The store's id under which tasks have the file mapped shared besides m, or 0.
 * It holds what they have made of it in the order of events; a copy taken now
 * would be ahead of those that are running.
 */
int64_t rec_shared_now(const struct recorder *r, const struct task *t, int fd,
		       const struct tr_map *m, struct stat *st);
/* Does the recording map the descriptor's file shared? */
bool rec_maps_shared(const struct recorder *r, const struct task *t, int fd);
void rec_shared_forget(struct recorder *r, const struct domain *d);

/* ptrace.c: tracees of recorded tasks.  Each tells whether the task is held,
 * so that the caller leaves it alone. */
bool rec_traced_entry(struct recorder *r, struct task *t);
/* The program's filter asks its tracer: false when that does not listen. */
bool rec_traced_seccomp(struct recorder *r, struct task *t, unsigned long data);
bool rec_traced_broken(struct recorder *r, struct task *t);
bool rec_traced_exit(struct recorder *r, struct task *t, bool vforked);
bool rec_traced_exec(struct recorder *r, struct task *t);
bool rec_traced_birth(struct recorder *r, struct task *t);
bool rec_traced_handler(struct recorder *r, struct task *t);
bool rec_traced_insn(struct recorder *r, struct task *t);
bool rec_traced_signal(struct recorder *r, struct task *t, int sig,
		       const siginfo_t *si, bool exact);
bool rec_traced_event_stop(struct recorder *r, struct task *t, int sig);
bool rec_traced_clone(struct recorder *r, struct task *t, uint64_t flags,
		      pid_t child);
bool rec_traced_ends(struct recorder *r, struct task *t, unsigned long status);
void rec_traced_clone_child(struct task *t, struct task *child,
			    uint64_t flags);
void rec_traced_died(struct recorder *r, struct task *t, int status);
/* Its id before execve(2). */
void rec_traced_former(struct task *t, pid_t former);
/* Does its tracer let it go on by single steps? */
bool rec_traced_steps(const struct task *t);

/* foreign.c: memory and registers that another task changes. */
/* A call that writes to another's memory is at its entry; it is over. */
void rec_foreign_begin(struct recorder *r, struct task *t);
void rec_foreign_end(struct recorder *r, struct task *t);
int rec_poke_memory(struct recorder *r, struct task *o, uint64_t addr,
		    const void *data, size_t n) TR_MUST_CHECK;
void rec_poke_regs(struct recorder *r, struct task *o,
		   const struct tr_regs *before, const struct tr_regs *after);
void rec_poke_xstate(struct recorder *r, struct task *o);
void rec_poke_debug(struct recorder *r, struct task *o, int number,
		    uint64_t value);
/* What a call that succeeded did to other tasks' memory is recorded with them,
 * what it did so to its own is appended. */
void rec_foreign_memory(struct recorder *r, const struct task *t,
			struct tr_ranges *out);
/* The program's bytes where the recorder's breakpoints are. */
void rec_show_pieces(const struct task *t, struct tr_event *ev);
/* A file was opened. */
void rec_note_memory_file(struct recorder *r, const struct task *t, int fd);

/* sched.c: which task of a domain runs. */
/* Does nobody else see what the only task of the domain does?  A domain is
 * halted because another is about to change or to share its memory. */
static inline bool rec_is_alone(const struct domain *d)
{
	return d->ntasks == 1 && !d->halting;
}
/* The other domain's tasks are the task's domain's from here on. */
void rec_domain_join(struct recorder *r, struct task *t, struct domain *other);
struct domain *rec_domain_new(struct recorder *r, uint32_t id);
/* Nobody of the domain runs, each at a place that replay finds; until it goes
 * on, if it is there still. */
void rec_domain_halt(struct recorder *r, struct domain *d);
void rec_domain_go_on(struct recorder *r, uint32_t id);
/* Call `then` when the task has the turn: at once, or later.  Whatever changes
 * memory in an event of the task is done there. */
void rec_await_turn(struct recorder *r, struct task *t,
		    void (*then)(struct recorder *r, struct task *t));
/* The same for a task that ends: at once when the kernel writes nothing, or when
 * the turn is with a task that waits for the others of its process to end. */
void rec_await_end(struct recorder *r, struct task *t,
		   void (*then)(struct recorder *r, struct task *t));
/* The task goes on in user mode, now or when its turn comes. */
void rec_run(struct recorder *r, struct task *t, int how, int sig);
/* The same at a place that no event names: it must not lose its turn there. */
void rec_go_on(struct recorder *r, struct task *t, int sig);
/* SIGSTOP and the like have stopped it. */
void rec_stopped(struct recorder *r, struct task *t);
/* The running task goes into its system call. */
void rec_enter_kernel(struct task *t, int how);
/* The task does not run for now: it is stopped, blocked for long, or gone. */
void rec_rest(struct recorder *r, struct task *t);
/* Leave the domain: the task ends or gets memory of its own. */
void rec_domain_leave(struct recorder *r, struct task *t);
/* Give the turn of tasks that block in the kernel to others.  True while one
 * might, so that the caller must not sleep long. */
bool rec_sched_poll(struct recorder *r);
/* Interrupt tasks that have kept others waiting for too long. */
void rec_preempt(struct recorder *r);
/* Does a task wait for its turn while another computes? */
bool rec_sched_waiting(const struct recorder *r);

/* policy.c: who is next. */
/* The program has changed the task's priority. */
void rec_update_priority(struct task *t);
void rec_policy_seed(const struct recorder *r, struct domain *d);
void rec_policy_enqueue(struct domain *d, struct task *t);
/* Of those that wait, of which there is one. */
struct task *rec_policy_next(struct recorder *r, struct domain *d);
/* May others run, now that the task could go on in user mode? */
bool rec_policy_turn_is_over(struct recorder *r, struct domain *d,
			     const struct task *t);
/* How long its turn may last, in ns, when it makes no system calls. */
uint64_t rec_policy_patience(struct recorder *r, struct domain *d,
			     const struct task *t);

/* interrupts.c: signals to the recorder. */
#define REC_TICK_US 100000 /* how often it looks after what waits */
#define REC_WATCHED 5
void rec_catch_signals(struct sigaction old[]);
void rec_restore_signals(const struct sigaction old[]);
/* Pass on what has come. */
void rec_pass_signals(struct recorder *r);
/* Waiting is interrupted so often: at most once a second. */
void rec_set_tick(uint64_t ns);

/* recorder.c */
void rec_dispatch(struct recorder *r, struct task *t, int status);
/* Resume.  A task with a filter of its own stops at every entry: calls that
 * its filter answers never reach ours.  One that SIGKILL took
 * meanwhile reports its death by itself. */
void rec_resume(struct task *t, int how, int sig);

/* ---- portable.c: without --portable they do nothing ---- */

void rec_portable_start(struct recorder *r);
void rec_portable_mapped(struct recorder *r, const struct task *t,
			 const struct tr_map *m);
/* mprotect(2) has succeeded. */
void rec_portable_protected(struct recorder *r, const struct task *t);
void rec_portable_opened(struct recorder *r, const struct task *t,
			 const struct tr_bytes *path);

#endif
