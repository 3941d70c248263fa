/*
 * Words of memory that tell the passes of a computation apart, for replay to
 * compare at each (async.c).
 *
 * Where registers and stack are the same again and again, as in the main loop
 * of an interpreter, something else in memory differs, or the computation would
 * never end.  It is likely where pointers lead from the registers and the
 * stack, or in the static data of the code that runs: such pages are copied,
 * the task is let run for a moment, and the words that have changed then are
 * what to look at.  Two passes that agree in all of them are likely further
 * apart than that moment; as it is a part of the time since the last event,
 * there are few, and the digest of the memory decides between these.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/record/recorder.h"
#include "libtrace/state/maps.h"
#include "libtrace/state/regs.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/pagemap.h"
#include "libtrace/tracee/tracee.h"

/* The moment: this part of the time since the last event, within limits. */
#define PART 200
#define MOMENT_MIN_NS UINT64_C(100000)
#define MOMENT_MAX_NS UINT64_C(2000000)
#define MOMENTS_MAX 4
/* It is waited so long for it on a busy machine. */
#define WAIT_NS UINT64_C(50000000)

/* What is looked at: bytes of the stack, pages, pointers that are followed, and
 * bytes behind each. */
#define STACK_BYTES 512u
#define PAGES_MAX 160u
#define STATIC_MAX 48u
#define LOCAL_BYTES 8192u
#define POINTERS_MAX 320u
#define TARGET_BYTES 256u
/* And what is taken of it. */
#define WORDS_PER_PAGE 8u
#define WORDS_PER_POINT 160u
#define CALLERS_BYTES 8192u

#define PAGE_WORDS (TR_PAGE / 8)

struct rec_words {
	struct tr_vmas vmas;
	uint64_t pointer[POINTERS_MAX];
	size_t npointers;
	size_t npages;
	struct page {
		uint64_t addr;
		unsigned changed; /* words of it */
		uint64_t word[PAGE_WORDS];
	} page[PAGES_MAX];
};

void rec_words_free(struct rec_words *w)
{
	if (w)
		tr_vmas_release(&w->vmas);
	free(w);
}

/* ---- where to look ---- */

/* Can the program, and nobody else, change it with a store? */
static bool is_own(const struct tr_vma *v)
{
	return (v->prot & PROT_WRITE) && !(v->prot & PROT_EXEC) &&
	       !(v->flags & MAP_SHARED) && !tr_is_engine(v->start, v->end);
}

static void add_page(struct rec_words *w, uint64_t addr)
{
	addr &= ~(uint64_t)(TR_PAGE - 1);
	for (size_t i = 0; i < w->npages; i++)
		if (w->page[i].addr == addr)
			return;
	if (w->npages < PAGES_MAX)
		w->page[w->npages++].addr = addr;
}

static void add_pointer(struct rec_words *w, uint64_t word)
{
	const struct tr_vma *v = tr_vmas_find(&w->vmas, word);

	if (!v || !is_own(v))
		return;
	for (size_t i = 0; i < w->npointers; i++)
		if (w->pointer[i] == word)
			return;
	add_page(w, word);
	if (w->npointers < POINTERS_MAX)
		w->pointer[w->npointers++] = word;
}

static void add_target(const struct task *t, struct rec_words *w, uint64_t addr,
		       size_t bytes)
{
	uint64_t word[STACK_BYTES / 8];
	size_t n = tr_memory_read_some(t->tid, addr & ~UINT64_C(7), word,
				       bytes) / 8;

	for (size_t i = 0; i < n; i++)
		add_pointer(w, word[i]);
}

/* The data and bss of the file whose code runs. */
static void add_static(struct rec_words *w, uint64_t ip)
{
	const struct tr_vma *code = tr_vmas_find(&w->vmas, ip);
	size_t limit = w->npages + STATIC_MAX;
	uint64_t end = 0;

	for (size_t i = 0; code && code->ino && i < w->vmas.n; i++) {
		const struct tr_vma *v = &w->vmas.v[i];
		bool same = v->ino == code->ino && v->major == code->major &&
			    v->minor == code->minor;

		if (same)
			end = v->end;
		if (!is_own(v) ||
		    !(same || (v->start == end && !v->ino && !v->name[0])))
			continue;
		for (uint64_t a = v->start; a < v->end; a += TR_PAGE)
			if (w->npages < limit)
				add_page(w, a);
	}
}

/* Thread-local variables, below what fs points to (System V ABI for x86-64,
 * "Thread-Local Storage"). */
static void add_thread_local(struct rec_words *w, uint64_t fs_base)
{
	for (uint64_t below = 8; below < LOCAL_BYTES; below += TR_PAGE)
		add_pointer(w, fs_base - below);
	add_pointer(w, fs_base);
}

/* Breadth first: what is near comes before what is far. */
static void find_pages(const struct task *t, struct rec_words *w,
		       const struct tr_regs *g)
{
	const uint64_t reg[] = {
		g->rsp, g->rax, g->rbx, g->rcx, g->rdx, g->rsi, g->rdi, g->rbp,
		g->r8, g->r9, g->r10, g->r11, g->r12, g->r13, g->r14, g->r15};

	for (size_t i = 0; i < sizeof reg / sizeof *reg; i++)
		add_pointer(w, reg[i]);
	add_thread_local(w, g->fs_base);
	add_static(w, g->rip);
	add_target(t, w, g->rsp, STACK_BYTES);
	for (size_t i = 0; i < w->npointers && w->npages < PAGES_MAX; i++)
		add_target(t, w, w->pointer[i], TARGET_BYTES);
}

static void copy_pages(const struct task *t, struct rec_words *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->npages; i++) {
		struct page *p = &w->page[kept];

		p->addr = w->page[i].addr;
		kept += tr_memory_read_some(t->tid, p->addr, p->word,
					    TR_PAGE) == TR_PAGE;
	}
	w->npages = kept;
}

/* ---- the moment ---- */

/* How long the task has been running, in ns: the first number of
 * /proc/TID/schedstat (Documentation/scheduler/sched-stats.rst). */
static bool ran(pid_t tid, uint64_t *ns)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/schedstat", (int)tid);
	TR_AUTOFCLOSE FILE *f = fopen(path, "re");
	return f && fscanf(f, "%" SCNu64, ns) == 1;
}

static uint64_t moment(const struct task *t)
{
	uint64_t ns = (tr_now_ns() - t->ran_since) / PART;

	if (ns < MOMENT_MIN_NS)
		return MOMENT_MIN_NS;
	return ns < MOMENT_MAX_NS ? ns : MOMENT_MAX_NS;
}

/* The running task's stop: 1 when that was asked for, because the time was
 * over, 0 when it stopped by itself, or -1 when it is gone. */
static int stop_of(struct task *t, uint64_t enough, uint64_t deadline,
		   int *status)
{
	const struct timespec pause = {0, (long)MOMENT_MIN_NS};

	for (;;) {
		uint64_t now = 0;
		pid_t got;

		nanosleep(&pause, NULL);
		got = waitpid(t->tid, status, __WALL | WNOHANG);
		if (got != 0)
			return got < 0 ? -1 : 0;
		if (tr_now_ns() < deadline && ran(t->tid, &now) && now < enough)
			continue;
		rec_resume(t, TR_RESUME_INTERRUPT, 0);
		return tr_tracee_wait(t->tid, status, 0) < 0 ? -1 : 1;
	}
}

bool rec_run_a_moment(struct recorder *r, struct task *t, uint64_t ns)
{
	uint64_t before = 0;
	uint64_t deadline = tr_now_ns() + WAIT_NS;
	int status, over;

	if (!ran(t->tid, &before))
		deadline = tr_now_ns() + ns;
	do {
		rec_resume(t, TR_RESUME_CONT, 0);
		over = stop_of(t, before + ns, deadline, &status);
		if (over < 0)
			return false;
		if (!rec_still_computes(r, t, status)) {
			rec_dispatch(r, t, status);
			return false;
		}
	} while (!over);
	return true;
}

/* A virtual machine can be stopped for all of a moment. */
static bool has_stood_still(const struct task *t, const struct rec_words *w,
			    const struct tr_regs *before)
{
	uint64_t now[PAGE_WORDS];
	struct tr_regs regs;

	if (tr_tracee_get_regs(t->tid, &regs) < 0)
		return false;
	regs.rip = before->rip;
	regs.eflags = before->eflags;
	if (!tr_regs_equal(&regs, before))
		return false;
	for (size_t i = 0; i < w->npages; i++)
		if (tr_memory_read_some(t->tid, w->page[i].addr, now,
					sizeof now) != sizeof now ||
		    memcmp(now, w->page[i].word, sizeof now) != 0)
			return false;
	return true;
}

bool rec_words_watch(struct recorder *r, struct task *t, struct rec_words **words)
{
	struct rec_words *w = *words = tr_alloc(sizeof *w);
	struct tr_error err;
	struct tr_regs regs;
	int moments = 0;

	if (tr_tracee_get_regs(t->tid, &regs) < 0 ||
	    tr_vmas_read(t->tid, &w->vmas, &err) < 0)
		return false; /* SIGKILL took it */
	find_pages(t, w, &regs);
	copy_pages(t, w);
	do {
		if (!rec_run_a_moment(r, t, moment(t)))
			return false;
	} while (++moments < MOMENTS_MAX && has_stood_still(t, w, &regs));
	return true;
}

/* ---- what has changed ---- */

static int by_changes(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	if (x->changed != y->changed)
		return x->changed < y->changed ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Leave in each page what is not 0 where it has changed, as a mark. */
static void find_changes(const struct task *t, struct rec_words *w)
{
	uint64_t now[PAGE_WORDS];

	for (size_t i = 0; i < w->npages; i++) {
		struct page *p = &w->page[i];
		size_t got = tr_memory_read_some(t->tid, p->addr, now,
						 sizeof now) / 8;

		p->changed = 0;
		for (size_t k = 0; k < PAGE_WORDS; k++) {
			p->word[k] = k < got ? p->word[k] ^ now[k] : 0;
			p->changed += p->word[k] != 0;
		}
	}
}

static void take_from(const struct page *p, struct tr_ranges *words)
{
	unsigned left = WORDS_PER_PAGE;

	for (size_t k = 0; k < PAGE_WORDS && left; k++) {
		if (!p->word[k])
			continue;
		TR_GROW(words->r, words->n, words->cap);
		words->r[words->n++] = (struct tr_range){
			.addr = p->addr + 8 * k, .len = 8};
		left--;
	}
}

/* What is on the stack tells callers' iterations apart, and in a recursion only
 * what the outer callers have there does. */
static void take_stack(const struct rec_words *w, uint64_t sp,
		       struct tr_ranges *words)
{
	const struct tr_vma *v = w ? tr_vmas_find(&w->vmas, sp) : NULL;
	uint64_t most = w ? CALLERS_BYTES : STACK_BYTES;

	TR_GROW(words->r, words->n, words->cap);
	words->r[words->n++] = (struct tr_range){
		.addr = sp,
		.len = v && v->end - sp < most ? v->end - sp : most};
}

/* Counters are in pages with few changes, what is filled or moved in ones with
 * many. */
static void take_changes(const struct task *t, struct rec_words *w,
			 struct tr_ranges *words)
{
	find_changes(t, w);
	qsort(w->page, w->npages, sizeof *w->page, by_changes);
	for (size_t i = 0; i < w->npages && words->n < WORDS_PER_POINT; i++)
		take_from(&w->page[i], words);
}

void rec_words_take(const struct task *t, struct rec_words *w,
		    const struct tr_regs *regs, struct tr_ranges *words)
{
	if (w)
		take_changes(t, w, words);
	take_stack(w, regs->rsp, words);
}
