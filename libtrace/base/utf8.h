/* Is it text? */
#ifndef TR_BASE_UTF8_H
#define TR_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Are these bytes UTF-8 (RFC 3629) without NUL? */
bool tr_utf8_is_text(const void *data, size_t n);

#endif
