/* What /proc tells a process of itself is true: maps, exe, status, fd. */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>

#include "check.h"

static int own_variable;

/* The line of /proc/self/maps that has the address, into text. */
static int find_map(const void *at, char *text, size_t n)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	int found = 0;

	CHECK(f);
	while (!found && fgets(text, (int)n, f)) {
		CHECK(sscanf(text, "%lx-%lx", &from, &to) == 2);
		found = from <= (unsigned long)at && (unsigned long)at < to;
	}
	fclose(f);
	return found;
}

int main(int argc, char **argv)
{
	char line[PATH_MAX + 100], exe[PATH_MAX], full[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	char *p = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd, local;

	(void)argc;
	CHECK(n > 0 && realpath(argv[0], full));
	exe[n] = '\0';
	CHECK(strcmp(exe, full) == 0);
	CHECK(find_map(&own_variable, line, sizeof line));
	CHECK(strstr(line, " rw-p ") && strstr(line, full));
	CHECK(find_map(&local, line, sizeof line) && strstr(line, "[stack]"));
	CHECK(find_map(p, line, sizeof line) && strstr(line, " r--p "));
	CHECK(munmap(p, 8192) == 0 && !find_map(p, line, sizeof line));
	CHECK((fd = open("/proc/self/mem", O_RDONLY)) >= 0);
	own_variable = 41;
	CHECK(pread(fd, &local, sizeof local, (off_t)&own_variable) ==
	      sizeof local && local == 41);
	snprintf(line, sizeof line, "/proc/self/fd/%d", fd);
	CHECK(readlink(line, exe, sizeof exe) > 0);
	puts("ok");
	return 0;
}
