/* UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
#include "libtrace/base/utf8.h"

#include <stdint.h>

/* The length of the character at p, or 0: RFC 3629, section 4. */
static size_t character(const uint8_t *p, size_t left)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

bool tr_utf8_is_text(const void *data, size_t n)
{
	const uint8_t *p = data;
	size_t step;

	for (size_t i = 0; i < n; i += step) {
		step = p[i] < 0x80 ? p[i] != 0 : character(p + i, n - i);
		if (step == 0)
			return false;
	}
	return true;
}
