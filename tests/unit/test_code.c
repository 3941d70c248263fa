/* Instructions that are patched: which XSAVEC are taken for one. */
#include "libtrace/state/code.h"

#include <stdbool.h>

#include "tests/unit/check.h"

struct sample {
	const char *bytes;
	size_t n;
	bool taken;
	int32_t displacement;
};
#define BYTES(s) (s), sizeof(s) - 1

static void test_xsavec(void)
{
	static const struct sample samples[] = {
		{BYTES("\x0f\xc7\x64\x24\x40"), true, 0x40},
		{BYTES("\x0f\xc7\x24\x24"), true, 0},
		{BYTES("\x0f\xc7\xa4\x24\x00\x01\x00\x00"), true, 0x100},
		{BYTES("\x48\x0f\xc7\x64\x24\x40"), true, 0x40},
		{BYTES("\x40\x0f\xc7\x64\x24\xc0"), true, -0x40},
		/* r12, an index, another base, no base */
		{BYTES("\x41\x0f\xc7\x64\x24\x40"), false, 0},
		{BYTES("\x0f\xc7\x64\x04\x40"), false, 0},
		{BYTES("\x0f\xc7\x67\x40"), false, 0},
		{BYTES("\x0f\xc7\x25\x00\x00\x00\x00"), false, 0},
		/* XSAVES, XRSTORS, RDRAND, XSAVE; too short, too long */
		{BYTES("\x0f\xc7\x6c\x24\x40"), false, 0},
		{BYTES("\x0f\xc7\x5c\x24\x40"), false, 0},
		{BYTES("\x0f\xc7\xf0\x90\x90"), false, 0},
		{BYTES("\x0f\xae\x64\x24\x40"), false, 0},
		{BYTES("\x0f\xc7\x64\x24"), false, 0},
		{BYTES("\x0f\xc7\x64\x24\x40\x90"), false, 0},
	};

	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		const struct sample *s = &samples[i];
		int32_t d = 0;

		CHECK(tr_xsavec_decode((const uint8_t *)s->bytes, s->n, &d) ==
		      s->taken);
		CHECK(!s->taken || d == s->displacement);
	}
}

int main(void)
{
	RUN(test_xsavec);
	return check_status();
}
