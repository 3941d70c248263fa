/*
 * A new program image: what is done at the exit of a successful execve before
 * the first instruction runs.  Everything that must be in place in every
 * program (engine pages, the vdso's removal, patches) is placed here.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/image.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/remote.h"
#include "libtrace/tracee/tracee.h"

#define CS_64BIT 0x33 /* __USER_CS, arch/x86/include/asm/segment.h */

/* What the set-up finds out about the new image. */
struct setup {
	uint64_t vdso, vdso_end, vvar;
	uint64_t brk;
};

/*
 * Hide the vdso from the C library, so that the clock is read by system
 * calls: its auxiliary vector entry becomes AT_IGNORE.  So does AT_HWCAP2,
 * which tells of FSGSBASE, when the program is held to a level.  The vector
 * follows argc, argv and envp on the initial stack.
 */
static int hide_entries(const struct recorder *r, pid_t tid, uint64_t rsp,
			struct tr_error *err)
{
	static const uint64_t ignore = AT_IGNORE;
	uint64_t word[512], at = rsp + 8;
	size_t i = 0, n = 0, part = 0; /* argv, envp, vector */
	bool is_type = true;

	for (;; at += 8, i++) {
		if (i == n) {
			n = tr_memory_read_some(tid, at, word, sizeof word) / 8;
			i = 0;
		}
		if (!n)
			return tr_fail_errno(err, "task %d: initial stack",
					     (int)tid);
		if (part < 2) {
			part += word[i] == 0;
			continue;
		}
		if (is_type && word[i] == AT_NULL)
			return 0;
		if (is_type && (word[i] == AT_SYSINFO_EHDR ||
				(word[i] == AT_HWCAP2 &&
				 r->cpu_level != TR_CPU_ALL)) &&
		    tr_memory_write(tid, at, &ignore, sizeof ignore) < 0)
			return tr_fail_errno(err, "task %d: auxiliary vector",
					     (int)tid);
		is_type = !is_type;
	}
}

static int find_vdso(pid_t tid, struct setup *s, struct tr_error *err)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};

	if (tr_vmas_read(tid, &vmas, err) < 0)
		return -1;
	for (size_t i = 0; i < vmas.n; i++) {
		const struct tr_vma *v = &vmas.v[i];

		if (strncmp(v->name, "[vvar", 5) == 0 && !s->vvar)
			s->vvar = v->start;
		if (strcmp(v->name, "[vdso]") == 0) {
			s->vdso = v->start;
			s->vdso_end = v->end;
		}
	}
	if (!s->vdso)
		return tr_fail(err, TR_EUNSUPPORTED,
			       "task %d: no vdso (booted with vdso=0?)",
			       (int)tid);
	return 0;
}

/* A syscall instruction (0f 05) in the vdso, used once to map our own. */
static int find_syscall_insn(pid_t tid, const struct setup *s, uint64_t *at,
			     struct tr_error *err)
{
	size_t n = s->vdso_end - s->vdso;
	TR_AUTOFREE uint8_t *code = tr_alloc(n);
	const uint8_t *p;

	n = tr_memory_read_some(tid, s->vdso, code, n);
	p = memmem(code, n, "\x0f\x05", 2);
	if (!p)
		return tr_fail(err, TR_EUNSUPPORTED,
			       "task %d: no system call in the vdso", (int)tid);
	*at = s->vdso + (uint64_t)(p - code);
	return 0;
}

static int set_up(const struct recorder *r, pid_t tid,
		  const struct tr_regs *regs, struct setup *s,
		  struct tr_error *err)
{
	TR_AUTOFREE struct tr_batch *b = tr_alloc(sizeof *b);
	uint64_t insn = 0, low;

	if (hide_entries(r, tid, regs->rsp, err) < 0 ||
	    find_vdso(tid, s, err) < 0 ||
	    find_syscall_insn(tid, s, &insn, err) < 0)
		return -1;
	low = s->vvar && s->vvar < s->vdso ? s->vvar : s->vdso;
	tr_batch_add(b, SYS_brk, 0, 0, 0, 0, 0, 0);
	tr_batch_add(b, SYS_munmap, low, s->vdso_end - low, 0, 0, 0, 0);
	if (tr_inject_pages(tid, insn, b, err) < 0)
		return -1;
	s->brk = (uint64_t)b->call[0].result;
	return 0;
}

static int emit_image(struct recorder *r, struct task *t,
		      const struct tr_regs *regs, const struct setup *s,
		      struct tr_error *err)
{
	struct tr_event ev = rec_event(TR_EV_IMAGE, t);
	struct tr_image im = {0};
	uint8_t xstate[TR_MAX_XSTATE];
	size_t xlen = sizeof xstate;
	struct rlimit stack = {0};
	char link[64], exe[4096];
	uint64_t changed = 0;
	ssize_t n;

	if (tr_image_capture(t->tid, rec_store_vma, r, &im, err) < 0) {
		tr_image_release(&im);
		return -1;
	}
	snprintf(link, sizeof link, "/proc/%d/exe", (int)t->tid);
	n = readlink(link, exe, sizeof exe);
	ev.text = (struct tr_bytes){exe, n < 0 ? 0 : (size_t)n};
	tr_event_mark(&ev, TR_F_TEXT);
	if (tr_tracee_get_xstate(t->tid, xstate, &xlen) == 0) {
		ev.xstate = (struct tr_bytes){xstate, xlen};
		tr_event_mark(&ev, TR_F_XSTATE);
	}
	prlimit(t->tid, RLIMIT_STACK, NULL, &stack);
	ev.regs = *regs;
	tr_event_mark(&ev, TR_F_REGS);
	tr_event_set(&ev, TR_F_PID, (uint64_t)t->pid);
	tr_event_set(&ev, TR_F_TID, (uint64_t)t->tid);
	tr_event_set(&ev, TR_F_PARENT, t->parent);
	tr_event_set(&ev, TR_F_BRK_START, s->brk);
	tr_event_set(&ev, TR_F_BRK, s->brk);
	tr_event_set(&ev, TR_F_STACK_LIMIT, stack.rlim_cur);
	if (t->cpu >= 0)
		tr_event_set(&ev, TR_F_CPU, (uint64_t)t->cpu);
	ev.map = im.map;
	ev.nmap = im.nmap;
	tr_event_mark(&ev, TR_F_MAP);
	ev.mem = im.mem;
	ev.nmem = im.nmem;
	rec_calls_admit(r, t);
	for (size_t i = 0; i < im.nmap; i++)
		if (rec_patch_mapping(r, t, &im.map[i], &changed, err) < 0) {
			tr_image_release(&im);
			return -1;
		}
	for (size_t i = 0; i < im.nmap; i++)
		if (im.map[i].file)
			rec_portable_mapped(r, t, &im.map[i]);
	t->as->patches.translated = tr_translates(&ev.text);
	if (t->as->patches.translated)
		tr_event_set(&ev, TR_F_TRANSLATED, 1);
	if (changed)
		tr_event_set(&ev, TR_F_CHANGED, changed);
	rec_emit(r, &ev);
	tr_image_release(&im);
	return 0;
}

/* The old address space has seen the last of this task. */
static void leave_old(struct recorder *r, struct task *t)
{
	if (t->fl.sys)
		rec_call_record_entry(r, t);
	rec_domain_leave(r, t);
	rec_aspace_leave(r, t);
	t->as = rec_aspace_new(r, NULL);
	t->as->ntasks = t->as->domain->ntasks = 1;
	t->as->domain->current = t;
	t->clear_tid = t->robust_list = 0;
}

void rec_exec_done(struct recorder *r, struct task *t)
{
	struct tr_error err;
	struct tr_regs regs;
	struct setup s = {0};

	t->new_image = false;
	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return;
	if (t->started) {
		rec_place(r, t);
		leave_old(r, t);
	}
	rec_call_release(t);
	t->seen = regs;
	t->started = true;
	if (regs.cs != CS_64BIT) {
		rec_stop_replay(r, t, TR_NOTE_NOT_64BIT,
				"it executes a 32-bit program");
	} else if (set_up(r, t->tid, &regs, &s, &err) < 0 ||
		   emit_image(r, t, &regs, &s, &err) < 0) {
		rec_stop_replay(r, t, TR_NOTE_UNMODELLED, "execve: %.150s",
				err.text);
	} else {
		rec_calls_begin(r, t);
		if (r->options->digest != TR_DIGEST_OFF)
			rec_state(r, t, true);
	}
	rec_forced_exec(t);
	t->no_cldstop = false; /* execve resets what handlers were set to */
	if (!rec_traced_exec(r, t))
		rec_run(r, t, TR_RESUME_CONT, 0);
}
