/* The background thread that compresses and appends chunks. */
#include "libtrace/format/append.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/fault.h"
#include "libtrace/base/io.h"
#include "libtrace/format/blocks.h"
#include "libtrace/format/deflate.h"
#include "libtrace/format/index.h"

/* What may wait: enough to ride out a slow disk, not to fill the memory. */
#define QUEUE_JOBS 256u
#define QUEUE_BYTES ((size_t)64 << 20)

/* Buffers kept for reuse, and the size from which one is not worth keeping. */
#define POOL_BUFFERS 64u
#define POOL_LARGEST ((size_t)2 << 20)
#define BUFFER_START 4096u

struct job {
	struct tr_chunk_header h;
	struct tr_buf buf;
	struct tr_clone clone; /* holds its source */
};

struct tr_appender {
	int dirfd;
	bool stored;
	uint64_t file_size;
	pthread_t thread;

	/* Shared by both threads, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t work, space;
	struct job queue[QUEUE_JOBS];
	unsigned head, count;
	size_t bytes;
	bool ending;
	struct tr_buf pool[POOL_BUFFERS];
	unsigned pooled;
	struct tr_error why; /* set before `failed` */
	int failed;          /* read without the lock */

	/* The thread's own, until it has ended. */
	struct tr_deflater *deflater;
	struct tr_buf out;
	int fd;
	uint32_t file;
	uint64_t offset;
	uint64_t *chain; /* by stream: check of its last chunk */
	size_t chain_cap;
	uint64_t block_chain; /* the same of the stream of blocks */
	struct tr_chunk_ref *refs;
	size_t nrefs, refs_cap;
	struct tr_writer_stats stats;
};

static int create_file(struct tr_appender *a, struct tr_error *err)
{
	char name[TR_CHUNK_NAME];

	if (a->file >= TR_MAX_CHUNK_FILES)
		return tr_fail(err, TR_EINVAL, "chunks: too many files");
	tr_chunk_name(name, a->file);
	a->fd = openat(a->dirfd, name,
		       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (a->fd < 0)
		return tr_fail_errno(err, "%s", name);
	a->offset = 0;
	return 0;
}

/* Start the next file when the chunk would make this one too large. */
static int roll_file(struct tr_appender *a, size_t n, struct tr_error *err)
{
	if (a->offset == 0 || a->offset + n <= a->file_size)
		return 0;
	close(a->fd);
	a->fd = -1;
	a->file++;
	return create_file(a, err);
}

static uint64_t *chain_slot(struct tr_appender *a, uint32_t stream)
{
	size_t cap = a->chain_cap ? a->chain_cap : 64;

	if (stream == TR_BLOCK_STREAM)
		return &a->block_chain;
	if (stream >= a->chain_cap) {
		while (cap <= stream)
			cap *= 2;
		a->chain = tr_realloc(a->chain, cap * sizeof *a->chain);
		memset(a->chain + a->chain_cap, 0,
		       (cap - a->chain_cap) * sizeof *a->chain);
		a->chain_cap = cap;
	}
	return &a->chain[stream];
}

/*
 * Complete the header and put it in front of the payload, compressed or not;
 * returns where both are.
 */
static const uint8_t *seal(struct tr_appender *a, struct job *j, size_t *n)
{
	struct tr_chunk_header *h = &j->h;
	uint64_t *chain = chain_slot(a, h->stream);
	uint8_t *at = j->buf.data;
	size_t packed = 0;

	h->raw_size = (uint32_t)(j->buf.len - TR_CHUNK_HEADER);
	if (!a->stored) {
		a->out.len = 0;
		tr_buf_reserve(&a->out, j->buf.len);
		packed = tr_deflate(a->deflater, at + TR_CHUNK_HEADER,
				    h->raw_size,
				    a->out.data + TR_CHUNK_HEADER);
	}
	if (packed > 0) {
		h->flags |= TR_CHUNK_DEFLATE;
		at = a->out.data;
	}
	h->stored_size = packed > 0 ? (uint32_t)packed : h->raw_size;
	h->payload = XXH3_64bits(at + TR_CHUNK_HEADER, h->stored_size);
	h->previous = *chain;
	tr_chunk_encode(h, at);
	*chain = h->check;
	*n = TR_CHUNK_HEADER + (size_t)h->stored_size;
	return at;
}

static void note_chunk(struct tr_appender *a, const struct tr_chunk_header *h)
{
	TR_GROW(a->refs, a->nrefs, a->refs_cap);
	a->refs[a->nrefs++] = tr_chunk_ref(h, a->file, a->offset);
	a->stats.chunks++;
	a->stats.raw_bytes += h->raw_size;
	a->stats.stored_bytes += TR_CHUNK_HEADER + h->stored_size;
	a->offset += TR_CHUNK_HEADER + h->stored_size;
}

/*
 * Drop what a short write left behind.  Best effort: a reader that scans
 * reports a torn chunk as lost, and nothing else depends on it.
 */
static void cut_torn(struct tr_appender *a)
{
	int r = ftruncate(a->fd, (off_t)a->offset);

	(void)r;
}

/* 1: the chunk has been written as a clone, 0: it cannot be. */
static int append_clone(struct tr_appender *a, struct job *j,
			struct tr_error *err)
{
	uint64_t *chain = chain_slot(a, j->h.stream);
	int r;

	if (roll_file(a, j->buf.len + TR_CLONE_ROOM, err) < 0)
		return -1;
	j->h.previous = *chain;
	r = tr_clone_write(a->fd, a->offset, &j->h, &j->buf, &j->clone, err);
	if (r < 0)
		cut_torn(a);
	if (r <= 0)
		return r;
	*chain = j->h.check;
	note_chunk(a, &j->h);
	return 1;
}

static int append(struct tr_appender *a, struct job *j, struct tr_error *err)
{
	const uint8_t *bytes;
	size_t n;

	if (j->clone.source) {
		int r = append_clone(a, j, err);

		if (r != 0)
			return r < 0 ? -1 : 0;
	}
	bytes = seal(a, j, &n);
	if (roll_file(a, n, err) < 0)
		return -1;
	if (tr_fault("chunk-write") ||
	    tr_pwrite_all(a->fd, bytes, n, (off_t)a->offset) < 0) {
		char name[TR_CHUNK_NAME];

		tr_chunk_name(name, a->file);
		tr_fail_errno(err, "%s", name);
		cut_torn(a);
		return -1;
	}
	note_chunk(a, &j->h);
	return 0;
}

/* Called with the lock held. */
static void recycle(struct tr_appender *a, struct tr_buf *b)
{
	if (a->pooled < POOL_BUFFERS && b->cap <= POOL_LARGEST)
		a->pool[a->pooled++] = *b;
	else
		free(b->data);
	*b = (struct tr_buf){0};
}

static void work_on(struct tr_appender *a, struct job *j)
{
	struct tr_error err;

	if (!a->failed && append(a, j, &err) < 0) {
		a->why = err;
		__atomic_store_n(&a->failed, 1, __ATOMIC_RELEASE);
	}
	tr_source_release(j->clone.source);
}

static void *run(void *arg)
{
	struct tr_appender *a = arg;

	pthread_mutex_lock(&a->lock);
	for (;;) {
		struct job j;

		while (a->count == 0 && !a->ending)
			pthread_cond_wait(&a->work, &a->lock);
		if (a->count == 0)
			break;
		j = a->queue[a->head];
		pthread_mutex_unlock(&a->lock);

		work_on(a, &j);

		pthread_mutex_lock(&a->lock);
		a->head = (a->head + 1) % QUEUE_JOBS;
		a->count--;
		a->bytes -= j.buf.len;
		recycle(a, &j.buf);
		pthread_cond_signal(&a->space);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Signals are for the thread that waits for the recorded program. */
static int start_thread(struct tr_appender *a)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&a->thread, NULL, run, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static void free_appender(struct tr_appender *a)
{
	if (a->fd >= 0)
		close(a->fd);
	for (unsigned i = 0; i < a->pooled; i++)
		free(a->pool[i].data);
	tr_deflater_free(a->deflater);
	tr_buf_release(&a->out);
	free(a->chain);
	free(a->refs);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->work);
	pthread_cond_destroy(&a->space);
	free(a);
}

struct tr_appender *tr_appender_open(int dirfd,
				     const struct tr_writer_options *o,
				     struct tr_error *err)
{
	struct tr_appender *a;

	if (mkdirat(dirfd, "chunks", 0700) < 0) {
		tr_fail_errno(err, "chunks");
		return NULL;
	}
	a = tr_alloc(sizeof *a);
	a->dirfd = dirfd;
	a->stored = o->stored;
	a->file_size = o->file_size ? o->file_size : TR_MAX_CHUNK_FILE;
	a->fd = -1;
	a->deflater = tr_deflater_new();
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->work, NULL);
	pthread_cond_init(&a->space, NULL);
	if (create_file(a, err) == 0) {
		errno = start_thread(a);
		if (errno == 0)
			return a;
		tr_fail_errno(err, "cannot start the writer's thread");
	}
	free_appender(a);
	return NULL;
}

void tr_appender_buffer(struct tr_appender *a, struct tr_buf *b)
{
	pthread_mutex_lock(&a->lock);
	*b = a->pooled ? a->pool[--a->pooled] : (struct tr_buf){0};
	pthread_mutex_unlock(&a->lock);
	b->len = 0;
	tr_buf_reserve(b, BUFFER_START);
	b->len = TR_CHUNK_HEADER;
}

void tr_appender_put(struct tr_appender *a, const struct tr_chunk_header *h,
		     struct tr_buf *b, const struct tr_clone *clone)
{
	struct job *j;

	pthread_mutex_lock(&a->lock);
	/* One chunk may always be queued, however large. */
	while (a->count == QUEUE_JOBS ||
	       (a->count > 0 && a->bytes + b->len > QUEUE_BYTES))
		pthread_cond_wait(&a->space, &a->lock);
	j = &a->queue[(a->head + a->count) % QUEUE_JOBS];
	j->h = *h;
	j->buf = *b;
	j->clone = clone ? *clone : (struct tr_clone){0};
	if (clone)
		tr_source_hold(clone->source);
	a->count++;
	a->bytes += b->len;
	pthread_cond_signal(&a->work);
	pthread_mutex_unlock(&a->lock);
	*b = (struct tr_buf){0};
}

int tr_appender_check(struct tr_appender *a, struct tr_error *err)
{
	if (!__atomic_load_n(&a->failed, __ATOMIC_ACQUIRE))
		return 0;
	*err = a->why;
	return -1;
}

int tr_appender_close(struct tr_appender *a, bool finish,
		      struct tr_writer_stats *stats, struct tr_error *err)
{
	int r;

	pthread_mutex_lock(&a->lock);
	a->ending = true;
	pthread_cond_signal(&a->work);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);

	r = tr_appender_check(a, err);
	if (r == 0 && finish)
		r = tr_index_write(a->dirfd, a->refs, a->nrefs, err);
	if (stats)
		*stats = a->stats;
	free_appender(a);
	return r;
}
