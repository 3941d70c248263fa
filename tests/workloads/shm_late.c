/* Processes that map a file, one after the other, while another one changes it
 * without pause by what it finds there. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { MAPPERS = 12, SIZE = 4096 };

struct shared {
	volatile unsigned count; /* the writer's alone */
	atomic_uint mapped;
};

static struct shared *map(int fd)
{
	struct shared *s = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
				fd, 0);

	CHECK(s != MAP_FAILED);
	return s;
}

static void map_once(int fd)
{
	const struct timespec moment = {.tv_nsec = 3000000};
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		map(fd)->mapped++;
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	nanosleep(&moment, NULL);
}

int main(void)
{
	int fd = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600), status;
	unsigned count = 0;
	struct shared *s;
	pid_t child;

	CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		for (int i = 0; i < MAPPERS; i++)
			map_once(fd);
		_exit(0);
	}
	s = map(fd);
	while (s->mapped < MAPPERS) {
		s->count++;
		if (++count % 1000 == 0)
			CHECK(getppid() > 0);
	}
	CHECK(s->count == count);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(unlink("shared") == 0);
	puts("ok");
	return 0;
}
