/* Allocation that does not return NULL. */
#include "libtrace/base/alloc.h"

#include <stdarg.h>
#include <string.h>

void *tr_need(void *p)
{
	static const char msg[] = "libtrace: out of memory\n";

	if (p)
		return p;
	if (write(STDERR_FILENO, msg, sizeof msg - 1) < 0)
		_exit(2);
	_exit(2);
}

void *tr_alloc(size_t size)
{
	return tr_need(calloc(1, size ? size : 1));
}

void *tr_alloc_buffer(size_t size)
{
	return tr_need(malloc(size ? size : 1));
}

void *tr_realloc(void *p, size_t size)
{
	return tr_need(realloc(p, size ? size : 1));
}

void *tr_memdup(const void *p, size_t size)
{
	void *q = tr_alloc(size);

	if (size)
		memcpy(q, p, size);
	return q;
}

char *tr_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *q = tr_alloc(len + 1);

	memcpy(q, s, len);
	return q;
}

char *tr_strdup(const char *s)
{
	return tr_strndup(s, strlen(s));
}

char *tr_printf(const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return tr_need(n < 0 ? NULL : s);
}
