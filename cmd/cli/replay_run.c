/* Running trace-replay for another tool. */
#include "cmd/cli/replay_run.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOOL "trace-replay"

/* The tool in the directory of this one, or by its name alone, to be found in
 * PATH. */
static char *find_tool(void)
{
	char *path = calloc(1, 4096 + sizeof TOOL), *slash;
	ssize_t n;

	if (!path)
		return NULL;
	n = readlink("/proc/self/exe", path, 4095);
	slash = n > 0 ? strrchr(path, '/') : NULL;
	if (slash) {
		strcpy(slash + 1, TOOL);
		if (access(path, X_OK) == 0)
			return path;
	}
	strcpy(path, TOOL);
	return path;
}

static pid_t spawn(const char *trace, int out, struct tr_error *err)
{
	extern char **environ;
	char *tool = find_tool(), *copy = strdup(trace);
	char *argv[] = {(char[]){TOOL}, (char[]){"-n"}, (char[]){"-f"},
			(char[]){"json"}, (char[]){"--"}, copy, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int failed = ENOMEM;

	if (tool && copy && posix_spawn_file_actions_init(&actions) == 0) {
		failed = posix_spawn_file_actions_adddup2(&actions, out, 1);
		if (!failed)
			failed = posix_spawnp(&pid, tool, &actions, NULL, argv,
					      environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	if (failed)
		tr_fail(err, TR_ESYS, "cannot run %s: %s",
			tool ? tool : TOOL, strerror(failed));
	free(tool);
	free(copy);
	return failed ? -1 : pid;
}

static int read_objects(FILE *f,
			void (*object)(void *arg, const struct tr_json *j),
			void *arg, struct tr_error *err)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getline(&line, &cap, f)) > 0) {
		struct tr_json *j = tr_json_parse(line, (size_t)n, TOOL, err);

		if (j)
			object(arg, j);
		else
			r = -1;
		tr_json_free(j);
	}
	free(line);
	return r;
}

int cli_replay_run(const char *trace,
		   void (*object)(void *arg, const struct tr_json *j),
		   void *arg, struct tr_error *err)
{
	int fds[2], status, r;
	pid_t pid;
	FILE *f;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return tr_fail_errno(err, "pipe");
	pid = spawn(trace, fds[1], err);
	close(fds[1]);
	f = pid < 0 ? NULL : fdopen(fds[0], "r");
	if (!f) {
		close(fds[0]);
		return -1;
	}
	r = read_objects(f, object, arg, err);
	fclose(f);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return tr_fail_errno(err, TOOL);
	if (r < 0)
		return -1;
	if (!WIFEXITED(status))
		return tr_fail(err, TR_ESYS, TOOL " was killed by signal %d",
			       WTERMSIG(status));
	return WEXITSTATUS(status);
}
