/*
 * A trace without its contents.
 *
 * What stays is listed; everything else, fields that this code does not know
 * among them, becomes zero, so that nothing slips through when events gain
 * fields.  Sizes stay, and zeroes cost next to nothing in a chunk.
 */
#include "libtrace/model/redact.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/writer.h"
#include "libtrace/model/syscalls.h"
#include "libtrace/store/remove.h"

#define B(f) ((uint64_t)1 << TR_F_##f)

/* Scalars that tell of structure, sizes and times only. */
#define KEPT_SCALARS                                                          \
	(B(NR) | B(RESULT) | B(DURATION) | B(OUTPUT) | B(ENTERED) |           \
	 B(ORIGIN) | B(PID) | B(TID) | B(PARENT) | B(CHILD) |                 \
	 B(CHILD_STREAM) | B(CLONE_FLAGS) | B(SIGNO) | B(ACTION) | B(STATUS) |\
	 B(BRK_START) | B(BRK) | B(STACK_LIMIT) | B(INSN) | B(LENGTH) |       \
	 B(FILE) | B(METHOD) | B(MODE) | B(SIZE) | B(PARTS) | B(CODE) |       \
	 B(EVENTS) | B(TASKS) | B(STREAMS) | B(CPU) | B(DOMAIN) | B(OFFSET) |      \
	 B(PLACE) | B(CHANGED))

#define X(NAME, tag, name, sign, form) | B(NAME)
static const uint64_t scalars = 0 TR_SCALAR_FIELDS(X);
#undef X
#define STRUCTURED                                                            \
	(B(REGS) | B(REGS_AFTER) | B(XSTATE) | B(SIGINFO) | B(TEXT) |         \
	 B(SHA256) | B(MEM) | B(MAP) | B(ARG))

/* signo, errno and code: siginfo_t begins with them (sigaction(2)). */
#define SIGINFO_KEPT 12

/* Arrays of the event being made, used again for the next. */
struct job {
	struct tr_writer *writer;
	uint8_t *zeroes; /* as many as any field has */
	char *letters;
	uint8_t siginfo[128];
	struct tr_mem *mem;
	struct tr_map *map;
	struct tr_arg *arg;
	size_t mem_cap, map_cap, arg_cap;
};

/* A call's arguments, as far as it has them. */
static void keep_arguments(struct tr_regs *to, const struct tr_regs *from,
			   uint64_t nr)
{
	const struct tr_sys *sys = tr_sys_lookup(nr);
	uint64_t *const out[] = {&to->rdi, &to->rsi, &to->rdx,
				 &to->r10, &to->r8, &to->r9};
	const uint64_t in[] = {from->rdi, from->rsi, from->rdx,
			       from->r10, from->r8, from->r9};

	for (size_t i = 0; sys && i < sys->nargs && i < 6; i++)
		*out[i] = in[i];
}

/* Where it is, and which call it makes. */
static struct tr_regs redact_regs(const struct tr_regs *from)
{
	return (struct tr_regs){
		.rip = from->rip, .rsp = from->rsp,
		.orig_rax = from->orig_rax, .cs = from->cs, .ss = from->ss,
	};
}

static void redact_memory(struct job *j, struct tr_event *ev,
			  const struct tr_event *from)
{
	for (size_t i = 0; i < from->nmem; i++) {
		TR_GROW(j->mem, i, j->mem_cap);
		j->mem[i] = from->mem[i];
		j->mem[i].bytes.data = j->zeroes;
	}
	for (size_t i = 0; i < from->narg; i++) {
		TR_GROW(j->arg, i, j->arg_cap);
		j->arg[i] = from->arg[i];
		j->arg[i].hash = 0;
		j->arg[i].bytes.data = from->arg[i].is_string ?
				       (void *)j->letters : j->zeroes;
	}
	ev->mem = j->mem;
	ev->nmem = from->nmem;
	ev->arg = j->arg;
	ev->narg = from->narg;
}

/* "[heap]" and "[stack]" are the kernel's words; others are paths. */
static void redact_maps(struct job *j, struct tr_event *ev,
			const struct tr_event *from)
{
	for (size_t i = 0; i < from->nmap; i++) {
		const struct tr_bytes *name = &from->map[i].name;

		TR_GROW(j->map, i, j->map_cap);
		j->map[i] = from->map[i];
		if (name->len == 0 || ((const char *)name->data)[0] != '[')
			j->map[i].name.len = 0;
	}
	ev->map = j->map;
	ev->nmap = from->nmap;
}

static void redact_event(struct job *j, struct tr_event *ev,
			 const struct tr_event *from)
{
	*ev = (struct tr_event){
		.type = from->type, .number = from->number,
		.stream = from->stream, .task = from->task, .time = from->time,
		.has = from->has & (scalars | STRUCTURED),
	};
	for (unsigned tag = 1; tag < TR_NSCALARS; tag++)
		if (KEPT_SCALARS >> tag & 1)
			ev->v[tag] = from->v[tag];
	ev->regs = redact_regs(&from->regs);
	if (tr_event_has(from, TR_F_NR))
		keep_arguments(&ev->regs, &from->regs,
			       tr_event_get(from, TR_F_NR));
	ev->regs_after = redact_regs(&from->regs_after);
	ev->xstate = (struct tr_bytes){j->zeroes, from->xstate.len};
	ev->sha256 = (struct tr_bytes){j->zeroes, from->sha256.len};
	ev->siginfo = (struct tr_bytes){j->siginfo, from->siginfo.len};
	if (from->siginfo.len == sizeof j->siginfo)
		memcpy(j->siginfo, from->siginfo.data, SIGINFO_KEPT);
	redact_memory(j, ev, from);
	redact_maps(j, ev, from);
}

static int copy_events(struct job *j, struct tr_reader *reader,
		       struct tr_error *err)
{
	struct tr_cursor *c = tr_cursor_all(reader);
	const struct tr_event *from;
	struct tr_event ev;
	int r;

	while ((r = tr_cursor_next(c, &from, err)) > 0) {
		redact_event(j, &ev, from);
		r = tr_writer_put(j->writer, &ev, err);
		if (r < 0)
			break;
	}
	tr_cursor_free(c);
	return r;
}

static int write_events(int dirfd, struct tr_reader *reader,
			struct tr_error *err)
{
	struct job j = {.writer = tr_writer_open(dirfd, err)};
	struct tr_writer_stats stats;
	int r;

	if (!j.writer)
		return -1;
	j.zeroes = tr_alloc(TR_MEM_PIECE);
	j.letters = tr_alloc(TR_ARG_STRING_MAX);
	memset(j.letters, 'x', TR_ARG_STRING_MAX);
	r = copy_events(&j, reader, err);
	if (r < 0)
		tr_writer_abandon(j.writer);
	else
		r = tr_writer_close(j.writer, &stats, err);
	free(j.zeroes);
	free(j.letters);
	free(j.mem);
	free(j.map);
	free(j.arg);
	return r;
}

/* What of the machine shapes events stays; what names people does not. */
static int write_manifest(int dirfd, struct tr_reader *reader,
			  struct tr_error *err)
{
	static char *none[] = {NULL};
	struct tr_manifest m = *tr_reader_manifest(reader);

	memset(m.uuid, 0, sizeof m.uuid);
	m.host = m.cwd = NULL;
	m.argv = m.envp = m.labels = none;
	m.digests = NULL;
	m.ndigests = 0;
	m.redacted = m.packed = true;
	m.stopped = m.stopped ? m.stopped : (char[]){"contents were taken out"};
	m.stopped_at = 1;
	m.complete = tr_reader_complete(reader);
	return tr_manifest_write(dirfd, &m, err);
}

int tr_redact(struct tr_reader *reader, const char *dir, struct tr_error *err)
{
	TR_AUTOCLOSE int fd = -1;
	int r;

	if (mkdir(dir, 0700) < 0)
		return errno == EEXIST ?
			tr_fail(err, TR_EEXIST, "%s: exists already; choose "
				"another directory", dir) :
			tr_fail_errno(err, "%s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? tr_fail_errno(err, "%s", dir) :
		     write_events(fd, reader, err);
	if (r == 0 && mkdirat(fd, "files", 0700) < 0)
		r = tr_fail_errno(err, "%s/files", dir);
	if (r == 0)
		r = write_manifest(fd, reader, err);
	if (r < 0)
		tr_remove_dir(AT_FDCWD, dir, 1);
	return r;
}
