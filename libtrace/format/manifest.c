/* Reading and writing manifest.json, checksum line included. */
#include "libtrace/format/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/base/json.h"
#include "libtrace/format/home.h"

#define FILE_NAME "manifest.json"
/* execve(2) takes 6 MiB of strings at most; escapes make six bytes of one. */
#define MAX_SIZE (64u << 20)

/*
 * The last line of every version's manifest; what stands before it is what
 * the checksum covers.  Nothing in it may vary but the digits, so that no
 * byte of the file can change unnoticed.
 */
#define CHECK_FORMAT "  \"checksum\": \"%016" PRIx64 "\"\n}\n"
#define CHECK_SIZE (sizeof "  \"checksum\": \"\"\n}\n" - 1 + 16)

/* Known incompatible features. */
static const char *const known_features[] = {TR_FEATURE_XSAVEC, TR_FEATURE_VIA,
					      TR_FEATURE_BLOCKS,
					      TR_FEATURE_TRANSLATED,
					      TR_FEATURE_KNOWN, NULL};

static void free_list(char **list)
{
	if (!list)
		return;
	for (char **p = list; *p; p++)
		free(*p);
	free(list);
}

void tr_manifest_release(struct tr_manifest *m)
{
	free_list(m->incompat);
	free_list(m->compat);
	free_list(m->argv);
	free_list(m->envp);
	free_list(m->labels);
	free(m->tool);
	free(m->host);
	free(m->kernel);
	free(m->machine);
	free(m->cpu_model);
	free(m->cpu_flags);
	free(m->cwd);
	free(m->stopped);
	free(m->portable);
	free(m->digests);
	*m = (struct tr_manifest){0};
}

static struct tr_json *text_or_empty(const char *s)
{
	return tr_json_string(s ? s : "");
}

static struct tr_json *list_json(char *const *list)
{
	struct tr_json *a = tr_json_array();

	for (; list && *list; list++)
		tr_json_append(a, tr_json_string(*list));
	return a;
}

static struct tr_json *count_json(uint64_t n)
{
	return tr_json_int(n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

static void describe_machine(struct tr_json *j, const struct tr_manifest *m)
{
	tr_json_set(j, "tool", text_or_empty(m->tool));
	tr_json_set(j, "host", text_or_empty(m->host));
	tr_json_set(j, "kernel", text_or_empty(m->kernel));
	tr_json_set(j, "machine", text_or_empty(m->machine));
	tr_json_set(j, "cpu_model", text_or_empty(m->cpu_model));
	tr_json_set(j, "cpu_flags", text_or_empty(m->cpu_flags));
	tr_json_set(j, "xcr0", tr_json_hex(m->xcr0));
}

static void describe_end(struct tr_json *j, const struct tr_manifest *m)
{
	tr_json_set(j, "complete", tr_json_bool(m->complete));
	if (m->complete) {
		tr_json_set(j, "status", tr_json_int(m->status));
		tr_json_set(j, "events", count_json(m->events));
		tr_json_set(j, "tasks", count_json(m->tasks));
		tr_json_set(j, "streams", count_json(m->streams));
		tr_json_set(j, "files", count_json(m->files));
	}
	if (m->stopped) {
		tr_json_set(j, "stopped", tr_json_string(m->stopped));
		tr_json_set(j, "stopped_at", count_json(m->stopped_at));
	}
}

static struct tr_json *digests_json(const struct tr_manifest *m)
{
	struct tr_json *a = tr_json_array();

	for (size_t i = 0; i < m->ndigests; i++) {
		const struct tr_manifest_digest *d = &m->digests[i];
		struct tr_json *j = tr_json_object();

		tr_json_set(j, "file", tr_json_int(d->file));
		tr_json_set(j, "sha256", tr_json_hex_bytes(d->sha256,
							   sizeof d->sha256));
		tr_json_append(a, j);
	}
	return a;
}

/* What was done with the trace, and may be done; there when it says so. */
static void describe_care(struct tr_json *j, const struct tr_manifest *m)
{
	if (m->expires_ns)
		tr_json_set(j, "expires_ns", tr_json_int(m->expires_ns));
	if (m->packed)
		tr_json_set(j, "packed", tr_json_bool(true));
	if (m->redacted)
		tr_json_set(j, "redacted", tr_json_bool(true));
	if (m->portable)
		tr_json_set(j, "portable", tr_json_string(m->portable));
	if (m->ndigests)
		tr_json_set(j, "digests", digests_json(m));
}

static struct tr_json *to_json(const struct tr_manifest *m)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "format", tr_json_string("trace"));
	tr_json_set(j, "version", tr_json_int(TR_FORMAT_VERSION));
	tr_json_set(j, "incompat", list_json(m->incompat));
	tr_json_set(j, "compat", list_json(m->compat));
	tr_json_set(j, "uuid", tr_json_string(m->uuid));
	describe_machine(j, m);
	tr_json_set(j, "argv", list_json(m->argv));
	tr_json_set(j, "cwd", text_or_empty(m->cwd));
	tr_json_set(j, "envp", list_json(m->envp));
	tr_json_set(j, "labels", list_json(m->labels));
	tr_json_set(j, "start_ns", tr_json_int(m->start_ns));
	tr_json_set(j, "duration_ns", count_json(m->duration_ns));
	describe_end(j, m);
	describe_care(j, m);
	return j;
}

int tr_manifest_write(int dirfd, const struct tr_manifest *m,
		      struct tr_error *err)
{
	struct tr_json *j = to_json(m);
	TR_AUTOFREE char *text = tr_json_dump_pretty(j);
	size_t n = strlen(text);
	TR_AUTOBUF struct tr_buf b = {0};

	tr_json_free(j);
	/* The dump ends in "\n}": put one more member before the brace. */
	tr_buf_put(&b, text, n - 2);
	tr_buf_put(&b, ",\n", 2);
	b.len += (size_t)snprintf((char *)tr_buf_reserve(&b, CHECK_SIZE + 1),
				  CHECK_SIZE + 1, CHECK_FORMAT,
				  (uint64_t)XXH3_64bits(b.data, b.len));
	/* The first one may be lost with all that follows; the last one is
	 * what makes the trace count. */
	return tr_replace_file(dirfd, FILE_NAME, b.data, b.len, m->complete,
			       err);
}

static int damaged(struct tr_error *err, const char *member)
{
	return tr_fail(err, TR_ECORRUPT,
		       FILE_NAME ": member \"%s\" is missing or malformed",
		       member);
}

static int check_sum(const struct tr_buf *b, struct tr_error *err)
{
	char want[CHECK_SIZE + 1];
	size_t n;

	if (b->len < CHECK_SIZE)
		return tr_fail(err, TR_ECORRUPT,
			       FILE_NAME ": too short (%zu bytes)", b->len);
	n = b->len - CHECK_SIZE;
	snprintf(want, sizeof want, CHECK_FORMAT,
		 (uint64_t)XXH3_64bits(b->data, n));
	if (memcmp(b->data + n, want, CHECK_SIZE) != 0)
		return tr_fail(err, TR_ECORRUPT,
			       FILE_NAME ": the checksum does not match; the "
			       "file was changed or cut off");
	return 0;
}

static int get_text(const struct tr_json *j, const char *member, char **to,
		    struct tr_error *err)
{
	size_t n;

	if (!tr_json_get_bytes(tr_json_get(j, member), to, &n))
		return damaged(err, member);
	if (memchr(*to, '\0', n))
		return damaged(err, member);
	return 0;
}

static int get_list(const struct tr_json *j, const char *member, char ***to,
		    struct tr_error *err)
{
	const struct tr_json *a = tr_json_get(j, member);
	size_t n = tr_json_length(a);

	if (!tr_json_is_array(a))
		return damaged(err, member);
	*to = tr_alloc((n + 1) * sizeof **to);
	for (size_t i = 0; i < n; i++) {
		size_t len;

		if (!tr_json_get_bytes(tr_json_at(a, i), &(*to)[i], &len) ||
		    memchr((*to)[i], '\0', len))
			return damaged(err, member);
	}
	return 0;
}

static int get_count(const struct tr_json *j, const char *member, uint64_t *to,
		     struct tr_error *err)
{
	int64_t v;

	if (!tr_json_get_int(tr_json_get(j, member), &v) || v < 0)
		return damaged(err, member);
	*to = (uint64_t)v;
	return 0;
}

static bool feature_known(const char *name)
{
	for (const char *const *f = known_features; *f; f++)
		if (strcmp(*f, name) == 0)
			return true;
	return false;
}

/* What a reader must know before it may look at anything else. */
static int read_version(const struct tr_json *j, struct tr_manifest *m,
			struct tr_error *err)
{
	const char *format;
	int64_t version;

	if (!tr_json_get_string(tr_json_get(j, "format"), &format) ||
	    strcmp(format, "trace") != 0)
		return damaged(err, "format");
	if (!tr_json_get_int(tr_json_get(j, "version"), &version) ||
	    version < 1)
		return damaged(err, "version");
	if (version > TR_FORMAT_VERSION)
		return tr_fail(err, TR_EVERSION,
			       FILE_NAME ": format version %" PRId64
			       "; this program reads version %d: use a newer "
			       "one", version, TR_FORMAT_VERSION);
	m->version = (int)version;
	if (get_list(j, "incompat", &m->incompat, err) < 0)
		return -1;
	for (char **f = m->incompat; *f; f++)
		if (!feature_known(*f))
			return tr_fail(err, TR_EFEATURE,
				       FILE_NAME ": needs the feature \"%.64s\""
				       ", which this program does not know: "
				       "use a newer one", *f);
	return get_list(j, "compat", &m->compat, err);
}

static bool uuid_ok(const char *s)
{
	static const char model[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	if (strlen(s) != sizeof model - 1)
		return false;
	for (size_t i = 0; s[i]; i++) {
		bool hex = strchr("0123456789abcdef", s[i]) != NULL;

		if (model[i] == '-' ? s[i] != '-' : !hex)
			return false;
	}
	return true;
}

static int read_machine(const struct tr_json *j, struct tr_manifest *m,
			struct tr_error *err)
{
	const char *uuid;

	/* An empty one is a manifest written without; anything else is a
	 * UUID in its canonical form (RFC 4122). */
	if (!tr_json_get_string(tr_json_get(j, "uuid"), &uuid) ||
	    (*uuid && !uuid_ok(uuid)))
		return damaged(err, "uuid");
	memcpy(m->uuid, uuid, strlen(uuid) + 1);
	if (get_text(j, "tool", &m->tool, err) < 0 ||
	    get_text(j, "host", &m->host, err) < 0 ||
	    get_text(j, "kernel", &m->kernel, err) < 0 ||
	    get_text(j, "machine", &m->machine, err) < 0 ||
	    get_text(j, "cpu_model", &m->cpu_model, err) < 0 ||
	    get_text(j, "cpu_flags", &m->cpu_flags, err) < 0)
		return -1;
	if (!tr_json_get_hex(tr_json_get(j, "xcr0"), &m->xcr0))
		return damaged(err, "xcr0");
	return 0;
}

static int read_program(const struct tr_json *j, struct tr_manifest *m,
			struct tr_error *err)
{
	if (get_list(j, "argv", &m->argv, err) < 0 ||
	    get_text(j, "cwd", &m->cwd, err) < 0 ||
	    get_list(j, "envp", &m->envp, err) < 0 ||
	    get_list(j, "labels", &m->labels, err) < 0)
		return -1;
	if (!tr_json_get_int(tr_json_get(j, "start_ns"), &m->start_ns))
		return damaged(err, "start_ns");
	return get_count(j, "duration_ns", &m->duration_ns, err);
}

static int read_totals(const struct tr_json *j, struct tr_manifest *m,
		       struct tr_error *err)
{
	int64_t status;

	if (!tr_json_get_int(tr_json_get(j, "status"), &status) ||
	    status < INT_MIN || status > INT_MAX)
		return damaged(err, "status");
	m->status = (int)status;
	if (get_count(j, "events", &m->events, err) < 0 ||
	    get_count(j, "tasks", &m->tasks, err) < 0 ||
	    get_count(j, "streams", &m->streams, err) < 0)
		return -1;
	return get_count(j, "files", &m->files, err);
}

static int read_end(const struct tr_json *j, struct tr_manifest *m,
		    struct tr_error *err)
{
	if (!tr_json_get_bool(tr_json_get(j, "complete"), &m->complete))
		return damaged(err, "complete");
	if (m->complete && read_totals(j, m, err) < 0)
		return -1;
	if (!tr_json_get(j, "stopped"))
		return 0;
	if (get_text(j, "stopped", &m->stopped, err) < 0)
		return -1;
	return get_count(j, "stopped_at", &m->stopped_at, err);
}

static int read_digest(const struct tr_json *j, struct tr_manifest_digest *d,
		       struct tr_error *err)
{
	const char *hex;
	int64_t file;

	if (!tr_json_get_int(tr_json_get(j, "file"), &file) || file < 1 ||
	    file > UINT32_MAX ||
	    !tr_json_get_string(tr_json_get(j, "sha256"), &hex) ||
	    !tr_parse_hex(hex, d->sha256, sizeof d->sha256))
		return damaged(err, "digests");
	d->file = (uint32_t)file;
	return 0;
}

static int read_digests(const struct tr_json *j, struct tr_manifest *m,
			struct tr_error *err)
{
	const struct tr_json *a = tr_json_get(j, "digests");
	size_t n = tr_json_length(a);

	if (!a)
		return 0;
	if (!tr_json_is_array(a))
		return damaged(err, "digests");
	m->digests = tr_alloc(n * sizeof *m->digests);
	for (; m->ndigests < n; m->ndigests++)
		if (read_digest(tr_json_at(a, m->ndigests),
				&m->digests[m->ndigests], err) < 0)
			return -1;
	return 0;
}

static int get_flag(const struct tr_json *j, const char *member, bool *to,
		    struct tr_error *err)
{
	const struct tr_json *v = tr_json_get(j, member);

	return !v || tr_json_get_bool(v, to) ? 0 : damaged(err, member);
}

static int read_care(const struct tr_json *j, struct tr_manifest *m,
		     struct tr_error *err)
{
	const struct tr_json *expires = tr_json_get(j, "expires_ns");

	if (expires && !tr_json_get_int(expires, &m->expires_ns))
		return damaged(err, "expires_ns");
	if (get_flag(j, "packed", &m->packed, err) < 0 ||
	    get_flag(j, "redacted", &m->redacted, err) < 0)
		return -1;
	if (tr_json_get(j, "portable") &&
	    get_text(j, "portable", &m->portable, err) < 0)
		return -1;
	return read_digests(j, m, err);
}

static int from_json(const struct tr_json *j, struct tr_manifest *m,
		     struct tr_error *err)
{
	if (read_version(j, m, err) < 0 || read_machine(j, m, err) < 0 ||
	    read_program(j, m, err) < 0 || read_end(j, m, err) < 0)
		return -1;
	return read_care(j, m, err);
}

int tr_manifest_read(int dirfd, struct tr_manifest *m, struct tr_error *err)
{
	const struct tr_home home = TR_HOME_DIRECTORY(dirfd);

	return tr_manifest_read_at(&home, m, err);
}

int tr_manifest_read_at(const struct tr_home *home, struct tr_manifest *m,
			struct tr_error *err)
{
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_json *j;
	int r;

	*m = (struct tr_manifest){0};
	if (tr_home_load(home, FILE_NAME, MAX_SIZE, &b, err) < 0) {
		if (err->code == TR_ESYS && err->sys_errno == ENOENT)
			tr_fail(err, TR_ENOTRACE,
				"not a trace (no " FILE_NAME ")");
		return -1;
	}
	if (check_sum(&b, err) < 0)
		return -1;
	j = tr_json_parse((const char *)b.data, b.len, FILE_NAME, err);
	if (!j)
		return -1;
	r = from_json(j, m, err);
	tr_json_free(j);
	if (r < 0)
		tr_manifest_release(m);
	return r;
}
