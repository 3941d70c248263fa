/* The manifest for people and for pipes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/cli/output.h"
#include "cmd/cli/status.h"
#include "cmd/cli/views.h"
#include "libtrace/base/alloc.h"

static struct tr_json *bytes(const char *s)
{
	return s ? tr_json_bytes(s, strlen(s)) : tr_json_null();
}

static struct tr_json *list(char *const *s)
{
	struct tr_json *j = tr_json_array();

	for (; s && *s; s++)
		tr_json_append(j, bytes(*s));
	return j;
}

/* An object, which is what jq(1) wants; JSON keys have to be UTF-8. */
static struct tr_json *labels(char *const *s)
{
	struct tr_json *j = tr_json_object();

	for (; s && *s; s++) {
		size_t n = strcspn(*s, "=");
		TR_AUTOFREE char *key = tr_strndup(*s, n);

		for (char *c = key; *c; c++)
			if (*c & 0x80)
				*c = '?';
		tr_json_set(j, key, bytes((*s)[n] ? *s + n + 1 : ""));
	}
	return j;
}

static void set_status(struct tr_json *j, const struct tr_manifest *m)
{
	if (!m->complete)
		return;
	cli_status_json(j, m->status);
	tr_json_set(j, "duration", tr_json_int((int64_t)m->duration_ns));
	tr_json_set(j, "events", tr_json_int((int64_t)m->events));
	tr_json_set(j, "tasks", tr_json_int((int64_t)m->tasks));
	tr_json_set(j, "streams", tr_json_int((int64_t)m->streams));
	tr_json_set(j, "files", tr_json_int((int64_t)m->files));
}

static void header_json(const struct tr_reader *r, const struct tr_manifest *m,
			bool verbose)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string("header"));
	tr_json_set(j, "path", bytes(tr_reader_path(r)));
	tr_json_set(j, "version", tr_json_int(m->version));
	tr_json_set(j, "incompat", list(m->incompat));
	tr_json_set(j, "compat", list(m->compat));
	tr_json_set(j, "uuid", bytes(m->uuid));
	tr_json_set(j, "tool", bytes(m->tool));
	tr_json_set(j, "argv", list(m->argv));
	tr_json_set(j, "cwd", bytes(m->cwd));
	tr_json_set(j, "labels", labels(m->labels));
	tr_json_set(j, "start", tr_json_int(m->start_ns));
	tr_json_set(j, "host", bytes(m->host));
	tr_json_set(j, "kernel", bytes(m->kernel));
	tr_json_set(j, "machine", bytes(m->machine));
	tr_json_set(j, "cpu_model", bytes(m->cpu_model));
	tr_json_set(j, "xcr0", tr_json_hex(m->xcr0));
	if (verbose) {
		tr_json_set(j, "cpu_flags", bytes(m->cpu_flags));
		tr_json_set(j, "env", list(m->envp));
	}
	tr_json_set(j, "complete", tr_json_bool(tr_reader_complete(r)));
	tr_json_set(j, "lost_bytes",
		    tr_json_int((int64_t)tr_reader_lost_bytes(r)));
	set_status(j, m);
	if (m->stopped) {
		tr_json_set(j, "stopped", bytes(m->stopped));
		tr_json_set(j, "stopped_at", tr_json_int((int64_t)m->stopped_at));
	}
	if (m->expires_ns)
		tr_json_set(j, "expires", tr_json_int(m->expires_ns));
	if (m->portable)
		tr_json_set(j, "portable", bytes(m->portable));
	tr_json_set(j, "packed", tr_json_bool(m->packed));
	tr_json_set(j, "redacted", tr_json_bool(m->redacted));
	cli_json_line(j);
}

static void line(const char *key, const char *value)
{
	if (!value)
		return;
	printf("%-9s ", key);
	cli_put_escaped(value, strlen(value));
	putchar('\n');
}

static void words(const char *key, char *const *s)
{
	if (!s || !*s)
		return;
	printf("%-9s", key);
	for (; *s; s++) {
		putchar(' ');
		cli_put_escaped(*s, strlen(*s));
	}
	putchar('\n');
}

static void lines(const char *key, char *const *s)
{
	for (; s && *s; s++)
		line(key, *s);
}

static void when(const char *key, int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[64];

	if (gmtime_r(&seconds, &tm) &&
	    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		line(key, text);
}

static void ending(const struct tr_reader *r, const struct tr_manifest *m)
{
	char how[64];

	if (!tr_reader_complete(r)) {
		printf("%-9s incomplete: the recording did not end cleanly",
		       "state");
		if (tr_reader_lost_bytes(r))
			printf("; %" PRIu64 " bytes are not readable",
			       tr_reader_lost_bytes(r));
		putchar('\n');
	} else {
		printf("%-9s complete: %" PRIu64 " events, %" PRIu64
		       " tasks, %" PRIu64 " files, %" PRIu64 ".%03u s\n",
		       "state", m->events, m->tasks, m->files,
		       m->duration_ns / 1000000000u,
		       (unsigned)(m->duration_ns % 1000000000u / 1000000));
	}
	if (m->complete)
		line("ended", cli_status_text(m->status, how, sizeof how));
	if (m->stopped)
		printf("%-9s ends before event %" PRIu64 ": %s\n", "replay",
		       m->stopped_at, m->stopped);
}

static void header_text(const struct tr_reader *r, const struct tr_manifest *m,
			bool verbose)
{
	line("trace", tr_reader_path(r));
	words("command", m->argv);
	line("cwd", m->cwd);
	lines("label", m->labels);
	when("started", m->start_ns);
	if (m->expires_ns)
		when("expires", m->expires_ns);
	line("portable", m->portable);
	if (m->redacted)
		line("redacted", "contents were taken out");
	ending(r, m);
	line("host", m->host);
	line("kernel", m->kernel);
	line("cpu", m->cpu_model);
	if (verbose) {
		line("flags", m->cpu_flags);
		lines("env", m->envp);
		line("uuid", m->uuid);
		line("recorder", m->tool);
		words("needs", m->incompat);
		words("features", m->compat);
	}
}

void cli_print_header(const struct tr_reader *reader, bool json, bool verbose)
{
	const struct tr_manifest *m = tr_reader_manifest(reader);

	if (json)
		header_json(reader, m, verbose);
	else
		header_text(reader, m, verbose);
}
