/* SHA-256 in a thread that takes blocks from a ring. */
#include "libtrace/base/hasher.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "libtrace/base/alloc.h"

#define BLOCK ((size_t)1 << 18)
#define BLOCKS 8u
/* Of less than that the thread would cost more than it saves. */
#define WORTH_IT (4 * BLOCK)

struct tr_hasher {
	struct tr_sha256 *sum; /* the thread's while the ring is not empty */
	bool beside;           /* this digest is computed by the thread */
	bool started, stop;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more, less;
	unsigned put, taken;   /* blocks, ever */
	size_t len[BLOCKS];
	uint8_t *block[BLOCKS];
};

static void *run(void *arg)
{
	struct tr_hasher *h = arg;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		unsigned i = h->taken % BLOCKS;

		if (h->put == h->taken) {
			if (h->stop)
				break;
			pthread_cond_wait(&h->more, &h->lock);
			continue;
		}
		pthread_mutex_unlock(&h->lock);
		tr_sha256_update(h->sum, h->block[i], h->len[i]);
		pthread_mutex_lock(&h->lock);
		h->taken++;
		pthread_cond_signal(&h->less);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* Until at most n blocks wait for the thread. */
static void wait_for(struct tr_hasher *h, unsigned n)
{
	pthread_mutex_lock(&h->lock);
	while (h->put - h->taken > n)
		pthread_cond_wait(&h->less, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

struct tr_hasher *tr_hasher_new(void)
{
	struct tr_hasher *h = tr_alloc(sizeof *h);

	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->more, NULL);
	pthread_cond_init(&h->less, NULL);
	return h;
}

void tr_hasher_free(struct tr_hasher *h)
{
	if (!h)
		return;
	if (h->started) {
		pthread_mutex_lock(&h->lock);
		h->stop = true;
		pthread_cond_signal(&h->more);
		pthread_mutex_unlock(&h->lock);
		pthread_join(h->thread, NULL);
	}
	pthread_cond_destroy(&h->less);
	pthread_cond_destroy(&h->more);
	pthread_mutex_destroy(&h->lock);
	for (unsigned i = 0; i < BLOCKS; i++)
		free(h->block[i]);
	tr_sha256_free(h->sum);
	free(h);
}

/* Without a thread it is computed all the same. */
static bool start(struct tr_hasher *h)
{
	if (h->started)
		return true;
	for (unsigned i = 0; i < BLOCKS; i++)
		if (!h->block[i])
			h->block[i] = tr_alloc_buffer(BLOCK);
	h->started = pthread_create(&h->thread, NULL, run, h) == 0;
	return h->started;
}

void tr_hasher_begin(struct tr_hasher *h, uint64_t size)
{
	wait_for(h, 0);
	tr_sha256_free(h->sum);
	h->sum = tr_sha256_new();
	h->beside = size >= WORTH_IT && start(h);
}

static void put_block(struct tr_hasher *h, const void *data, size_t n)
{
	unsigned i = h->put % BLOCKS;

	wait_for(h, BLOCKS - 1);
	memcpy(h->block[i], data, n);
	h->len[i] = n;
	pthread_mutex_lock(&h->lock);
	h->put++;
	pthread_cond_signal(&h->more);
	pthread_mutex_unlock(&h->lock);
}

void tr_hasher_update(struct tr_hasher *h, const void *data, size_t n)
{
	const uint8_t *p = data;

	if (!h->beside) {
		tr_sha256_update(h->sum, data, n);
		return;
	}
	for (size_t part; n > 0; p += part, n -= part) {
		part = n < BLOCK ? n : BLOCK;
		put_block(h, p, part);
	}
}

void tr_hasher_final(struct tr_hasher *h, uint8_t out[TR_SHA256_SIZE])
{
	wait_for(h, 0);
	tr_sha256_final(h->sum, out);
	h->sum = NULL;
}
