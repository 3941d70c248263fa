/* Digest of the extended registers. */
#include "libtrace/state/xstate.h"

#include <cpuid.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

/* Offsets in the XSAVE image (Intel SDM, volume 1, 13.4). */
#define FCW 0
#define FTW_END 5
#define MXCSR 24
#define ST 32
#define XMM 160
#define LEGACY_END 416
#define ST_SIZE 10
#define ST_STEP 16

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static void begin_part(XXH3_state_t *h, uint64_t number)
{
	XXH3_64bits_update(h, &number, sizeof number);
}

/* Initially FCW is 0x37f and all else 0. */
static void add_x87(XXH3_state_t *h, const uint8_t *image)
{
	static const uint8_t initial[FTW_END] = {0x7f, 0x03};
	uint8_t st[8 * ST_SIZE];

	for (int i = 0; i < 8; i++)
		memcpy(st + i * ST_SIZE, image + ST + i * ST_STEP, ST_SIZE);
	if (memcmp(image + FCW, initial, sizeof initial) == 0 &&
	    is_zero(st, sizeof st))
		return;
	begin_part(h, 0);
	XXH3_64bits_update(h, image + FCW, FTW_END);
	XXH3_64bits_update(h, st, sizeof st);
}

/* Initially MXCSR is 0x1f80 and all else 0. */
static void add_sse(XXH3_state_t *h, const uint8_t *image)
{
	static const uint8_t initial[4] = {0x80, 0x1f};

	if (memcmp(image + MXCSR, initial, sizeof initial) == 0 &&
	    is_zero(image + XMM, LEGACY_END - XMM))
		return;
	begin_part(h, 1);
	XXH3_64bits_update(h, image + MXCSR, 4);
	XXH3_64bits_update(h, image + XMM, LEGACY_END - XMM);
}

/* The parts behind that are digested. */
static struct part {
	unsigned number, size, offset;
} parts[] = {{.number = 2}, {.number = 5}, {.number = 6}, {.number = 7}};

/* CPUID tells where they are: leaf 0xd, EAX its size, EBX its offset.  In a
 * virtual machine it costs some 20 us: once is enough. */
static void find_parts(void)
{
	unsigned c, d;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (!__get_cpuid_count(0xd, parts[i].number, &parts[i].size,
				       &parts[i].offset, &c, &d))
			parts[i].size = 0;
}

static void add_part(XXH3_state_t *h, const uint8_t *image, size_t n,
		     const struct part *part)
{
	if (part->size == 0 || part->offset + (size_t)part->size > n ||
	    is_zero(image + part->offset, part->size))
		return;
	begin_part(h, part->number);
	XXH3_64bits_update(h, image + part->offset, part->size);
}

uint64_t tr_xstate_digest(const void *image, size_t n)
{
	static pthread_once_t found = PTHREAD_ONCE_INIT;
	XXH3_state_t *h = XXH3_createState();
	uint64_t digest;

	pthread_once(&found, find_parts);
	XXH3_64bits_reset(h);
	if (n >= LEGACY_END) {
		add_x87(h, image);
		add_sse(h, image);
	}
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		add_part(h, image, n, &parts[i]);
	digest = XXH3_64bits_digest(h);
	XXH3_freeState(h);
	return digest;
}
