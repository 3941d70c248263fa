/* Reading and hashing many pages of a process. */
#include "libtrace/tracee/hash_pages.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/tracee/page_hash.h"

/* Pages read at a time: what stays in a core's cache until it is hashed. */
#define BATCH 64u
/* A thread costs some 50 us to start and pays from about this many pages. */
#define PAGES_PER_THREAD 4096u
#define MAX_THREADS 16u

struct job {
	const struct tr_digest_task *task;
	const cpu_set_t *cpus; /* NULL: on the caller's */
	const struct tr_page_pieces *pieces;
	uint64_t *hashes;
	size_t from, to; /* pages, counted through all pieces */
};

struct batch {
	uint64_t addr[BATCH];
	bool code[BATCH], readable[BATCH]; /* set when read */
	size_t n;
	int mem; /* /proc/PID/mem, or -1 */
	uint8_t data[BATCH * TR_PAGE];
};

/* process_vm_readv(2) as far as it gets: the number of pages. */
static size_t read_some(pid_t tid, struct batch *b, size_t from)
{
	struct iovec local = {b->data + from * TR_PAGE,
			      (b->n - from) * TR_PAGE};
	struct iovec remote[BATCH];
	size_t n = 0;
	ssize_t got;

	for (size_t i = from; i < b->n; i++) {
		if (i > from && b->addr[i] == b->addr[i - 1] + TR_PAGE) {
			remote[n - 1].iov_len += TR_PAGE;
			continue;
		}
		remote[n++] = (struct iovec){
			(void *)(uintptr_t)b->addr[i], TR_PAGE};
	}
	got = process_vm_readv(tid, &local, 1, remote, n, 0);
	return got < 0 ? 0 : (size_t)got / TR_PAGE;
}

/* A page that may not be read by the program itself, as a debugger would. */
static bool read_forced(pid_t tid, struct batch *b, size_t i)
{
	char path[64];

	if (b->mem < 0) {
		snprintf(path, sizeof path, "/proc/%d/mem", (int)tid);
		b->mem = open(path, O_RDONLY | O_CLOEXEC);
	}
	return tr_pread_full(b->mem, b->data + i * TR_PAGE, TR_PAGE,
			     (off_t)b->addr[i]) == TR_PAGE;
}

static void read_batch(pid_t tid, struct batch *b)
{
	for (size_t done = 0; done < b->n;) {
		size_t got = read_some(tid, b, done);

		for (size_t i = done; i < done + got; i++)
			b->readable[i] = true;
		done += got;
		if (done == b->n)
			return;
		b->readable[done] = read_forced(tid, b, done);
		done++;
	}
}

static void hash_batch(const struct tr_digest_task *t, struct batch *b,
		       uint64_t *hashes)
{
	read_batch(t->tid, b);
	for (size_t i = 0; i < b->n; i++) {
		uint8_t *page = b->data + i * TR_PAGE;

		if (b->code[i] && t->unpatch && b->readable[i])
			t->unpatch(t->ctx, b->addr[i], page);
		hashes[i] = b->readable[i] ? tr_page_hash(page) : 0;
	}
	b->n = 0;
}

static void *run(void *arg)
{
	const struct job *j = arg;
	struct batch *b = tr_alloc_buffer(sizeof *b);
	size_t at = 0, done = j->from; /* at: number of the piece's first page */

	if (j->cpus)
		pthread_setaffinity_np(pthread_self(), sizeof *j->cpus,
				       j->cpus);
	b->n = 0;
	b->mem = -1;
	for (size_t i = 0; i < j->pieces->n && at < j->to; i++) {
		const struct tr_page_piece *p = &j->pieces->p[i];
		size_t k = at < j->from ? j->from - at : 0;

		for (; k < p->pages && at + k < j->to; k++) {
			b->addr[b->n] = p->addr + k * TR_PAGE;
			b->code[b->n++] = p->code;
			if (b->n < BATCH)
				continue;
			hash_batch(j->task, b, j->hashes + done);
			done += BATCH;
		}
		at += p->pages;
	}
	hash_batch(j->task, b, j->hashes + done);
	if (b->mem >= 0)
		close(b->mem);
	free(b);
	return NULL;
}

static unsigned threads_for(size_t pages, const cpu_set_t *cpus)
{
	unsigned n = (unsigned)CPU_COUNT(cpus);

	if (n > MAX_THREADS)
		n = MAX_THREADS;
	if (n > pages / PAGES_PER_THREAD)
		n = (unsigned)(pages / PAGES_PER_THREAD);
	return n ? n : 1;
}

void tr_hash_pages(const struct tr_digest_task *t, const cpu_set_t *cpus,
		   const struct tr_page_pieces *pieces, uint64_t *hashes)
{
	struct job job[MAX_THREADS];
	pthread_t thread[MAX_THREADS];
	bool started[MAX_THREADS] = {false};
	unsigned n = threads_for(pieces->pages, cpus);
	sigset_t all, old;

	/* Signals are for the thread that knows what to do with them. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	for (unsigned i = n; i-- > 0;) {
		job[i] = (struct job){t, i ? cpus : NULL, pieces, hashes,
				      pieces->pages * i / n,
				      pieces->pages * (i + 1) / n};
		started[i] = i && pthread_create(&thread[i], NULL, run,
						 &job[i]) == 0;
		if (!started[i])
			run(&job[i]);
	}
	for (unsigned i = 1; i < n; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
