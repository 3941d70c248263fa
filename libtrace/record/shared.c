/*
 * Shared mappings of files: which domains see each other's writes.
 *
 * A file that only readers map shared joins nobody.
 */
#include <string.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/record/recorder.h"

void rec_shared_forget(struct recorder *r, const struct domain *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->nshared; i++)
		if (r->shared[i].domain != d)
			r->shared[kept++] = r->shared[i];
	r->nshared = kept;
}

/* The first other domain that must be joined because of this mapping. */
static struct domain *to_join(const struct recorder *r, const struct domain *d,
			      const struct stat *st, bool writable)
{
	for (size_t i = 0; i < r->nshared; i++) {
		const struct shared_file *s = &r->shared[i];

		if (s->dev == st->st_dev && s->ino == st->st_ino &&
		    s->domain != d && (writable || s->writable))
			return s->domain;
	}
	return NULL;
}

void rec_map_shared(struct recorder *r, struct task *t, const struct stat *st,
		    bool writable)
{
	struct domain *d = t->as->domain, *other;

	while ((other = to_join(r, d, st, writable))) {
		for (size_t i = 0; i < r->nshared; i++)
			if (r->shared[i].domain == other)
				r->shared[i].domain = d;
		rec_domain_join(r, t, other);
	}
	for (size_t i = 0; i < r->nshared; i++) {
		struct shared_file *s = &r->shared[i];

		if (s->dev != st->st_dev || s->ino != st->st_ino ||
		    s->domain != d)
			continue;
		if (writable && !s->writable) {
			s->writable = true;
			rec_note(r, t->as->stream, t->id,
				 TR_NOTE_SHARED_WRITABLE, "");
		}
		return;
	}
	if (writable)
		rec_note(r, t->as->stream, t->id, TR_NOTE_SHARED_WRITABLE, "");
	TR_GROW(r->shared, r->nshared, r->shared_cap);
	r->shared[r->nshared++] =
		(struct shared_file){st->st_dev, st->st_ino, d, writable};
}
