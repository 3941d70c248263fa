/*
 * Memory and scope guards.
 *
 * Allocation never returns NULL: when memory is exhausted the process prints
 * one line and exits with status 2 (a recorder's sealed chunks are on disk by
 * then, so nothing sealed is lost).  Sizes that come from untrusted bytes are
 * bounded by the format's limits before they reach an allocation.
 */
#ifndef TR_BASE_ALLOC_H
#define TR_BASE_ALLOC_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *tr_alloc(size_t size);                 /* zeroed */
void *tr_alloc_buffer(size_t size);          /* not: to be filled first */
void *tr_realloc(void *p, size_t size);
void *tr_memdup(const void *p, size_t size);
char *tr_strdup(const char *s);
char *tr_strndup(const char *s, size_t n);
/* p itself; NULL from another library's allocator ends the process alike. */
void *tr_need(void *p);
char *tr_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Make room for one more element in an array that grows by doubling:
 * `array` and `cap` are lvalues, `n` the elements in use.
 */
#define TR_GROW(array, n, cap)                                             \
	do {                                                               \
		if ((n) == (cap)) {                                        \
			(cap) = (cap) ? 2 * (cap) : 8;                     \
			(array) = tr_realloc((array),                      \
					     (cap) * sizeof *(array));     \
		}                                                          \
	} while (0)

/* Scope guards: the variable is released when it goes out of scope. */
static inline void tr_scope_free(void *p)
{
	free(*(void **)p);
}

static inline void tr_scope_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void tr_scope_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define TR_AUTOFREE __attribute__((cleanup(tr_scope_free)))
#define TR_AUTOCLOSE __attribute__((cleanup(tr_scope_close)))
#define TR_AUTOFCLOSE __attribute__((cleanup(tr_scope_fclose)))

#endif
