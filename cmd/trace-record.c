/* trace-record: run a program and write a trace of what it does. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cli/options.h"
#include "cmd/cli/output.h"
#include "cmd/cli/trace_name.h"
#include "libtrace/trace.h"

enum { FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

static const char *directory, *audit, *digest = "exit", *expires;
static const char *portable;
static struct cli_list labels;
static bool quiet, verbose, chaos, no_wait, no_intercept;
static uint64_t seed, slice = 20, max_defer = 10;

static const struct cli_option options[] = {
	{"output", 'o', "DIR", "write the trace to DIR, which must not exist",
	 CLI_DIRECTORY, &directory},
	{"label", 'l', "KEY=VALUE", "store a label in the trace; can be repeated",
	 CLI_LIST, &labels},
	{"expires", 0, "WHEN", "let trace-pack --prune remove the trace after "
	 "WHEN: 12h, 30d, or a date in UTC", CLI_STRING, &expires},
	{"portable", 0, "[LEVEL]", "show the program a processor of LEVEL, "
	 "x86-64-v1 to -v4 (x86-64-v2), to replay on others",
	 CLI_STRING, &portable},
	{"no-wait", 0, NULL, "end with the first process; go on recording the "
	 "others in the background", CLI_FLAG, &no_wait},
	{"digest", 0, "WHEN", "keep digests of the program's whole state: at "
	 "exec and exit (exit, the default), also after each call (syscall), "
	 "every N calls (N), every so often (10ms), or never (off)",
	 CLI_STRING, &digest},
	{"slice", 0, "MS", "let each thread of a process run so many "
	 "milliseconds while others wait (20)", CLI_NUMBER, &slice},
	{"max-defer", 0, "MS", "let a signal, or the end of a turn, wait so many "
	 "milliseconds for a system call (10)", CLI_NUMBER, &max_defer},
	{"no-intercept", 0, NULL, "stop at every system call, instead of letting "
	 "code put into the program make the frequent ones", CLI_FLAG,
	 &no_intercept},
	{"chaos", 0, NULL, "end the turns of threads, and interrupt "
	 "computations, at random", CLI_FLAG, &chaos},
	{"seed", 0, "N", "the random numbers of --chaos", CLI_NUMBER, &seed},
	{"audit", 0, "FILE", "compare what each system call wrote with the "
	 "model; disagreements go to FILE as JSON Lines", CLI_FILE, &audit},
	{"quiet", 'q', NULL, "do not say when the trace is not whole",
	 CLI_FLAG, &quiet},
	{"verbose", 'v', NULL, "say where the trace is", CLI_FLAG, &verbose},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-record",
	.summary = "Run a program and record everything it needs to be replayed",
	.synopsis = "[-qv] [-o DIR] [-l KEY=VALUE]... [--no-wait] "
		    "[--expires=WHEN] [--portable[=LEVEL]] [--digest=WHEN] "
		    "[--no-intercept] [--slice=MS] [--max-defer=MS] "
		    "[--chaos [--seed=N]] [--audit=FILE] "
		    "[--] COMMAND [ARG]...",
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
 * A number of hours, days or weeks from now, or a date or time as ISO 8601
 * has it, in UTC; false when it is neither, or past.
 */
static bool parse_expiry(const char *s, int64_t *ns)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
	int64_t now = time(NULL), at = 0;
	struct tm tm = {0};
	const char *rest;
	char *end;
	long n;

	errno = 0;
	n = strtol(s, &end, 10);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (end != s && *end == units[i].unit && !end[1] && n > 0 &&
		    n < 1000000 && !errno)
			at = now + n * units[i].seconds;
	if (!at) {
		rest = strptime(s, "%Y-%m-%dT%H:%M:%SZ", &tm);
		if (!rest) {
			tm = (struct tm){0};
			rest = strptime(s, "%Y-%m-%d", &tm);
		}
		at = rest && !*rest ? timegm(&tm) : 0;
	}
	*ns = at * 1000000000;
	return at > now && at < INT64_MAX / 1000000000;
}

/* Where the first process's status goes with --no-wait. */
static int status_pipe = -1;

static void moment(void *arg, enum tr_record_moment which, int status)
{
	struct tr_error err;

	if (which == TR_RECORD_STARTED) {
		if (arg && cli_trace_name_set_latest(arg, &err) < 0)
			cli_error("%s", err.text);
		return;
	}
	if (status_pipe < 0)
		return;
	/* Whoever reads our output must see its end now. */
	cli_output_detach();
	if (write(status_pipe, &status, sizeof status) < 0)
		return;
	close(status_pipe);
	status_pipe = -1;
}

/* Record under the first default name that is free. */
static int record_named(struct tr_record_options *o,
			struct tr_record_result *res, char **made,
			struct tr_error *err)
{
	for (unsigned n = 0;; n++) {
		*made = cli_trace_name_new(o->argv[0], &n, err);
		if (!*made)
			return -1;
		o->directory = *made;
		o->arg = *made;
		if (tr_record(o, res, err) == 0)
			return 0;
		if (err->code != TR_EEXIST)
			return -1;
		free(*made); /* another recorder took it meanwhile */
		*made = NULL;
	}
}

/* A time with its unit, in ns; 0 when it is none. */
static uint64_t parse_time(const char *s)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	char *end;
	uint64_t n = strtoull(s, &end, 10);

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(end, units[i].unit) == 0 &&
		    n <= UINT64_MAX / units[i].ns)
			return n * units[i].ns;
	return 0;
}

/* What --digest says; false when it says nothing known. */
static bool set_digest(struct tr_record_options *o)
{
	bool number = *digest >= '1' && *digest <= '9' &&
		      digest[strspn(digest, "0123456789")] == '\0';

	if (strcmp(digest, "off") == 0) {
		o->digest = TR_DIGEST_OFF;
	} else if (strcmp(digest, "exit") == 0) {
		o->digest = TR_DIGEST_EXIT;
	} else if (strcmp(digest, "syscall") == 0 || number) {
		o->digest = TR_DIGEST_EVERY;
		o->digest_events = number ? strtoull(digest, NULL, 10) : 1;
	} else if (*digest >= '0' && *digest <= '9' &&
		   (o->digest_ns = parse_time(digest)) > 0) {
		o->digest = TR_DIGEST_TIMED;
	} else {
		cli_error("--digest: '%s' is not exit, syscall, off, a number "
			  "of calls, or a time such as 10ms", digest);
		return false;
	}
	return true;
}

/* The recording goes on in a child; returns there, and in the parent with the
 * program's status in *status. */
static int go_to_background(int *status)
{
	int fds[2], got;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC) < 0 || (child = fork()) < 0)
		return cli_fail("cannot start the recorder: %s",
				strerror(errno));
	if (child == 0) {
		close(fds[0]);
		status_pipe = fds[1];
		return 0;
	}
	close(fds[1]);
	signal(SIGINT, SIG_IGN); /* the program decides, as without us */
	signal(SIGQUIT, SIG_IGN);
	do
		got = (int)read(fds[0], status, sizeof *status);
	while (got < 0 && errno == EINTR);
	/* Nothing: it failed before the program ended; its status says how. */
	if (got != sizeof *status &&
	    waitpid(child, status, 0) != child)
		*status = FAILED << 8;
	return 1;
}

/* A debugger says at most that it failed. */
static void report_refusals(const struct tr_record_options *o,
			    const struct tr_record_result *res)
{
	char more[40] = "";

	if (res->refusals > 1)
		snprintf(more, sizeof more, " (and %llu more)",
			 (unsigned long long)res->refusals - 1);
	cli_error("%s: a tracer's request was refused: %s%s", o->directory,
		  res->refused, more);
}

static void report(const struct tr_record_options *o,
		   const struct tr_record_result *res)
{
	if (!quiet && res->refusals)
		report_refusals(o, res);
	if (!quiet && !res->complete)
		cli_error("%s: the trace is incomplete: %s", o->directory,
			  res->stopped);
	else if (!quiet && !res->replayable)
		cli_error("%s: the trace cannot be replayed to its end: %s",
			  o->directory, res->stopped);
	if (!quiet && res->unreached[0])
		cli_error("--portable does not hold %s", res->unreached);
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

static int exit_as(int status)
{
	return WIFSIGNALED(status) ? die_of(WTERMSIG(status))
				   : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv), r, status;
	struct tr_record_options o = {
		.directory = directory,
		.argv = (const char *const *)(argv + first),
		.labels = labels.items,
		.portable = portable && !*portable ? "x86-64-v2" : portable,
		.tool = "trace-record " TR_VERSION,
		.audit = audit,
		.slice_ns = slice * 1000000,
		.max_defer_ns = max_defer * 1000000,
		.intercept = !no_intercept,
		.chaos = chaos,
		.seed = seed,
		.moment = moment,
	};
	struct tr_record_result res = {0};
	struct tr_error err = {0};
	char *made = NULL, *learned;

	if (first == argc)
		return cli_fail("no command given (try trace-record --help)");
	if (!labels_are_good() || !set_digest(&o))
		return FAILED;
	if (expires && !parse_expiry(expires, &o.expires_ns))
		return cli_fail("--expires: '%s' is not 12h, 30d, 4w or a date "
				"to come (2030-12-31)", expires);
	if (no_wait) {
		r = go_to_background(&status);
		if (r != 0)
			return r < 0 ? FAILED : exit_as(status);
	}
	o.learned = learned = cli_trace_name_cache();
	r = directory ? tr_record(&o, &res, &err)
		      : record_named(&o, &res, &made, &err);
	if (r == 0)
		report(&o, &res);
	free(made);
	free(learned);
	return r < 0 ? failure_status(&err) : exit_as(res.status);
}
