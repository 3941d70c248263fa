/* trace-pack: traces into one archive, and out of it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cli/options.h"
#include "cmd/cli/out_file.h"
#include "cmd/cli/output.h"
#include "cmd/cli/progress.h"
#include "cmd/cli/trace_name.h"
#include "libtrace/trace.h"

enum { DONE = 0, TROUBLE = 2 };

static enum cli_format format;
static const char *output, *archive, *target;
static uint64_t limit_mb;
static bool quiet, force;

static const struct cli_option options[] = {
	{"output", 'o', "FILE", "write the archive to FILE; - is stdout",
	 CLI_FILE, &output},
	{"extract", 'x', "FILE", "unpack the archive FILE; - is stdin",
	 CLI_FILE, &archive},
	{"directory", 'C', "DIR", "unpack into DIR instead of here",
	 CLI_DIRECTORY, &target},
	{"force", 0, NULL, "replace an existing archive", CLI_FLAG, &force},
	{"max-size", 0, "MB", "unpack at most so many megabytes (65536)",
	 CLI_NUMBER, &limit_mb},
	{"format", 'f', "FORMAT", "auto, text or json", CLI_FORMAT, &format},
	{"quiet", 'q', NULL, "print no summary", CLI_FLAG, &quiet},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-pack",
	.summary = "Pack traces into one archive to carry elsewhere, or unpack it",
	.synopsis = "[-q] [-f FORMAT] [--force] -o FILE [TRACE]...\n"
		    "[-q] [-f FORMAT] [--max-size=MB] -x FILE [-C DIR]",
	.operands = CLI_OPERAND_TRACE,
	.max_operands = -1,
	.trouble = TROUBLE,
	.options = options,
};

static void on_progress(void *arg, const struct tr_pack_progress *p)
{
	(void)arg;
	cli_progress(p->member, p->bytes);
}

static void summary_json(const char *operation, const char *file, char **names,
			 const struct tr_pack_stats *s)
{
	struct tr_json *j = tr_json_object(), *list = tr_json_array();

	for (; names && *names; names++)
		tr_json_append(list, tr_json_bytes(*names, strlen(*names)));
	tr_json_set(j, "type", tr_json_string("summary"));
	tr_json_set(j, "operation", tr_json_string(operation));
	tr_json_set(j, "archive", tr_json_bytes(file, strlen(file)));
	tr_json_set(j, "names", list);
	tr_json_set(j, "traces", tr_json_int((int64_t)s->traces));
	tr_json_set(j, "members", tr_json_int((int64_t)s->members));
	tr_json_set(j, "bytes", tr_json_int((int64_t)s->bytes));
	tr_json_set(j, "shared_bytes", tr_json_int((int64_t)s->shared_bytes));
	cli_json_line(j);
}

static void summary(const char *operation, const char *file, char **names,
		    const struct tr_pack_stats *s)
{
	cli_progress_end();
	if (quiet)
		return;
	if (cli_is_json(format)) {
		summary_json(operation, file, names, s);
		return;
	}
	for (; names && *names; names++)
		printf("%s\n", *names);
	printf("%s: %s %" PRIu64 " trace%s: %" PRIu64 " members, %" PRIu64
	       " bytes", file, operation, s->traces, s->traces == 1 ? "" : "s",
	       s->members, s->bytes);
	if (s->shared_bytes)
		printf(", %" PRIu64 " bytes saved by sharing", s->shared_bytes);
	putchar('\n');
}

/* Nothing but the archive goes to stdout. */
static int pack_to_stdout(char **dirs, size_t n)
{
	struct tr_pack_stats stats = {0};
	struct tr_error err = {0};

	if (isatty(STDOUT_FILENO))
		return cli_fail("will not write an archive to a terminal");
	if (tr_pack_write(STDOUT_FILENO, (const char *const *)dirs, n,
			  on_progress, NULL, &stats, &err) < 0) {
		cli_progress_end();
		return cli_trouble(&err);
	}
	cli_progress_end();
	return DONE;
}

static int pack_to_file(char **dirs, size_t n)
{
	struct tr_pack_stats stats = {0};
	struct cli_out_file file;
	struct tr_error err = {0};

	if (cli_out_file_open(&file, output, force, &err) < 0)
		return cli_trouble(&err);
	if (tr_pack_write(file.fd, (const char *const *)dirs, n, on_progress,
			  NULL, &stats, &err) < 0) {
		cli_out_file_abandon(&file);
		cli_progress_end();
		return cli_trouble(&err);
	}
	if (cli_out_file_commit(&file, &err) < 0)
		return cli_trouble(&err);
	summary("packed", output, dirs, &stats);
	return DONE;
}

static int pack(char **dirs, size_t n)
{
	struct tr_error err = {0};
	char *latest[2] = {NULL, NULL};
	int status;

	if (n == 0) {
		latest[0] = cli_trace_name_pick(NULL, &err);
		if (!latest[0])
			return cli_trouble(&err);
		dirs = latest;
		n = 1;
	}
	status = strcmp(output, "-") == 0 ? pack_to_stdout(dirs, n)
					  : pack_to_file(dirs, n);
	free(latest[0]);
	return status;
}

static int extract(void)
{
	struct tr_pack_stats stats = {0};
	struct tr_error err = {0};
	char **names = NULL;
	bool from_stdin = strcmp(archive, "-") == 0;
	int fd = from_stdin ? STDIN_FILENO : open(archive, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return cli_fail("%s: %s", archive, strerror(errno));
	r = tr_pack_extract(fd, target ? target : ".", limit_mb << 20,
			    on_progress, NULL, &names, &stats, &err);
	if (!from_stdin)
		close(fd);
	cli_progress_end();
	if (r < 0)
		return cli_trouble(&err);
	summary("unpacked", archive, names, &stats);
	for (char **s = names; s && *s; s++)
		free(*s);
	free(names);
	return DONE;
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv);

	if (!output == !archive)
		return cli_fail("give one of -o and -x (try trace-pack --help)");
	if (archive && first < argc)
		return cli_fail("-x takes no traces: '%s'", argv[first]);
	if (output && target)
		return cli_fail("-C goes with -x");
	if (limit_mb >> 40)
		return cli_fail("--max-size: %" PRIu64 " is too many", limit_mb);
	return cli_finish(output ? pack(argv + first, (size_t)(argc - first))
				 : extract());
}
