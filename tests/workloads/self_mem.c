/* A process that writes to its own memory through /proc/self/mem. */
#include <fcntl.h>

#include "check.h"

static int own_variable = 41;

int main(void)
{
	int fd = open("/proc/self/mem", O_RDWR);

	CHECK(fd >= 0);
	CHECK(pwrite(fd, &(int){42}, sizeof(int), (off_t)&own_variable) ==
	      sizeof(int));
	CHECK(*(volatile int *)&own_variable == 42);
	puts("ok");
	return 0;
}
