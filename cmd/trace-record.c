/* trace-record: run a program and write a trace of what it does. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "cmd/cli/trace_name.h"
#include "libtrace/trace.h"

enum { FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

static const char *directory;
static struct cli_list labels;
static bool quiet, verbose;

static const struct cli_option options[] = {
	{"output", 'o', "DIR", "write the trace to DIR, which must not exist",
	 CLI_DIRECTORY, &directory},
	{"label", 'l', "KEY=VALUE", "store a label in the trace; can be repeated",
	 CLI_LIST, &labels},
	{"quiet", 'q', NULL, "do not say when the trace is not whole",
	 CLI_FLAG, &quiet},
	{"verbose", 'v', NULL, "say where the trace is", CLI_FLAG, &verbose},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-record",
	.summary = "Run a program and record everything it needs to be replayed",
	.synopsis = "[-qv] [-o DIR] [-l KEY=VALUE]... [--] COMMAND [ARG]...",
	.operands = CLI_OPERAND_COMMAND,
	.max_operands = -1,
	.stop_at_operand = true,
	.trouble = FAILED,
	.options = options,
};

#define KEY_CHARACTERS "abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static bool labels_are_good(void)
{
	for (size_t i = 0; i < labels.n; i++) {
		size_t n = strspn(labels.items[i], KEY_CHARACTERS);

		if (n == 0 || labels.items[i][n] != '=') {
			cli_error("--label: '%s' is not KEY=VALUE with a key "
				  "of letters, digits, '.', '_' and '-'",
				  labels.items[i]);
			return false;
		}
	}
	return true;
}

/*
 * Record under the first default name that is free.  Returns 1 with err
 * filled when only the `latest` link could not be made.
 */
static int record_named(struct tr_record_options *o,
			struct tr_record_result *res, char **made,
			struct tr_error *err)
{
	for (unsigned n = 0;; n++) {
		*made = cli_trace_name_new(o->argv[0], &n, err);
		if (!*made)
			return -1;
		o->directory = *made;
		if (tr_record(o, res, err) == 0)
			return cli_trace_name_set_latest(*made, err) < 0 ? 1 : 0;
		if (err->code != TR_EEXIST)
			return -1;
		free(*made); /* another recorder took it meanwhile */
		*made = NULL;
	}
}

static void report(const struct tr_record_options *o,
		   const struct tr_record_result *res)
{
	if (!quiet && !res->complete)
		cli_error("%s: the trace is incomplete: %s", o->directory,
			  res->stopped);
	else if (!quiet && !res->replayable)
		cli_error("%s: the trace cannot be replayed to its end: %s",
			  o->directory, res->stopped);
	if (verbose)
		cli_error("%s: %llu events, %llu tasks", o->directory,
			  (unsigned long long)res->events,
			  (unsigned long long)res->tasks);
}

/* Die as the program died, without a second core file. */
static int die_of(int sig)
{
	const struct rlimit none = {0, 0};
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

static int failure_status(const struct tr_error *err)
{
	int status = cli_trouble(err);

	if (err->code == TR_ENOEXEC)
		return NOT_EXECUTABLE;
	return err->code == TR_ENOPROG ? NOT_FOUND : status;
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv), r;
	struct tr_record_options o = {
		.directory = directory,
		.argv = (const char *const *)(argv + first),
		.labels = labels.items,
		.tool = "trace-record " TR_VERSION,
	};
	struct tr_record_result res = {0};
	struct tr_error err = {0};
	char *made = NULL;

	if (first == argc)
		return cli_fail("no command given (try trace-record --help)");
	if (!labels_are_good())
		return FAILED;
	r = directory ? tr_record(&o, &res, &err)
		      : record_named(&o, &res, &made, &err);
	if (r >= 0)
		report(&o, &res);
	free(made);
	if (r < 0)
		return failure_status(&err);
	if (r > 0)
		cli_error("%s", err.text);
	return WIFSIGNALED(res.status) ? die_of(WTERMSIG(res.status))
				       : WEXITSTATUS(res.status);
}
