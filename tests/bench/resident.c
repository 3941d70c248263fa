/*
 * A program with much memory that changes little of it at a time:
 *
 *   resident MB ROUNDS [same]
 *
 * Each round writes 256 pages, computes for some 10 ms, and makes one system
 * call.  The pages are others in every round, anywhere in the memory; with
 * `same` they are those of one buffer.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, WRITES = 256, WORK = 5000000 };

static uint64_t state = 88172645463325252;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: resident MB ROUNDS [same]\n");
		return 2;
	}
	size_t bytes = (size_t)atol(argv[1]) << 20;
	uint64_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t sum = 0;

	if (memory == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	for (size_t i = 0; i < bytes / sizeof *memory; i++)
		memory[i] = i * 0x9e3779b97f4a7c15;
	for (long round = atol(argv[2]); round > 0; round--) {
		for (uint64_t i = 0; i < WRITES; i++) {
			uint64_t page = argc == 4 ? i : next() % (bytes / PAGE);

			memory[page * (PAGE / 8)] = next();
		}
		for (int i = 0; i < WORK; i++)
			sum += next();
		syscall(SYS_getppid);
	}
	return sum == 1;
}
