/* Processes that read a file through mappings, each in a different way,
 * become ones that share memory when another maps the file to write it. */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

enum { ROUNDS = 2, READERS = 4, WRITES = 20 };

static volatile int sink;

static void wait_a_bit(int how)
{
	switch (how) {
	case 0:
		sched_yield();
		break;
	case 1:
		getppid();
		break;
	case 2:
		for (int i = 0; i < 2000; i++)
			sink += i;
		break;
	case 3:
		usleep(100);
		break;
	}
}

/* How many of the writer's steps it saw depends on when it looked. */
static int look(const volatile int *p, int ready, int how)
{
	int seen = 0, last = 0;

	CHECK(write(ready, "", 1) == 1);
	while (last != WRITES) {
		int now = *p;

		CHECK(now >= last);
		seen += now != last;
		last = now;
		wait_a_bit(how);
	}
	return seen > 0 ? 0 : 1;
}

static void step(volatile int *p)
{
	for (int i = 0; i < WRITES; i++) {
		++*p;
		wait_a_bit(i % 4);
	}
}

static int part(const char *name, int ready, int how)
{
	int reads = how < READERS;
	int fd = open(name, reads ? O_RDONLY : O_RDWR);
	void *p = mmap(NULL, 4096, reads ? PROT_READ : PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd, 0);

	CHECK(fd >= 0 && p != MAP_FAILED);
	if (reads)
		return look(p, ready, how);
	step(p);
	return 0;
}

static void start(const char *self, const char *name, int ready, int how)
{
	char a[16], b[16];

	snprintf(a, sizeof a, "%d", ready);
	snprintf(b, sizeof b, "%d", how);
	if (fork() == 0) {
		execl(self, self, name, a, b, NULL);
		_exit(99);
	}
}

static void play(const char *self)
{
	char name[] = "/tmp/shm_join.XXXXXX", c;
	int fd, ready[2], status;

	CHECK((fd = mkstemp(name)) >= 0 && ftruncate(fd, 4096) == 0);
	CHECK(pipe(ready) == 0);
	for (int i = 0; i < READERS; i++)
		start(self, name, ready[1], i);
	for (int i = 0; i < READERS; i++)
		CHECK(read(ready[0], &c, 1) == 1);
	start(self, name, ready[1], READERS);
	for (int i = 0; i <= READERS; i++)
		CHECK(wait(&status) > 0 && status == 0);
	CHECK(unlink(name) == 0 && close(fd) == 0);
	CHECK(close(ready[0]) == 0 && close(ready[1]) == 0);
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return part(argv[1], atoi(argv[2]), atoi(argv[3]));
	for (int i = 0; i < ROUNDS; i++)
		play(argv[0]);
	puts("ok");
	return 0;
}
