/* One thread that computes for about a second and makes no system call. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 600000000;
	uint64_t x = 88172645463325252U;

	for (long i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	printf("%016llx\n", (unsigned long long)x);
	return 0;
}
