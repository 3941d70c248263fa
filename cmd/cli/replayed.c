/* The state of a trace at an event, told by trace-replay. */
#include "cmd/cli/replayed.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cli/replay_run.h"
#include "libtrace/base/alloc.h"
#include "libtrace/state/source.h"
#include "libtrace/state/symbol.h"

/* ---- the other program ---- */

int cli_replayed_start(struct cli_replayed *r, struct tr_error *err)
{
	TR_AUTOFREE char *to = tr_printf("--goto=%" PRIu64, r->event);
	const char *options[] = {"--quiet", "--contents", to, NULL};
	pid_t pid = cli_replay_spawn(options, r->trace, &r->from, err);

	if (pid < 0)
		return -1;
	r->pid = pid;
	return 0;
}

int cli_replayed_finish(struct cli_replayed *r, struct tr_error *err)
{
	int status;

	if (waitpid(r->pid, &status, 0) < 0)
		return tr_fail_errno(err, "trace-replay");
	r->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return tr_fail(err, TR_EDIVERGED, "%s: it cannot be replayed to event "
		       "%" PRIu64, r->trace, r->event);
}

void cli_replayed_release(struct cli_replayed *r)
{
	if (r->from)
		fclose(r->from); /* a replay that still writes ends by it */
	if (r->pid)
		waitpid(r->pid, NULL, 0);
	for (size_t i = 0; i < r->nmaps; i++)
		free(r->map[i].name);
	free(r->map);
	free(r->line);
}

/* ---- what it says ---- */

static int odd(const struct cli_replayed *r, struct tr_error *err)
{
	return tr_fail(err, TR_ECORRUPT, "trace-replay: unexpected: %.100s",
		       r->line);
}

/* The next object; NULL at the end, or with *failed set. */
static struct tr_json *next(struct cli_replayed *r, bool *failed,
			    struct tr_error *err)
{
	ssize_t n = getline(&r->line, &r->line_size, r->from);
	struct tr_json *j;

	if (n <= 0)
		return NULL;
	j = tr_json_parse(r->line, (size_t)n, "trace-replay", err);
	*failed = !j;
	return j;
}

static bool is(const struct tr_json *j, const char *type)
{
	const char *s;

	return tr_json_get_string(tr_json_get(j, "type"), &s) &&
	       strcmp(s, type) == 0;
}

static bool take_regs(struct cli_replayed *r, const struct tr_json *j)
{
	int64_t task;

	if (!is(j, "registers") ||
	    !tr_json_get_int(tr_json_get(j, "task"), &task))
		return false;
	r->task = (uint32_t)task;
#define X(name)                                                                \
	if (!tr_json_get_hex(tr_json_get(j, #name), &r->regs.name))            \
		return false;
	TR_REGS(X)
#undef X
	return true;
}

static bool take_mapping(struct cli_replayed *r, const struct tr_json *j)
{
	struct cli_mapping m = {0};
	const char *permissions;
	int64_t offset, file;
	size_t n;

	if (!tr_json_get_hex(tr_json_get(j, "start"), &m.start) ||
	    !tr_json_get_hex(tr_json_get(j, "end"), &m.end) ||
	    !tr_json_get_int(tr_json_get(j, "offset"), &offset) ||
	    !tr_json_get_int(tr_json_get(j, "file"), &file) ||
	    !tr_json_get_string(tr_json_get(j, "permissions"), &permissions) ||
	    !tr_json_get_bytes(tr_json_get(j, "name"), &m.name, &n))
		return false;
	m.offset = (uint64_t)offset;
	m.file = (uint32_t)file;
	snprintf(m.permissions, sizeof m.permissions, "%s", permissions);
	TR_GROW(r->map, r->nmaps, r->maps_cap);
	r->map[r->nmaps++] = m;
	return true;
}

static bool take_page(struct cli_replayed *r, const struct tr_json *j)
{
	const char *hex;

	if (!is(j, "page") ||
	    !tr_json_get_hex(tr_json_get(j, "addr"), &r->addr) ||
	    !tr_json_get_hex(tr_json_get(j, "hash"), &r->hash) ||
	    !tr_json_get_string(tr_json_get(j, "data"), &hex) ||
	    strlen(hex) != 2 * sizeof r->bytes)
		return false;
	for (size_t i = 0; i < sizeof r->bytes; i++) {
		char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		r->bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return true;
}

int cli_replayed_page(struct cli_replayed *r, struct tr_error *err)
{
	bool failed = false;
	struct tr_json *j = next(r, &failed, err);
	bool good;

	r->at_page = j != NULL;
	if (!j)
		return failed ? -1 : 0;
	good = take_page(r, j);
	tr_json_free(j);
	return good ? 0 : odd(r, err);
}

int cli_replayed_begin(struct cli_replayed *r, struct tr_error *err)
{
	bool failed = false, good = true, have_regs = false;
	struct tr_json *j = NULL;

	while (good && !r->at_page && (j = next(r, &failed, err))) {
		if (!have_regs)
			good = have_regs = take_regs(r, j);
		else if (is(j, "mapping"))
			good = take_mapping(r, j);
		else
			good = r->at_page = take_page(r, j);
		tr_json_free(j);
	}
	if (failed)
		return -1;
	/* Nothing at all: the replay has said why. */
	if (!have_regs && good)
		return cli_replayed_finish(r, err) < 0 ? -1 : odd(r, err);
	return good ? 0 : odd(r, err);
}

/* ---- what is where ---- */

static const struct cli_mapping *find(const struct cli_replayed *r,
				      uint64_t addr)
{
	for (size_t i = 0; i < r->nmaps; i++)
		if (addr >= r->map[i].start && addr < r->map[i].end)
			return &r->map[i];
	return NULL;
}

/* Memory without a file right behind that of one is the file's .bss. */
static const struct cli_mapping *with_file(const struct cli_replayed *r,
					   const struct cli_mapping *m)
{
	while (m > r->map && !m->file && !m->name[0] && m[-1].end == m->start)
		m--;
	return m->file ? m : NULL;
}

/* Where the file's first byte is mapped, at or below m. */
static const struct cli_mapping *beginning(const struct cli_replayed *r,
					   const struct cli_mapping *m)
{
	const struct cli_mapping *b = m;

	while (b > r->map && !(b->file == m->file && b->offset == 0))
		b--;
	return b->file == m->file && b->offset == 0 ? b : NULL;
}

struct cli_location cli_replayed_locate(const struct cli_replayed *r,
					uint64_t addr, bool code)
{
	const struct cli_mapping *m = find(r, addr), *f, *b;
	struct cli_location l = {0};
	TR_AUTOFREE char *path = NULL;
	uint64_t first;

	f = m ? with_file(r, m) : NULL;
	if (m && (f || m->name[0]))
		l.mapping = tr_strdup(f ? f->name : m->name);
	b = f ? beginning(r, f) : NULL;
	if (!b)
		return l;
	path = tr_printf("files/%" PRIu32, f->file);
	TR_AUTOCLOSE int fd = openat(tr_reader_dirfd(r->reader), path,
				     O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || !tr_elf_address(fd, 0, &first))
		return l;
	addr = addr - b->start + first;
	l.symbol = tr_symbol_of(fd, addr);
	if (code)
		l.source = tr_source_at(fd, addr);
	return l;
}

void cli_location_release(struct cli_location *l)
{
	free(l->mapping);
	free(l->symbol);
	free(l->source);
	*l = (struct cli_location){0};
}
