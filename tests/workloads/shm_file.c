/* A file that two processes map and write, which were executed and did not
 * inherit the mapping. */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

enum { ROUNDS = 200 };

struct ball {
	_Atomic int turn;
	int hits[2];
};

static int play(const char *name, int me)
{
	int fd = open(name, O_RDWR);
	struct ball *b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fd, 0);

	CHECK(fd >= 0 && b != MAP_FAILED);
	for (int i = 0; i < ROUNDS; i++) {
		while (b->turn % 2 != me)
			sched_yield();
		CHECK(b->hits[0] + b->hits[1] == b->turn);
		b->hits[me]++;
		b->turn++;
	}
	CHECK(munmap(b, 4096) == 0);
	return 0;
}

int main(int argc, char **argv)
{
	char name[] = "/tmp/shm_file.XXXXXX";
	struct ball b;
	int fd, status;

	if (argc == 3)
		return play(argv[1], atoi(argv[2]));
	CHECK((fd = mkstemp(name)) >= 0 && ftruncate(fd, 4096) == 0);
	for (int i = 0; i < 2; i++) {
		if (fork() == 0) {
			execl(argv[0], argv[0], name, i ? "1" : "0", NULL);
			_exit(99);
		}
	}
	for (int i = 0; i < 2; i++)
		CHECK(wait(&status) > 0 && status == 0);
	CHECK(pread(fd, &b, sizeof b, 0) == sizeof b);
	CHECK(b.turn == 2 * ROUNDS && b.hits[0] == ROUNDS);
	CHECK(unlink(name) == 0);
	puts("ok");
	return 0;
}
