/* Wait statuses for people and for pipes. */
#include "cmd/cli/status.h"

#include <stdio.h>
#include <sys/wait.h>

/* The C library decides which real-time signals a program sees as SIGRTMIN. */
static const char *signal_name(int sig, char *buf, size_t n)
{
	const char *name = tr_signal_name(sig);

	if (name)
		return name;
	snprintf(buf, n, "SIGRT_%d", sig - 32);
	return buf;
}

void cli_status_json(struct tr_json *j, int status)
{
	char name[32];

	if (!WIFSIGNALED(status)) {
		tr_json_set(j, "exit_code", tr_json_int(WEXITSTATUS(status)));
		return;
	}
	tr_json_set(j, "signal", tr_json_string(signal_name(
				WTERMSIG(status), name, sizeof name)));
	tr_json_set(j, "core", tr_json_bool(WCOREDUMP(status)));
}

const char *cli_status_text(int status, char *buf, size_t n)
{
	char name[32];

	if (WIFSIGNALED(status))
		snprintf(buf, n, "killed by %s",
			 signal_name(WTERMSIG(status), name, sizeof name));
	else
		snprintf(buf, n, "exit status %d", WEXITSTATUS(status));
	return buf;
}
