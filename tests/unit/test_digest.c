/*
 * Digests of address spaces against a process that changes its memory at
 * random: the digest kept up to date by tracked writes, the one computed from
 * scratch, the one without the kernel's help, and the sum computed page by
 * page from /proc/PID/mem must be the same every time.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/intercept/abi.h"
#include "libtrace/state/maps.h"
#include "libtrace/tracee/digest.h"
#include "libtrace/tracee/memory.h"
#include "libtrace/tracee/page_hash.h"
#include "libtrace/tracee/tracee.h"
#include "tests/unit/check.h"

#define PAGE 4096u
#define REGIONS 12
#define MAX_PAGES 64u
#define HUGE_PAGES 1536u /* room for huge pages */
#define GUARD_INSTALL 102

/* What both sides agree on, in memory that they share. */
static struct plan {
	uint64_t random;
	unsigned op;
	enum { AT_RANDOM, FILL, GO_ON, CUT } wanted;
	uint64_t touched; /* an address the last step changed, or 0 */
} *plan;

static struct region {
	uint8_t *at;
	size_t pages;
	int prot;
	bool shared;
} region[REGIONS];

static int data_fd; /* a file of MAX_PAGES pages */

static uint64_t random_below(uint64_t n)
{
	uint64_t *x = &plan->random;

	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x % n;
}

/* ---- the process under test ---- */

static void map_region(struct region *g, int kind)
{
	int flags = kind == 2 || kind == 3 ? MAP_SHARED : MAP_PRIVATE;
	int fd = kind == 1 || kind == 2 ? data_fd : -1;

	if (fd < 0)
		flags |= MAP_ANONYMOUS;
	g->pages = kind == 4 ? HUGE_PAGES : 1 + random_below(MAX_PAGES);
	g->prot = PROT_READ | PROT_WRITE;
	g->shared = flags & MAP_SHARED;
	g->at = mmap(NULL, g->pages * PAGE, g->prot, flags, fd, 0);
	if (g->at == MAP_FAILED)
		_exit(3);
	if (kind == 4)
		madvise(g->at, g->pages * PAGE, MADV_HUGEPAGE);
}

static void unmap_region(struct region *g)
{
	munmap(g->at, g->pages * PAGE);
	*g = (struct region){0};
}

static void write_region(struct region *g)
{
	uint64_t n = 1 + random_below(6);

	if (!(g->prot & PROT_WRITE))
		return;
	while (n-- > 0) {
		uint8_t *p = g->at + random_below(g->pages * PAGE);

		*p = (uint8_t)random_below(3); /* often what was there */
		plan->touched = (uintptr_t)p;
	}
}

static void read_region(const struct region *g)
{
	volatile uint8_t sum = 0;

	if (!(g->prot & PROT_READ))
		return;
	for (size_t i = 0; i < g->pages; i++)
		sum = (uint8_t)(sum + g->at[i * PAGE]);
}

static void protect_region(struct region *g)
{
	static const int prots[] = {PROT_NONE, PROT_READ,
				    PROT_READ | PROT_WRITE};

	g->prot = prots[random_below(3)];
	mprotect(g->at, g->pages * PAGE, g->prot);
}

static void move_region(struct region *g)
{
	size_t pages = 1 + random_below(MAX_PAGES);
	void *p = mremap(g->at, g->pages * PAGE, pages * PAGE, MREMAP_MAYMOVE);

	if (p == MAP_FAILED)
		return;
	g->at = p;
	g->pages = pages;
}

/* The pages move, the mapping stays. */
static void move_contents(struct region *g)
{
	struct region *to = &region[random_below(REGIONS)];
	void *p;

	if (to->at || g->shared)
		return;
	p = mremap(g->at, g->pages * PAGE, g->pages * PAGE,
		   MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (p == MAP_FAILED)
		return;
	*to = *g;
	to->at = p;
}

static void drop_pages(const struct region *g, int advice)
{
	size_t from = random_below(g->pages);

	madvise(g->at + from * PAGE, (1 + random_below(g->pages - from)) * PAGE,
		advice);
}

/* The end goes with its page tables, and comes back as zeros in the same
 * mapping. */
static void cut_and_grow(struct region *g, size_t keep)
{
	if (mremap(g->at, g->pages * PAGE, keep * PAGE, 0) == MAP_FAILED)
		return;
	if (mremap(g->at, keep * PAGE, g->pages * PAGE, 0) == MAP_FAILED)
		g->pages = keep;
}

static void __attribute__((noinline)) use_stack(size_t depth)
{
	volatile uint8_t frame[PAGE];

	frame[random_below(PAGE)] = (uint8_t)depth;
	if (depth)
		use_stack(depth - 1);
	frame[0] = frame[1];
}

static void change_break(void)
{
	static char *low;
	char *now = sbrk(0);

	if (!low)
		low = now;
	if (now - low < 400 * (long)PAGE && random_below(2)) {
		sbrk(7 * PAGE);
		now[random_below(7 * PAGE)] = 1;
	} else if (now - low >= 7 * (long)PAGE) {
		sbrk(-7 * (long)PAGE);
	}
}

/* The kernel stores into memory, too. */
static void read_into(const struct region *g)
{
	size_t from = random_below(g->pages * PAGE);

	if (pread(data_fd, g->at + from, g->pages * PAGE - from, 0) < 0)
		return;
}

/* Both go on; the test chooses the one that lives. */
static void fork_a_child(void)
{
	if (fork() < 0)
		_exit(5);
}

static void wanted_step(struct region *g)
{
	if (plan->wanted == FILL) {
		map_region(g, 4);
		memset(g->at, 1, g->pages * PAGE);
	} else if (plan->wanted == CUT) {
		cut_and_grow(g, 1);
	}
}

static void step(void)
{
	struct region *g = &region[random_below(REGIONS)];

	plan->touched = 0;
	if (plan->wanted) {
		wanted_step(&region[0]);
		return;
	}
	plan->op = (unsigned)random_below(16);
	if (!g->at) {
		map_region(g, (int)random_below(5));
		plan->op = 99;
		write_region(g);
		return;
	}
	switch (plan->op) {
	case 0: unmap_region(g); break;
	case 1: protect_region(g); break;
	case 2: move_region(g); break;
	case 3: move_contents(g); break;
	case 4: drop_pages(g, MADV_DONTNEED); break;
	case 5: drop_pages(g, GUARD_INSTALL); break;
	case 6: use_stack(random_below(40)); break;
	case 7: change_break(); break;
	case 8: read_into(g); break;
	case 9: fork_a_child(); break;
	case 10: read_region(g); break;
	case 11: cut_and_grow(g, 1 + random_below(g->pages)); break;
	default: write_region(g); break;
	}
}

static sigjmp_buf after_fault;

static void on_fault(int sig)
{
	(void)sig; /* a guard page, the file's end: the step ends here */
	siglongjmp(after_fault, 1);
}

static void child(int ready, int go)
{
	char byte;

	void *code = mmap((void *)TR_INJECT_BASE, TR_INJECT_END - TR_INJECT_BASE,
			  PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			  -1, 0);

	if (code != (void *)TR_INJECT_BASE)
		_exit(2);
	memcpy(code, tr_inject_start,
	       (size_t)(tr_inject_end - tr_inject_start));
	if (mprotect(code, PAGE, PROT_READ | PROT_EXEC) < 0 ||
	    write(ready, "r", 1) != 1 || read(go, &byte, 1) != 1)
		_exit(2);
	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	for (;;) {
		if (sigsetjmp(after_fault, 1) == 0)
			step();
		__asm__ volatile("int3");
	}
}

/* ---- the test ---- */

static uint64_t own_random = 88172645463325252u;

static uint64_t choose(uint64_t n)
{
	own_random ^= own_random << 13;
	own_random ^= own_random >> 7;
	own_random ^= own_random << 17;
	return own_random % n;
}

static pid_t start(uint64_t seed)
{
	char name[] = "/tmp/test_digest.XXXXXX", byte, page[PAGE];
	int ready[2], go[2], status;
	pid_t pid;

	plan = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	plan->random = seed;
	data_fd = mkstemp(name);
	for (size_t i = 0; i < MAX_PAGES; i++) {
		memset(page, (int)(i % 7), sizeof page);
		if (write(data_fd, page, sizeof page) != sizeof page)
			abort();
	}
	if (pipe(ready) < 0 || pipe(go) < 0 || (pid = fork()) < 0)
		abort();
	if (pid == 0)
		child(ready[1], go[0]);
	if (read(ready[0], &byte, 1) != 1 ||
	    tr_tracee_seize(pid, false) < 0 || write(go[1], "g", 1) != 1 ||
	    tr_tracee_wait(pid, &status, 0) < 0)
		abort();
	unlink(name);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
	return pid;
}

static void kill_one(pid_t pid)
{
	int status;

	if (pid <= 1)
		abort();
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		;
}

static void end(pid_t pid)
{
	kill_one(pid);
	close(data_fd);
	munmap(plan, PAGE);
}

/* Of a process and its copy one goes on. */
static pid_t choose_fork(pid_t pid, bool *is_copy)
{
	unsigned long copy;
	int status;

	if (tr_tracee_event_msg(pid, &copy) < 0 ||
	    tr_tracee_wait((pid_t)copy, &status, 0) < 0)
		abort();
	*is_copy = choose(3) == 0;
	kill_one(*is_copy ? pid : (pid_t)copy);
	return *is_copy ? (pid_t)copy : pid;
}

/* To the end of the next step. */
static pid_t next_step(pid_t pid, bool *is_copy)
{
	int status = 0, sig = 0;

	*is_copy = false;
	for (;;) {
		if (tr_tracee_resume(pid, TR_RESUME_CONT, sig) < 0 ||
		    tr_tracee_wait(pid, &status, UINT64_C(20000000000)) < 0 ||
		    !WIFSTOPPED(status)) {
			printf("# the process is gone: %s, status 0x%x, op %u\n",
			       strerror(errno), status, plan->op);
			return -1;
		}
		sig = 0;
		if (tr_stop_event(status) == PTRACE_EVENT_FORK)
			pid = choose_fork(pid, is_copy);
		else if (status >> 8 == SIGTRAP)
			return pid;
		else if (!tr_stop_event(status))
			sig = WSTOPSIG(status);
	}
}

/* What the tracer and other processes do meanwhile. */
static void meddle(pid_t pid)
{
	uint8_t byte = (uint8_t)choose(250);

	if (plan->touched && choose(2) &&
	    tr_memory_write(pid, plan->touched, &byte, 1) < 0 &&
	    errno != EFAULT && errno != EIO)
		CHECK(!"memory can be written");
	if (choose(3) == 0 &&
	    pwrite(data_fd, &byte, 1, (off_t)choose(MAX_PAGES * PAGE)) != 1)
		CHECK(!"the file can be written");
}

static uint64_t sum_of(int mem, const struct tr_vma *v)
{
	uint8_t page[PAGE];
	uint64_t sum = 0;

	for (uint64_t a = v->start; a < v->end; a += PAGE)
		if (pread(mem, page, PAGE, (off_t)a) == PAGE)
			sum += tr_page_term(a, tr_page_hash(page));
	return sum;
}

#define LARGE ((uint64_t)1 << 28) /* a sanitizer's shadow */

static bool is_known(const struct tr_vma *v)
{
	return v->end - v->start < LARGE && strncmp(v->name, "[v", 2) != 0 &&
	       !(v->start >= TR_INJECT_BASE && v->end <= TR_INJECT_END);
}

/* Page by page from /proc/PID/mem, mapping by mapping. */
static bool agrees_with_memory(pid_t pid, const struct tr_digest *d)
{
	TR_AUTOFREE char *path = tr_printf("/proc/%d/mem", (int)pid);
	TR_AUTOCLOSE int mem = open(path, O_RDONLY | O_CLOEXEC);
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct tr_error err;
	bool same = true;

	if (mem < 0 || tr_vmas_read(pid, &vmas, &err) < 0)
		return false;
	for (size_t i = 0; i < vmas.n; i++) {
		const struct tr_vma *v = &vmas.v[i];

		if (!is_known(v) ||
		    sum_of(mem, v) == tr_digest_range(d, v->start, v->end))
			continue;
		printf("# %lx-%lx %s differs\n", v->start, v->end, v->name);
		same = false;
	}
	return same;
}

static bool has_large_mappings(void)
{
	TR_AUTOVMAS struct tr_vmas vmas = {0};
	struct tr_error err;

	if (tr_vmas_read(getpid(), &vmas, &err) < 0)
		return true;
	for (size_t i = 0; i < vmas.n; i++)
		if (vmas.v[i].end - vmas.v[i].start >= LARGE)
			return true;
	return false;
}

static bool are_current(struct tr_digest *d)
{
	size_t n;
	const struct tr_page_hash *p = tr_digest_changed(d, &n);
	bool good = true;

	for (size_t i = 0; i < n; i++)
		good &= (i == 0 || p[i - 1].addr < p[i].addr) &&
			tr_digest_page(d, p[i].addr) == p[i].hash;
	return good;
}

/* Steps of a process, with everything compared after each. */
static void follow(uint64_t seed, int steps, bool tracked)
{
	struct tr_digester *shared = tr_digester_new();
	struct tr_digest *kept = tr_digest_new(shared);
	pid_t pid = start(seed);
	struct tr_error err = {0};
	bool is_copy;

	for (int i = 0; i < steps && !check_failed_now; i++) {
		struct tr_digest *anew = tr_digest_new(shared);
		struct tr_digest_task t = {.may_call = true};

		pid = next_step(pid, &is_copy);
		CHECK(pid > 0);
		if (pid < 0)
			return;
		if (is_copy) { /* its address space is another */
			tr_digest_free(kept);
			kept = tr_digest_new(shared);
		}
		t.tid = pid;
		if (choose(4) == 0)
			meddle(pid);
		CHECK(tr_digest_update(kept, &t, true, &err) == 0);
		CHECK(tr_digest_update(anew, &t, false, &err) == 0);
		CHECK(tr_digest_last_work(kept).tracked == tracked);
		CHECK(tr_digest_root(kept) == tr_digest_root(anew));
		CHECK(are_current(kept));
		if (choose(8) == 0)
			CHECK(agrees_with_memory(pid, kept));
		if (check_failed_now)
			printf("# seed %lu step %d op %u: %s\n",
			       (unsigned long)seed, i, plan->op, err.text);
		tr_digest_free(anew);
	}
	end(pid);
	tr_digest_free(kept);
	tr_digester_free(shared);
}

/* Enough pages for page tables of their own. */
static void test_pages_that_go_with_their_tables(void)
{
	struct tr_digester *shared = tr_digester_new();
	struct tr_digest *kept = tr_digest_new(shared);
	pid_t pid = start(1);
	struct tr_digest_task t = {.tid = pid, .may_call = true};
	struct tr_error err;
	bool is_copy;

	for (unsigned i = FILL; i <= CUT; i++) {
		struct tr_digest *anew = tr_digest_new(shared);

		plan->wanted = i;
		CHECK(next_step(pid, &is_copy) == pid);
		CHECK(tr_digest_update(kept, &t, true, &err) == 0);
		CHECK(tr_digest_update(anew, &t, false, &err) == 0);
		CHECK(tr_digest_root(kept) == tr_digest_root(anew));
		tr_digest_free(anew);
	}
	end(pid);
	tr_digest_free(kept);
	tr_digester_free(shared);
}

static bool kernel_tracks(void)
{
	struct tr_digester *shared = tr_digester_new();
	struct tr_digest *d = tr_digest_new(shared);
	pid_t pid = start(1);
	struct tr_digest_task t = {.tid = pid, .may_call = true};
	struct tr_error err;
	bool is_copy, tracks;

	next_step(pid, &is_copy);
	tracks = tr_digest_update(d, &t, true, &err) == 0 &&
		 tr_digest_last_work(d).tracked;
	tr_digest_free(d);
	tr_digester_free(shared);
	end(pid);
	return tracks;
}

static void test_tracked_digest_is_that_of_memory(void)
{
	bool tracked = kernel_tracks();

	if (!tracked)
		printf("# this kernel does not track writes\n");
	for (uint64_t seed = 1; seed <= 4; seed++)
		follow(seed * 7919, 120, tracked);
}

/* Fault points are read once, so that a process of its own must have them. */
static void test_digest_without_the_kernels_help(void)
{
	pid_t pid = has_large_mappings() ? 0 : fork();
	int status = 0;

	if (pid == 0 && !has_large_mappings()) {
		setenv("TRACE_FAULT", "pagemap-scan=eopnotsupp,userfaultfd=eacces", 1);
		follow(4711, 150, false);
		fflush(stdout);
		_exit(check_failed_now);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (status)
		printf("# wait status 0x%x\n", status);
	CHECK(status == 0);
}

int main(void)
{
	sigset_t chld;

	/* tr_tracee_wait waits for it. */
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	RUN(test_digest_without_the_kernels_help);
	RUN(test_tracked_digest_is_that_of_memory);
	RUN(test_pages_that_go_with_their_tables);
	return check_status();
}
