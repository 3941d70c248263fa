/* vfork and posix_spawn, of programs that exist and of one that does not. */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "check.h"

extern char **environ;
static int shared;

static int wait_for(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void vforked(void)
{
	for (int i = 0; i < 5; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			shared++; /* the parent's memory */
			if (i % 2)
				execl("/bin/sh", "sh", "-c", "exit 3", NULL);
			_exit(3);
		}
		CHECK(pid > 0 && shared == i + 1);
		CHECK(wait_for(pid) == 3);
	}
}

static void vfork_without_program(void)
{
	volatile int why = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		execl("/no/such/program", "x", NULL);
		why = errno;
		_exit(127);
	}
	CHECK(why == ENOENT && wait_for(pid) == 127);
}

static void spawned(void)
{
	char *argv[] = {"sh", "-c", "echo spawned; exit 4", NULL};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	char text[32] = "";
	int fds[2];
	pid_t pid;

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	CHECK(posix_spawn_file_actions_init(&fa) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&fa, fds[1], 1) == 0);
	CHECK(posix_spawnattr_init(&attr) == 0);
	CHECK(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP) == 0);
	CHECK(posix_spawnp(&pid, "sh", &fa, &attr, argv, environ) == 0);
	close(fds[1]);
	CHECK(read(fds[0], text, sizeof text - 1) == 8);
	CHECK(strcmp(text, "spawned\n") == 0);
	CHECK(wait_for(pid) == 4);
	CHECK(posix_spawn(&pid, "/no/such/program", NULL, NULL, argv,
			  environ) == ENOENT);
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
}

int main(void)
{
	vforked();
	vfork_without_program();
	spawned();
	puts("ok");
	return 0;
}
