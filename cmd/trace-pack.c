/* trace-pack: traces made whole where they are, into archives, and out. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cli/options.h"
#include "cmd/cli/out_file.h"
#include "cmd/cli/output.h"
#include "cmd/cli/progress.h"
#include "cmd/cli/trace_name.h"
#include "libtrace/trace.h"

enum { DONE = 0, TROUBLE = 2 };

static enum cli_format format;
static const char *output, *archive, *listed, *target, *compression;
static const char *exclude_have, *files_from, *have_from;
static const char *prune, *redacted;
static uint64_t limit_mb;
static bool quiet, force, have;

static const struct cli_option options[] = {
	{"output", 'o', "FILE", "write the archive to FILE; - is stdout",
	 CLI_FILE, &output},
	{"compress", 0, "HOW", "none, gzip, xz or zstd; else FILE's name tells",
	 CLI_STRING, &compression},
	{"exclude-have", 0, "LIST", "leave out the files that the receiver "
	 "says it has; - is stdin", CLI_FILE, &exclude_have},
	{"files-from", 0, "LIST", "only the files in LIST, as trace-dump --files "
	 "writes it; - is stdin", CLI_FILE, &files_from},
	{"extract", 'x', "FILE", "unpack the archive FILE; - is stdin",
	 CLI_FILE, &archive},
	{"directory", 'C', "DIR", "unpack into DIR instead of here",
	 CLI_DIRECTORY, &target},
	{"have-from", 0, "LIST", "look for files in the places in LIST, too",
	 CLI_FILE, &have_from},
	{"max-size", 0, "MB", "unpack at most so many megabytes (65536)",
	 CLI_NUMBER, &limit_mb},
	{"list", 't', "FILE", "list the archive FILE; - is stdin",
	 CLI_FILE, &listed},
	{"have", 0, NULL, "say which files are here: those in LIST, and in the "
	 "operands or the recorded traces", CLI_FLAG, &have},
	{"redact", 0, "DIR", "write to DIR a skeleton of the trace, without any "
	 "contents", CLI_DIRECTORY, &redacted},
	{"prune", 0, "DIR", "say which traces in DIR have expired",
	 CLI_DIRECTORY, &prune},
	{"force", 0, NULL, "replace an existing archive; with --prune, remove "
	 "what has expired", CLI_FLAG, &force},
	{"format", 'f', "FORMAT", "auto, text or json", CLI_FORMAT, &format},
	{"quiet", 'q', NULL, "print no summary", CLI_FLAG, &quiet},
	{0},
};

static const struct cli_tool tool = {
	.name = "trace-pack",
	.summary = "Make traces self-contained, pack them to carry elsewhere, "
		   "unpack them",
	.synopsis = "[-q] [-f FORMAT] [TRACE]...\n"
		    "[-q] [-f FORMAT] [--force] [--compress=HOW] "
		    "[--exclude-have=LIST] [--files-from=LIST] -o FILE "
		    "[TRACE]...\n"
		    "[-q] [-f FORMAT] [--max-size=MB] [--have-from=LIST] "
		    "-x FILE [-C DIR]\n"
		    "[-f FORMAT] -t FILE\n"
		    "[-f FORMAT] --have [--files-from=LIST] [DIR]...\n"
		    "--redact=DIR [TRACE]\n"
		    "[-f FORMAT] [--force] --prune=DIR",
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

/* ---- the summary ---- */

struct count {
	const char *key;
	uint64_t value;
	const char *text; /* how people read it, when it is not 0 */
};

static void summary_json(const char *operation, const char *file, char **names,
			 const struct count *counts)
{
	struct tr_json *j = tr_json_object(), *list = tr_json_array();

	for (; names && *names; names++)
		tr_json_append(list, tr_json_bytes(*names, strlen(*names)));
	tr_json_set(j, "type", tr_json_string("summary"));
	tr_json_set(j, "operation", tr_json_string(operation));
	if (file)
		tr_json_set(j, "archive", tr_json_bytes(file, strlen(file)));
	tr_json_set(j, "names", list);
	for (; counts->key; counts++)
		tr_json_set(j, counts->key, tr_json_int((int64_t)counts->value));
	cli_json_line(j);
}

static void summary_text(const char *operation, const char *file, char **names,
			 const struct count *counts)
{
	uint64_t traces = counts++->value;

	for (; file && names && *names; names++)
		printf("%s\n", *names);
	if (file)
		printf("%s: ", file);
	printf("%s %" PRIu64 " trace%s", operation, traces,
	       traces == 1 ? "" : "s");
	for (char separator = ':'; counts->key; counts++) {
		if (!counts->value)
			continue;
		printf("%c %" PRIu64 " %s", separator, counts->value,
		       counts->text);
		separator = ',';
	}
	putchar('\n');
}

static void summary(const char *operation, const char *file, char **names,
		    const struct tr_pack_stats *s)
{
	const struct count counts[] = {
		{"traces", s->traces, NULL},
		{"members", s->members, file ? "members" : "files"},
		{"bytes", s->bytes, file ? "bytes" : "bytes copied"},
		{"shared_bytes", s->shared_bytes, "bytes saved by sharing"},
		{"cloned_bytes", s->cloned_bytes, "bytes cloned"},
		{"absent_files", s->absent_files, "files left out"},
		{"absent_bytes", s->absent_bytes, "bytes left out"},
		{0},
	};

	cli_progress_end();
	if (quiet)
		return;
	if (cli_is_json(format))
		summary_json(operation, file, names, counts);
	else
		summary_text(operation, file, names, counts);
}

static int trouble(const struct tr_error *err)
{
	cli_progress_end();
	return cli_trouble(err);
}

/* ---- lists of files ---- */

/* The list in a file or on stdin, or NULL without a name. */
static int load_list(const char *name, struct tr_have **list,
		     struct tr_error *err)
{
	bool from_stdin = name && strcmp(name, "-") == 0;
	int fd, r;

	*list = NULL;
	if (!name)
		return 0;
	fd = from_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cli_fail("%s: %s", name, strerror(errno));
	*list = tr_have_new();
	r = tr_have_load(*list, fd, from_stdin ? "stdin" : name, err);
	if (!from_stdin)
		close(fd);
	return r < 0 ? cli_trouble(err) : 0;
}

static int on_have(void *arg, const struct tr_have_file *f)
{
	struct tr_json *j;

	(void)arg;
	if (!cli_is_json(format)) {
		for (size_t i = 0; i < sizeof f->sha256; i++)
			printf("%02x", f->sha256[i]);
		fputs("  ", stdout);
		cli_put_escaped(f->path, strlen(f->path));
		putchar('\n');
		return cli_output_ok() ? 0 : 1;
	}
	j = tr_json_object();
	tr_json_set(j, "type", tr_json_string("have"));
	tr_json_set(j, "path", tr_json_bytes(f->path, strlen(f->path)));
	tr_json_set(j, "size", tr_json_int((int64_t)f->size));
	tr_json_set(j, "sha256", tr_json_hex_bytes(f->sha256,
						   sizeof f->sha256));
	cli_json_line(j);
	return cli_output_ok() ? 0 : 1;
}

/* Traces of this user, whose files may serve traces from elsewhere. */
static void have_traces(void)
{
	struct tr_error err;
	char *traces = cli_trace_name_base(&err);

	/* Where there are none there is nothing to say. */
	if (traces && tr_have_find(traces, on_have, NULL, &err) < 0)
		err.code = TR_OK;
	free(traces);
}

static int say_have(char **paths, size_t n)
{
	struct tr_have *list = NULL;
	struct tr_error err = {0};
	int status = load_list(files_from, &list, &err);

	if (status != DONE)
		return status;
	if (list)
		tr_have_check(list, on_have, NULL);
	tr_have_free(list);
	if (n == 0)
		have_traces();
	for (size_t i = 0; i < n; i++)
		if (tr_have_find(paths[i], on_have, NULL, &err) < 0)
			return cli_trouble(&err);
	return DONE;
}

/* ---- packing ---- */

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n > m && strcmp(s + n - m, end) == 0;
}

static bool choose_compression(enum tr_compression *c)
{
	static const struct {
		const char *name, *ending, *short_ending;
		enum tr_compression value;
	} known[] = {
		{"none", ".tar", ".trace", TR_COMPRESS_NONE},
		{"gzip", ".gz", ".tgz", TR_COMPRESS_GZIP},
		{"xz", ".xz", ".txz", TR_COMPRESS_XZ},
		{"zstd", ".zst", ".tzst", TR_COMPRESS_ZSTD},
	};

	*c = TR_COMPRESS_NONE;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (compression ? strcmp(compression, known[i].name) == 0 :
		    ends_in(output, known[i].ending) ||
		    ends_in(output, known[i].short_ending)) {
			*c = known[i].value;
			return true;
		}
	}
	return !compression;
}

/* Nothing but the archive goes to stdout. */
static int pack_to_stdout(char **dirs, size_t n,
			  const struct tr_pack_options *o)
{
	struct tr_pack_stats stats = {0};
	struct tr_error err = {0};

	if (isatty(STDOUT_FILENO))
		return cli_fail("will not write an archive to a terminal");
	if (tr_pack_write(STDOUT_FILENO, (const char *const *)dirs, n, o,
			  &stats, &err) < 0)
		return trouble(&err);
	cli_progress_end();
	return DONE;
}

static int pack_to_file(char **dirs, size_t n, const struct tr_pack_options *o)
{
	struct tr_pack_stats stats = {0};
	struct cli_out_file file;
	struct tr_error err = {0};

	if (cli_out_file_open(&file, output, force, &err) < 0)
		return cli_trouble(&err);
	if (tr_pack_write(file.fd, (const char *const *)dirs, n, o, &stats,
			  &err) < 0) {
		cli_out_file_abandon(&file);
		return trouble(&err);
	}
	if (cli_out_file_commit(&file, &err) < 0)
		return trouble(&err);
	summary("packed", output, dirs, &stats);
	return DONE;
}

static int pack(char **dirs, size_t n)
{
	struct tr_have *exclude = NULL, *only = NULL;
	struct tr_pack_options o = {.progress = on_progress};
	struct tr_error err = {0};
	int status;

	if (!choose_compression(&o.compression))
		return cli_fail("--compress: '%s' is not none, gzip, xz or zstd",
				compression);
	status = load_list(exclude_have, &exclude, &err);
	if (status == DONE)
		status = load_list(files_from, &only, &err);
	o.exclude = exclude;
	o.only = only;
	if (status == DONE)
		status = strcmp(output, "-") == 0 ? pack_to_stdout(dirs, n, &o)
						  : pack_to_file(dirs, n, &o);
	tr_have_free(exclude);
	tr_have_free(only);
	return status;
}

static int pack_in_place(char **dirs, size_t n)
{
	const struct tr_pack_options o = {.progress = on_progress};
	struct tr_pack_stats stats = {0};
	struct tr_error err = {0};

	if (tr_pack_in_place((const char *const *)dirs, n, &o, &stats, &err) <
	    0)
		return trouble(&err);
	summary("packed", NULL, dirs, &stats);
	return DONE;
}

/* The traces given, or the latest. */
static int with_traces(char **dirs, size_t n,
		       int (*what)(char **dirs, size_t n))
{
	struct tr_error err = {0};
	char *latest[2] = {NULL, NULL};
	int status;

	if (n > 0)
		return what(dirs, n);
	latest[0] = cli_trace_name_pick(NULL, &err);
	if (!latest[0])
		return cli_trouble(&err);
	status = what(latest, 1);
	free(latest[0]);
	return status;
}

/* ---- archives ---- */

/* The archive open for reading, or -1 after saying why not. */
static int open_archive(const char *name)
{
	int fd = strcmp(name, "-") == 0 ? STDIN_FILENO :
		 open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		cli_fail("%s: %s", name, strerror(errno));
	return fd;
}

static int extract_from(int fd, const struct tr_unpack_options *o)
{
	struct tr_pack_stats stats = {0};
	struct tr_error err = {0};
	char **names = NULL;

	if (tr_pack_extract(fd, target ? target : ".", o, &names, &stats,
			    &err) < 0)
		return trouble(&err);
	summary("unpacked", archive, names, &stats);
	for (char **s = names; s && *s; s++)
		free(*s);
	free(names);
	return DONE;
}

static int extract(void)
{
	struct tr_have *list = NULL;
	struct tr_error err = {0};
	char *traces = cli_trace_name_base(&err);
	const char *const places[] = {traces, NULL};
	struct tr_unpack_options o = {.max_bytes = limit_mb << 20,
				      .places = places,
				      .progress = on_progress};
	int fd, status = load_list(have_from, &list, &err);

	o.have = list;
	if (status != DONE) {
		free(traces);
		return status;
	}
	fd = open_archive(archive);
	status = fd < 0 ? TROUBLE : extract_from(fd, &o);
	if (fd > STDIN_FILENO)
		close(fd);
	tr_have_free(list);
	free(traces);
	return status;
}

static int on_member(void *arg, const struct tr_pack_member *m)
{
	struct tr_json *j;

	(void)arg;
	if (!cli_is_json(format)) {
		printf("%12" PRIu64 "  ", m->size);
		cli_put_escaped(m->name, strlen(m->name));
		if (m->target) {
			fputs(" = ", stdout);
			cli_put_escaped(m->target, strlen(m->target));
		}
		putchar('\n');
		return cli_output_ok() ? 0 : 1;
	}
	j = tr_json_object();
	tr_json_set(j, "type", tr_json_string("member"));
	tr_json_set(j, "name", tr_json_bytes(m->name, strlen(m->name)));
	tr_json_set(j, "trace", tr_json_bytes(m->trace, strlen(m->trace)));
	tr_json_set(j, "kind", tr_json_string(m->type));
	tr_json_set(j, "size", tr_json_int((int64_t)m->size));
	if (m->target)
		tr_json_set(j, "target", tr_json_bytes(m->target,
						       strlen(m->target)));
	cli_json_line(j);
	return cli_output_ok() ? 0 : 1;
}

static int list(void)
{
	int fd = open_archive(listed), r;
	struct tr_error err = {0};

	if (fd < 0)
		return TROUBLE;
	r = tr_pack_list(fd, on_member, NULL, &err);
	if (fd > STDIN_FILENO)
		close(fd);
	return r < 0 ? cli_trouble(&err) : DONE;
}

/* ---- skeletons, and traces whose time is over ---- */

static int redact(char **dirs, size_t n)
{
	struct tr_error err = {0};
	struct tr_reader *reader;
	int r;

	if (n != 1)
		return cli_fail("--redact takes one trace");
	reader = tr_trace_open(dirs[0], &err);
	if (!reader)
		return cli_trouble(&err);
	r = tr_redact(reader, redacted, &err);
	tr_reader_close(reader);
	return r < 0 ? cli_trouble(&err) : DONE;
}

static void on_pruned(void *arg, const struct tr_pruned *p)
{
	struct tr_json *j;

	(void)arg;
	if (!cli_is_json(format)) {
		cli_put_escaped(p->path, strlen(p->path));
		puts(force ? ": removed" : ": expired");
		return;
	}
	j = tr_json_object();
	tr_json_set(j, "type", tr_json_string("pruned"));
	tr_json_set(j, "path", tr_json_bytes(p->path, strlen(p->path)));
	tr_json_set(j, "expires", tr_json_int(p->expires_ns));
	tr_json_set(j, "removed", tr_json_bool(force));
	cli_json_line(j);
}

static int prune_directory(void)
{
	int64_t now_ns = (int64_t)time(NULL) * 1000000000;
	struct tr_error err = {0};

	if (tr_prune(prune, now_ns, force, on_pruned, NULL, &err) < 0)
		return cli_trouble(&err);
	return DONE;
}

/* ---- which of these ---- */

/* What is wrong with the options together, or NULL. */
static const char *misuse(bool operands)
{
	if ((output != NULL) + (archive != NULL) + (listed != NULL) + have +
	    (prune != NULL) + (redacted != NULL) > 1)
		return "give one of -o, -x, -t, --have, --redact and --prune";
	if ((archive || listed || prune) && operands)
		return "-x, -t and --prune take no traces";
	if (!archive && (target || have_from || limit_mb))
		return "-C, --have-from and --max-size go with -x";
	if (!output && (compression || exclude_have))
		return "--compress and --exclude-have go with -o";
	if (!output && !prune && force)
		return "--force goes with -o and --prune";
	if (!output && !have && files_from)
		return "--files-from goes with -o and --have";
	if (exclude_have && files_from && strcmp(exclude_have, "-") == 0 &&
	    strcmp(files_from, "-") == 0)
		return "only one list can come from stdin";
	if (archive && have_from && strcmp(archive, "-") == 0 &&
	    strcmp(have_from, "-") == 0)
		return "not both the archive and the list can come from stdin";
	if (limit_mb >> 40)
		return "--max-size is too large";
	return NULL;
}

int main(int argc, char **argv)
{
	int first = cli_parse(&tool, argc, argv);
	char **operands = argv + first;
	size_t n = (size_t)(argc - first);
	const char *wrong = misuse(n > 0);

	if (wrong)
		return cli_fail("%s (try trace-pack --help)", wrong);
	if (archive)
		return cli_finish(extract());
	if (listed)
		return cli_finish(list());
	if (have)
		return cli_finish(say_have(operands, n));
	if (prune)
		return cli_finish(prune_directory());
	return cli_finish(with_traces(operands, n, redacted ? redact :
				      output ? pack : pack_in_place));
}
