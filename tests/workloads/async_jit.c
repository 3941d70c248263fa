/* Code made at run time, in memory that is writable and executable: a loop in
 * it is interrupted by a timer, while another loop keeps changing the code, in
 * the same page and in its own instructions. */
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "check.h"

enum { TICKS = 30 };

static volatile sig_atomic_t ticks;
static uint8_t *code;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

/* int64_t f(int64_t n): n times x = x * 33 + VALUE */
static const uint8_t loop[] = {
	0x31, 0xc0,                   /* 0: xor %eax, %eax */
	0x48, 0x6b, 0xc0, 0x21,       /* 2: imul $33, %rax, %rax */
	0x48, 0x05, 0x01, 0, 0, 0,    /* 6: add $VALUE, %rax */
	0x48, 0xff, 0xcf,             /* 12: dec %rdi */
	0x75, 0xf1,                   /* 15: jne 2 */
	0xc3,
};

static int64_t expected(int64_t n, int64_t value)
{
	uint64_t x = 0;

	while (n--)
		x = x * 33 + (uint64_t)value;
	return (int64_t)x;
}

static int64_t run(int64_t n, uint8_t value)
{
	int64_t (*f)(int64_t);

	code[8] = value;
	memcpy(&f, &code, sizeof f);
	return f(n);
}

int main(void)
{
	struct itimerval every = {{0, 3000}, {0, 3000}}, none = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = tick};
	volatile uint8_t *beside;
	unsigned rounds = 0;

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(code != MAP_FAILED);
	memcpy(code, loop, sizeof loop);
	beside = code + 1000;
	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
	while (ticks < TICKS) {
		uint8_t value = (uint8_t)(rounds % 100 + 1);

		CHECK(run(200000, value) == expected(200000, value));
		CHECK(*beside == (uint8_t)rounds);
		*beside = (uint8_t)++rounds;
	}
	CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0);
	puts("ok");
	return 0;
}
