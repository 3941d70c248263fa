/* Running trace-replay for another tool. */
#include "cmd/cli/replay_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"

#define TOOL "trace-replay"

extern char **environ;

/* Beside this tool when it is there, else by its name alone. */
static char *find_tool(void)
{
	char self[4096], *slash;
	TR_AUTOFREE char *beside = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		beside = tr_printf("%.*s/" TOOL, (int)(slash - self), self);
		if (access(beside, X_OK) == 0)
			return tr_strdup(beside);
	}
	return tr_strdup(TOOL);
}

static pid_t spawn(char **argv, int out, struct tr_error *err)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int failed;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
					 O_RDONLY, 0);
	failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (!failed)
		return pid;
	tr_fail(err, TR_ESYS, "cannot run %s: %s", argv[0], strerror(failed));
	return -1;
}

pid_t cli_replay_spawn(const char *const *options, const char *trace,
		       FILE **from, struct tr_error *err)
{
	char *argv[CLI_REPLAY_OPTIONS + 4] = {find_tool()};
	size_t n = 1;
	int ends[2];
	pid_t pid = -1;

	while (*options)
		argv[n++] = tr_strdup(*options++);
	argv[n++] = tr_strdup("--");
	argv[n++] = tr_strdup(trace);
	if (pipe2(ends, O_CLOEXEC) < 0) {
		tr_fail_errno(err, "pipe");
	} else {
		pid = spawn(argv, ends[1], err);
		close(ends[1]);
		if (pid < 0)
			close(ends[0]);
		else
			*from = fdopen(ends[0], "r");
	}
	while (n > 0)
		free(argv[--n]);
	return pid;
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

int cli_replay_run(const char *trace, uint64_t jobs,
		   void (*object)(void *arg, const struct tr_json *j),
		   void *arg, struct tr_error *err)
{
	TR_AUTOFREE char *many = tr_printf("--jobs=%" PRIu64, jobs);
	const char *const options[] = {"-n", "-f", "json", many, NULL};
	FILE *f;
	pid_t pid = cli_replay_spawn(options, trace, &f, err);
	int status, r;

	if (pid < 0)
		return -1;
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
