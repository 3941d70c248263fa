/* Moving instructions: what goes in, what must come out, what is refused; and
 * moved code that runs and does what the original does. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "libtrace/tracee/relocate.h"
#include "tests/unit/check.h"

#define FROM 0x401000ul
#define TO 0x501000ul

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = 0;
	unsigned byte;
	int used;

	while (sscanf(hex, "%2x%n", &byte, &used) == 1) {
		out[n++] = (uint8_t)byte;
		hex += used;
		while (*hex == ' ')
			hex++;
	}
	return n;
}

static void show(const uint8_t *bytes, size_t n)
{
	printf("#");
	for (size_t i = 0; i < n; i++)
		printf(" %02x", bytes[i]);
	printf("\n");
}

/* FROM and TO are 0x100000 apart; jumps back end the expectation. */
static const struct pair {
	const char *name, *in;
	size_t want, taken;
	const char *out;
} pairs[] = {
	{"plain instructions", "48 89 d8 48 01 c8 90", 5, 6,
	 "48 89 d8 48 01 c8 e9 fb ff ef ff"},
	{"exactly what is wanted", "48 83 c0 01 90 90", 5, 5,
	 "48 83 c0 01 90 e9 fb ff ef ff"},
	{"lea of rip", "48 8d 05 10 00 00 00", 5, 7,
	 "48 8d 05 10 00 f0 ff e9 fb ff ef ff"},
	{"immediate behind the displacement",
	 "c7 05 00 01 00 00 2a 00 00 00", 5, 10,
	 "c7 05 00 01 f0 ff 2a 00 00 00 e9 fb ff ef ff"},
	{"vector load relative to rip", "c5 fd 6f 05 20 00 00 00", 5, 8,
	 "c5 fd 6f 05 20 00 f0 ff e9 fb ff ef ff"},
	{"short jcc backwards, out", "48 ff c9 75 fb", 5, 5,
	 /* its target is FROM itself: back to the jump there */
	 "48 ff c9 0f 85 f7 ff ef ff e9 f7 ff ef ff"},
	{"short jcc into what is moved", "90 ff c9 75 fc 90", 5, 5,
	 /* from 5 to 1: stays in the copy */
	 "90 ff c9 0f 85 f8 ff ff ff e9 f7 ff ef ff"},
	{"short jcc forwards", "74 10 90 90 90", 5, 5,
	 "0f 84 0c 00 f0 ff 90 90 90 e9 f7 ff ef ff"},
	{"short jcc to what follows", "75 03 90 90 90", 5, 5,
	 "0f 85 ff ff ef ff 90 90 90 e9 f7 ff ef ff"},
	{"long jcc", "0f 8c 00 10 00 00", 5, 6,
	 "0f 8c 00 10 f0 ff e9 fb ff ef ff"},
	{"jcc with a branch hint", "3e 74 10 90 90", 5, 5,
	 "0f 84 0d 00 f0 ff 90 90 e9 f8 ff ef ff"},
	{"short jmp", "eb 20 90 90 90", 5, 5,
	 "e9 1d 00 f0 ff 90 90 90 e9 f8 ff ef ff"},
	{"jmp to itself", "eb fe 90 90 90", 5, 5,
	 "e9 fb ff ef ff 90 90 90 e9 f8 ff ef ff"},
	{"long jmp", "e9 00 20 00 00", 5, 5,
	 "e9 00 20 f0 ff e9 fb ff ef ff"},
	{"loop", "e2 fe 90 90 90", 5, 5,
	 "e2 02 eb 05 e9 f7 ff ef ff 90 90 90 e9 f4 ff ef ff"},
	{"jecxz", "67 e3 10 90 90", 5, 5,
	 "67 e3 02 eb 05 e9 09 00 f0 ff 90 90 e9 f4 ff ef ff"},
	{"call", "e8 00 01 00 00", 5, 5,
	 "ff 35 0a 00 00 00 e9 fa 00 f0 ff e9 f5 ff ef ff"
	 "05 10 40 00 00 00 00 00"},
	{"jmp through memory", "ff 25 00 01 00 00", 5, 6,
	 "ff 25 00 01 f0 ff e9 fb ff ef ff"},
	{"jmp through a register", "ff e0 90 90 90", 5, 5,
	 "ff e0 90 90 90 e9 fb ff ef ff"},
	{"ret", "c3 90 90 90 90", 5, 5, "c3 90 90 90 90 e9 fb ff ef ff"},
	{"string instruction", "f3 48 a5 90 90", 5, 5,
	 "f3 48 a5 90 90 e9 fb ff ef ff"},
	{"lock", "f0 48 0f c1 07", 5, 5, "f0 48 0f c1 07 e9 fb ff ef ff"},
	{"thread-local", "64 48 8b 04 25 28 00 00 00", 5, 9,
	 "64 48 8b 04 25 28 00 00 00 e9 fb ff ef ff"},
	{"one byte wanted", "55 0f 05", 1, 1, "55 e9 fb ff ef ff"},
};

static void moves(void)
{
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		const struct pair *p = &pairs[i];
		uint8_t in[64], out[128];
		size_t n = from_hex(p->in, in), len = from_hex(p->out, out);
		struct tr_relocated r;
		struct tr_error err;
		int got = tr_relocate(in, n, FROM, p->want, TO, 0, &r, &err);

		CHECK(got == 0);
		if (got < 0) {
			printf("# %s: %s\n", p->name, err.text);
			continue;
		}
		if (r.taken == p->taken && r.len == len &&
		    memcmp(r.code, out, len) == 0)
			continue;
		CHECK(!"as expected");
		printf("# %s: %zu bytes taken\n", p->name, r.taken);
		show(r.code, r.len);
		show(out, len);
	}
}

static const struct refused {
	const char *in;
	size_t want;
	const char *why;
} refusals[] = {
	{"0f 05 90 90 90", 5, "enters the kernel"},
	{"90 cd 80 90 90", 5, "enters the kernel"},
	{"cc 90 90 90 90", 5, "enters the kernel"},
	{"0f 34 90 90 90", 5, "enters the kernel"},
	{"f4 90 90 90 90", 5, "enters the kernel"},
	{"ff 18 90 90 90", 5, "far branch"},
	{"cb 90 90 90 90", 5, "far branch"},
	{"48 cf 90 90 90", 5, "far branch"},
	{"ff d0 90 90 90", 5, "indirect call"},
	{"ff 15 00 00 00 00", 5, "indirect call"},
	{"0f 31 90 90 90", 5, "recorded"},
	{"0f a2 90 90 90", 5, "recorded"},
	{"0f c7 f0 90 90", 5, "recorded"},
	{"f3 0f c7 f8 90", 5, "recorded"},
	{"d8 c1 90 90 90", 5, "x87"},
	{"d9 f6 90 90 90", 5, "x87"},
	{"c7 f8 00 00 00 00", 5, "transaction"},
	{"67 8b 05 00 00 00 00", 5, "eip"},
	{"66 eb 00 90 90", 5, "operand-size"},
	{"06 90 90 90 90", 5, "no instruction"},
	{"48 89", 5, "no instruction"},
	{"90 90 90", 5, "no instruction"},
	{"48 83 c0 01 75 fd", 5, "middle of an instruction"},
};

static void refuses(void)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refused *p = &refusals[i];
		uint8_t in[64];
		size_t n = from_hex(p->in, in);
		struct tr_relocated r;
		struct tr_error err = {0};

		if (tr_relocate(in, n, FROM, p->want, TO, 0, &r, &err) < 0 &&
		    strstr(err.text, p->why))
			continue;
		CHECK(!"refused");
		printf("# %s: %s\n", p->in, err.text);
	}
}

static void refuses_what_is_too_far(void)
{
	const uint8_t nop[5] = {0x90, 0x90, 0x90, 0x90, 0x90};
	const uint8_t lea[7] = {0x48, 0x8d, 0x05, 0xff, 0xff, 0xff, 0x7f};
	struct tr_relocated r;
	struct tr_error err;
	uint8_t jump[TR_JUMP];

	CHECK(tr_relocate(nop, 5, FROM, 5, FROM + 0x100000000, 0, &r, &err) <
	      0);
	CHECK(strstr(err.text, "cannot be reached"));
	/* Backwards the operand gets farther. */
	CHECK(tr_relocate(lea, 7, TO, 5, FROM, 0, &r, &err) < 0);
	CHECK(tr_relocate(lea, 7, FROM, 5, TO, 0, &r, &err) == 0);
	CHECK(tr_jump_encode(jump, 0x1000, UINT64_C(0x80001004)));
	CHECK(!tr_jump_encode(jump, 0x1000, UINT64_C(0x80001005)));
	CHECK(tr_jump_encode(jump, 0x100000000, 0x80000005));
	CHECK(!tr_jump_encode(jump, 0x100000000, 0x80000004));
}

static void goes_on_elsewhere(void)
{
	const uint8_t in[] = {0x90, 0x0f, 0x05};
	struct tr_relocated r;
	struct tr_error err;
	uint8_t want[TR_JUMP];

	CHECK(tr_relocate(in, sizeof in, FROM, 1, TO, TO + 0x80, &r, &err) ==
	      0);
	CHECK(tr_jump_encode(want, TO + 1, TO + 0x80));
	CHECK(r.len == 6 && memcmp(r.code + 1, want, TR_JUMP) == 0);
}

/* Which of the original's states the copy's instructions begin in. */
static void knows_where_it_is(void)
{
	/* call 0x401105; loop 0x401105; nop */
	const uint8_t in[] = {0xe8, 0x00, 0x01, 0x00, 0x00, 0xe2, 0x7e, 0x90};
	static const struct {
		unsigned offset;
		uint64_t home; /* 0: within an instruction */
	} want[] = {
		{0, FROM}, {1, 0}, {6, 0x401105}, {11, FROM + 5}, {12, 0},
		{13, FROM + 7}, {15, FROM + 0x85}, {20, FROM + 7},
		{21, FROM + 8}, {26, 0}, {34, 0},
	};
	struct tr_relocated r;
	struct tr_error err;
	uint64_t home, ip;

	CHECK(tr_relocate(in, sizeof in, FROM, 8, TO, 0, &r, &err) == 0);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		bool known = tr_relocated_home(&r, TO + want[i].offset, &home);

		CHECK(known == (want[i].home != 0));
		CHECK(!known || home == want[i].home);
	}
	CHECK(tr_relocated_entry(&r, FROM, &ip) && ip == TO);
	CHECK(tr_relocated_entry(&r, FROM + 5, &ip) && ip == TO + 11);
	CHECK(tr_relocated_entry(&r, FROM + 7, &ip) && ip == TO + 20);
	CHECK(!tr_relocated_entry(&r, FROM + 8, &ip));
	CHECK(!tr_relocated_entry(&r, 0x401105, &ip));
}

static void tells_lengths(void)
{
	CHECK(tr_relocatable((const uint8_t *)"\x48\x89\xd8", 3) == 3);
	CHECK(tr_relocatable((const uint8_t *)"\x48\x89", 2) == 0);
	CHECK(tr_relocatable((const uint8_t *)"\x0f\x05", 2) == 0);
}

static void sees_branches(void)
{
	/* 0: jb 9; 2: xor; 4: cmp; 6: setb; 9: ret; nop */
	static const uint8_t tail[] = {
		0x72, 0x07, 0x31, 0xc0, 0x39, 0xd1, 0x0f, 0x92, 0xc0, 0xc3,
		0x0f, 0x1f, 0x44, 0x00, 0x00};
	/* 0: two bytes of an instruction; 2: mov; 5: dec; 7: nop; 8: jnz 5 */
	static const uint8_t loop[] = {
		0x00, 0x00, 0x48, 0x89, 0xd8, 0xff, 0xc9, 0x90, 0x75, 0xfb,
		0x90, 0x90};

	CHECK(tr_branched_into(tail, sizeof tail, 6, 9));
	CHECK(tr_branched_into(tail, sizeof tail, 4, 6));
	CHECK(!tr_branched_into(tail, sizeof tail, 9, 6));
	CHECK(!tr_branched_into(tail, sizeof tail, 0, 9));
	CHECK(tr_branched_into(loop, sizeof loop, 2, 5));
	CHECK(!tr_branched_into(loop, sizeof loop, 5, 5));
	CHECK(!tr_branched_into(loop, sizeof loop, 7, 5));
}

/*
 * Functions of one argument that compute something in every form of branch.
 * Each is run as it is and again with a jump at every instruction in turn,
 * where one can be: results and flags must agree.
 */
static const struct runs {
	const char *name, *code;
	uint64_t arg;
	size_t data; /* offset of bytes that are no code, or 0 */
} functions[] = {
	{"dec and jnz", "31 c0 48 01 f8 48 ff cf 75 f8 c3", 100, 0},
	{"loop", "48 89 f9 31 c0 48 83 c0 03 e2 fa c3", 77, 0},
	{"loopne", "48 89 f9 31 c0 ff c0 83 f8 30 e0 f9 c3", 99, 0},
	{"jrcxz", "48 89 f9 31 c0 e3 08 48 01 c8 48 ff c9 eb f6 c3", 50, 0},
	/* f: test edi; jz out; push rdi; dec edi; call f; pop rdi; add eax,edi */
	{"recursion", "31 c0 e8 01 00 00 00 c3 85 ff 74 0d 57 ff cf "
	 "e8 f4 ff ff ff 5f 01 f8 90 c3 90 90 90 c3", 40, 0},
	{"data relative to rip", "48 8b 05 0e 00 00 00 48 31 f8 48 0f c8 c3 "
	 "90 90 90 90 90 90 90 11 22 33 44 55 66 77 88", 12345, 14},
	{"jump table by hand", "31 c0 83 e7 01 74 03 83 c8 02 83 c8 04 c3", 6, 0},
	{"flags survive", "31 c0 48 83 ef 05 9c 58 25 d5 08 00 00 c3", 3, 0},
};

static uint64_t call(uint8_t *page, uint64_t arg)
{
	uint64_t (*f)(uint64_t);

	*(void **)&f = page;
	return f(arg);
}

/* The offset that the branch at `i` of these functions leads to, or -1. */
static int target_of(const uint8_t *code, size_t i)
{
	if ((code[i] & 0xf0) == 0x70 || (code[i] & 0xfc) == 0xe0 ||
	    code[i] == 0xeb)
		return (int)i + 2 + (int8_t)code[i + 1];
	if (code[i] == 0xe8)
		return (int)i + 5 + (int8_t)code[i + 1];
	return -1;
}

/* Does a branch from elsewhere lead behind the first of these bytes? */
static bool entered(const uint8_t *code, size_t n, size_t first, size_t taken)
{
	size_t length;

	for (size_t i = 0; i < n; i += length) {
		int to = target_of(code, i);

		length = tr_relocatable(code + i, n - i);
		if (!length)
			return false; /* data */
		if ((i < first || i >= first + taken) && to > (int)first &&
		    to < (int)(first + taken))
			return true;
	}
	return false;
}

/* How many places of the function could be jumped from. */
static int run_moved(const struct runs *f, uint8_t *page)
{
	uint8_t code[64], jump[TR_JUMP];
	size_t n = from_hex(f->code, code), length;
	uint64_t at = (uint64_t)(uintptr_t)page, want;
	int places = 0;

	memcpy(page, code, n);
	want = call(page, f->arg);
	for (size_t i = 0; i < (f->data ? f->data : n); i += length) {
		struct tr_relocated r;
		struct tr_error err;

		memcpy(page, code, n);
		length = tr_relocatable(code + i, n - i);
		if (!length)
			break;
		if (tr_relocate(code + i, n - i, at + i, TR_JUMP, at + 2048, 0,
				&r, &err) < 0 ||
		    entered(code, n, i, r.taken))
			continue;
		memcpy(page + 2048, r.code, r.len);
		if (!tr_jump_encode(jump, at + i, at + 2048))
			continue;
		memcpy(page + i, jump, sizeof jump);
		memset(page + i + TR_JUMP, 0xcc, r.taken - TR_JUMP);
		if (call(page, f->arg) != want) {
			CHECK(!"the same result");
			printf("# %s, moved at %zu\n", f->name, i);
		}
		places++;
	}
	return places;
}

static void runs_alike(void)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		CHECK(run_moved(&functions[i], page) > 0);
	munmap(page, 4096);
}

/* Where control does not go on, others come to what is behind. */
static void test_straight(void)
{
	static const uint8_t ret[] = {0x5d, 0xc3, 0x55, 0x48, 0x89, 0xe5, 0x90};
	static const uint8_t jmp[] = {0xeb, 0x10, 0x90, 0x90, 0x90, 0x90};
	static const uint8_t jcc[] = {0x74, 0x10, 0x90, 0x90, 0x90, 0x90};
	struct tr_relocated r;
	struct tr_error err;

	CHECK(tr_relocate(ret, sizeof ret, FROM, 5, TO, 0, &r, &err) == 0);
	CHECK(r.straight == 2 && r.taken == 6);
	CHECK(tr_relocate(jmp, sizeof jmp, FROM, 5, TO, 0, &r, &err) == 0);
	CHECK(r.straight == 2);
	CHECK(tr_relocate(jcc, sizeof jcc, FROM, 5, TO, 0, &r, &err) == 0);
	CHECK(r.straight == r.taken && r.taken == 5);
}

int main(void)
{
	RUN(moves);
	RUN(refuses);
	RUN(refuses_what_is_too_far);
	RUN(goes_on_elsewhere);
	RUN(knows_where_it_is);
	RUN(tells_lengths);
	RUN(sees_branches);
	RUN(runs_alike);
	RUN(test_straight);
	return check_status();
}
