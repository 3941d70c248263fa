/* execve: in vain, with very long arguments and environments, of a script,
 * by descriptor, and without any argument. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

enum { ARGS = 2000, LONG = 100000 };

static char *const none[] = {NULL};
static char *volatile bad_pointer = (char *)8;

static void in_vain(char *self)
{
	char *argv[] = {self, NULL};
	static char *too_many[200];
	static char huge[200 * 1024];

	CHECK(execve("/no/such/file", argv, none) == -1 && errno == ENOENT);
	CHECK(execve("/", argv, none) == -1 && errno == EACCES);
	CHECK(execve("/etc/passwd", argv, none) == -1 && errno == EACCES);
	CHECK(execve(bad_pointer, argv, none) == -1 && errno == EFAULT);
	memset(huge, 'x', sizeof huge - 1);
	too_many[0] = huge; /* above MAX_ARG_STRLEN */
	CHECK(execve(self, too_many, none) == -1 && errno == E2BIG);
}

static void long_arguments(char *self)
{
	static char *argv[ARGS + 4], *envp[ARGS + 2];
	static char value[LONG + 6];
	int status;

	memset(value, 'v', LONG + 5);
	memcpy(value, "LONG=", 5);
	argv[0] = self;
	argv[1] = "again";
	argv[2] = value;
	for (int i = 0; i < ARGS; i++) {
		argv[i + 3] = "argument";
		envp[i] = "NAME=value";
	}
	envp[ARGS] = value;
	if (fork() == 0) {
		execve(self, argv, envp);
		_exit(99);
	}
	CHECK(wait(&status) > 0 && status == 0);
}

static int again(int argc, char **argv)
{
	extern char **environ;
	int n = 0;

	CHECK(argc == ARGS + 3 && strlen(argv[2]) == LONG + 5);
	while (environ[n])
		n++;
	CHECK(n == ARGS + 1 && strlen(getenv("LONG")) == LONG);
	CHECK(strcmp(argv[argc - 1], "argument") == 0);
	return 0;
}

static void script(void)
{
	char name[] = "/tmp/exec_args.XXXXXX";
	static const char text[] = "#!/bin/sh -e\nfalse\nexit 5\n";
	int fd = mkstemp(name), status;

	CHECK(fd >= 0 && write(fd, text, sizeof text - 1) > 0);
	CHECK(fchmod(fd, 0700) == 0 && close(fd) == 0);
	if (fork() == 0) {
		execl(name, name, NULL);
		_exit(99);
	}
	CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 1);
	CHECK(unlink(name) == 0);
}

static void by_descriptor(void)
{
	char *argv[] = {"sh", "-c", "exit 6", NULL};
	int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC), status;

	CHECK(fd >= 0);
	if (fork() == 0) {
		fexecve(fd, argv, none);
		_exit(99);
	}
	CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 6);
}

/* One process that becomes itself a hundred times. */
static int chain(char *self, int left)
{
	char count[16];

	if (left == 0)
		return 0;
	snprintf(count, sizeof count, "%d", left - 1);
	execl(self, self, "chain", count, NULL);
	return 99;
}

int main(int argc, char **argv)
{
	int status;

	if (argc > 2 && strcmp(argv[1], "again") == 0)
		return again(argc, argv);
	if (argc > 2)
		return chain(argv[0], atoi(argv[2]));
	in_vain(argv[0]);
	long_arguments(argv[0]);
	script();
	by_descriptor();
	if (fork() == 0)
		_exit(chain(argv[0], 20));
	CHECK(wait(&status) > 0 && status == 0);
	puts("ok");
	return 0;
}
