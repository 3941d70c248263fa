/*
 * The file store of a trace being recorded: finding files already stored,
 * and the background digests.  How one file's bytes get there: put.c.
 */
#include "libtrace/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/base/sha256.h"
#include "libtrace/store/put.h"

struct entry {
	struct tr_store_file file;
	struct stat stored; /* of files/ID, right after it was stored */
	char *path;
	struct entry *chain; /* hash bucket */
};

struct tr_store {
	int files_fd;
	struct entry **entries; /* by id - 1 */
	size_t n, cap;
	struct entry **bucket;
	size_t nbuckets; /* power of two */

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, ready;
	/* Under lock: */
	struct entry **queue; /* entry pointers are stable, entries is not */
	size_t queued, queue_cap, next;
	size_t pending; /* queued and not yet finished */
	struct tr_store_digest *done;
	size_t ndone, done_cap, taken;
	bool stop;
};

static size_t hash_key(const struct stat *st)
{
	uint64_t h = (uint64_t)st->st_ino * 0x9e3779b97f4a7c15u;

	h ^= (uint64_t)st->st_dev + (uint64_t)st->st_mtim.tv_nsec;
	h *= 0xff51afd7ed558ccdu;
	return (size_t)(h ^ h >> 32);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_content(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && same_time(a->st_mtim, b->st_mtim);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       same_content(a, b) && same_time(a->st_ctim, b->st_ctim);
}

static struct entry *find(const struct tr_store *s, const struct stat *st)
{
	struct entry *e = s->bucket[hash_key(st) & (s->nbuckets - 1)];

	while (e && !same_file(&e->file.st, st))
		e = e->chain;
	return e;
}

static void insert(struct tr_store *s, struct entry *e)
{
	struct entry **b = &s->bucket[hash_key(&e->file.st) &
				      (s->nbuckets - 1)];

	e->chain = *b;
	*b = e;
}

static void rehash(struct tr_store *s)
{
	free(s->bucket);
	s->nbuckets *= 2;
	s->bucket = tr_alloc(s->nbuckets * sizeof(struct entry *));
	for (size_t i = 0; i < s->n; i++)
		insert(s, s->entries[i]);
}

static bool stopping(struct tr_store *s)
{
	bool stop;

	pthread_mutex_lock(&s->lock);
	stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

/* False when the file cannot be read or the store is being closed. */
static bool digest_fd(struct tr_store *s, int fd, uint8_t *sha256)
{
	enum { BLOCK = 1 << 18 };
	struct tr_sha256 *h = tr_sha256_new();
	TR_AUTOFREE uint8_t *block = tr_alloc_buffer(BLOCK);
	ssize_t n;

	while ((n = tr_read_full(fd, block, BLOCK)) > 0 && !stopping(s))
		tr_sha256_update(h, block, (size_t)n);
	if (n != 0) {
		tr_sha256_free(h);
		return false;
	}
	tr_sha256_final(h, sha256);
	return true;
}

/* A terabyte of holes is not read. */
static bool is_mostly_holes(const struct stat *st)
{
	return st->st_size >= (off_t)1 << 30 &&
	       st->st_blocks < st->st_size / 512 / 2;
}

static bool digest_entry(struct tr_store *s, const struct entry *e,
			 struct tr_store_digest *d)
{
	struct tr_error ignored;
	TR_AUTOCLOSE int fd = -1;
	char name[16];
	struct stat st;

	snprintf(name, sizeof name, "%u", e->file.id);
	fd = openat(s->files_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	d->pages = is_mostly_holes(&st);
	if (d->pages ? tr_sha256_pages_fd(fd, d->sha256, &ignored) < 0 :
		       !digest_fd(s, fd, d->sha256))
		return false;
	if (fstat(fd, &st) < 0)
		return false;
	d->id = e->file.id;
	d->changed = !same_content(&st, &e->stored);
	return true;
}

static void *digest_thread(void *arg)
{
	struct tr_store *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		struct tr_store_digest d;
		bool ok;

		if (s->next == s->queued) {
			s->next = s->queued = 0;
			pthread_cond_wait(&s->work, &s->lock);
			continue;
		}
		const struct entry *e = s->queue[s->next++];

		pthread_mutex_unlock(&s->lock);
		ok = digest_entry(s, e, &d);
		pthread_mutex_lock(&s->lock);
		if (ok) {
			TR_GROW(s->done, s->ndone, s->done_cap);
			s->done[s->ndone++] = d;
		}
		s->pending--;
		pthread_cond_signal(&s->ready);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The recorder's signals are for its own threads. */
static int start_thread(struct tr_store *s)
{
	sigset_t all, old;
	int e;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	e = pthread_create(&s->thread, NULL, digest_thread, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e;
}

struct tr_store *tr_store_open(int dirfd, struct tr_error *err)
{
	struct tr_store *s = tr_alloc(sizeof *s);

	if (mkdirat(dirfd, "files", 0700) < 0 ||
	    (s->files_fd = openat(dirfd, "files", O_RDONLY | O_DIRECTORY |
				  O_NOFOLLOW | O_CLOEXEC)) < 0) {
		tr_fail_errno(err, "files");
		free(s);
		return NULL;
	}
	s->nbuckets = 256;
	s->bucket = tr_alloc(s->nbuckets * sizeof(struct entry *));
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->ready, NULL);
	errno = start_thread(s);
	if (errno == 0)
		return s;
	tr_fail_errno(err, "cannot start the digest thread");
	close(s->files_fd);
	free(s->bucket);
	free(s);
	return NULL;
}

static void enqueue(struct tr_store *s, struct entry *e)
{
	pthread_mutex_lock(&s->lock);
	TR_GROW(s->queue, s->queued, s->queue_cap);
	s->queue[s->queued++] = e;
	s->pending++;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
}

/*
 * The stat kept is the one after storing: a hard link changes st_ctime, and
 * with the earlier one the same file would not be found again.
 */
static struct entry *store_new(struct tr_store *s, int fd, const char *path,
			       struct tr_error *err)
{
	struct entry *e = tr_alloc(sizeof *e);

	e->file.id = (uint32_t)(s->n + 1);
	if (tr_store_put(s->files_fd, e->file.id, fd, &e->file.method,
			 &e->file.st, &e->stored, err) < 0) {
		tr_error_prefix(err, "%s: cannot store as files/%u", path,
				e->file.id);
		free(e);
		return NULL;
	}
	e->path = tr_strdup(path);
	e->file.path = e->path;
	return e;
}

const struct tr_store_file *tr_store_add(struct tr_store *s, int fd,
					 const char *path, bool *is_new,
					 struct tr_error *err)
{
	struct entry *e;
	struct stat st;

	if (fstat(fd, &st) < 0) {
		tr_fail_errno(err, "%s", path);
		return NULL;
	}
	e = find(s, &st);
	*is_new = !e;
	if (e)
		return &e->file;
	e = store_new(s, fd, path, err);
	if (!e)
		return NULL;
	TR_GROW(s->entries, s->n, s->cap);
	s->entries[s->n++] = e;
	if (s->n > s->nbuckets)
		rehash(s);
	else
		insert(s, e);
	enqueue(s, e);
	return &e->file;
}

bool tr_store_take_digest(struct tr_store *s, bool wait,
			  struct tr_store_digest *digest)
{
	bool got;

	pthread_mutex_lock(&s->lock);
	while (wait && s->taken == s->ndone && s->pending > 0)
		pthread_cond_wait(&s->ready, &s->lock);
	got = s->taken < s->ndone;
	if (got) {
		*digest = s->done[s->taken++];
	}
	pthread_mutex_unlock(&s->lock);
	return got;
}

void tr_store_close(struct tr_store *s)
{
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->ready);
	for (size_t i = 0; i < s->n; i++) {
		free(s->entries[i]->path);
		free(s->entries[i]);
	}
	free(s->entries);
	free(s->bucket);
	free(s->queue);
	free(s->done);
	close(s->files_fd);
	free(s);
}
