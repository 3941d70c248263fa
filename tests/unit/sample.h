/* Small traces made with the writer, and scratch directories, for tests. */
#ifndef TESTS_UNIT_SAMPLE_H
#define TESTS_UNIT_SAMPLE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/format/event.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/writer.h"
#include "libtrace/store/store.h"

static char sample_dir[64];

static inline int sample_remove_one(const char *path, const struct stat *st,
				    int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void sample_remove(const char *path)
{
	nftw(path, sample_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void sample_cleanup(void)
{
	sample_remove(sample_dir);
}

/* A scratch directory for the whole test, current from now on. */
static inline void sample_init(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(sample_dir, sizeof sample_dir, "%s/trace-test-XXXXXX",
		 tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(sample_dir) || chdir(sample_dir) < 0)
		abort();
	atexit(sample_cleanup);
}

static inline void sample_must(int r, const struct tr_error *err)
{
	if (r >= 0)
		return;
	printf("# setting up: %s\n", err->text);
	exit(EXIT_FAILURE);
}

static inline void sample_file(const char *path, const void *data, size_t n)
{
	TR_AUTOCLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || tr_write_all(fd, data, n) < 0)
		abort();
}

/* How a sample differs from the plain one. */
struct sample {
	const char *const *files; /* contents of the stored files */
	size_t nfiles;
	bool incomplete;   /* the recording was cut short */
	bool no_digests;
	bool two_chunks;   /* of the first task's stream */
	int64_t read_result;      /* of the first read; 0: 5 */
	const char *read_data;    /* NULL: "hello" */
	uint32_t pid;             /* of the first task; 0: 100 */
	bool child_first;  /* the child's events come before the parent's */
	bool extra_call;   /* the child makes one call more */
	int status;        /* exit status of the first task */
	/* Called with each event before it is written, to spoil it; type 0
	 * leaves it out. */
	void (*spoil)(struct tr_event *ev);
};

struct sample_writer {
	const struct sample *s;
	struct tr_writer *w;
	struct tr_error err;
	uint64_t number;
};

static inline void sample_put(struct sample_writer *w, struct tr_event *ev)
{
	ev->number = ++w->number;
	ev->time = w->number * 1000;
	if (w->s->spoil)
		w->s->spoil(ev);
	if (!ev->type)
		return;
	sample_must(tr_writer_put(w->w, ev, &w->err), &w->err);
}

static inline void sample_files(struct sample_writer *w, struct tr_store *store)
{
	for (size_t i = 0; i < w->s->nfiles; i++) {
		const char *data = w->s->files[i];
		TR_AUTOFREE char *path = tr_printf("source-%zu", i);
		struct tr_event ev = {.type = TR_EV_FILE,
				      .text = {path, strlen(path)}};
		const struct tr_store_file *f;
		bool is_new;

		sample_file(path, data, strlen(data));
		TR_AUTOCLOSE int fd = open(path, O_RDONLY);

		f = tr_store_add(store, fd, path, &is_new, &w->err);
		sample_must(f ? 0 : -1, &w->err);
		tr_event_set(&ev, TR_F_FILE, f->id);
		tr_event_set(&ev, TR_F_METHOD, f->method);
		tr_event_set(&ev, TR_F_SIZE, (uint64_t)f->st.st_size);
		tr_event_mark(&ev, TR_F_TEXT);
		sample_put(w, &ev);
		unlink(path);
	}
}

static inline void sample_digests(struct sample_writer *w,
				  struct tr_store *store)
{
	struct tr_store_digest d;

	while (tr_store_take_digest(store, true, &d)) {
		struct tr_event ev = {.type = TR_EV_DIGEST,
				      .sha256 = {d.sha256, sizeof d.sha256}};

		tr_event_set(&ev, TR_F_FILE, d.id);
		tr_event_mark(&ev, TR_F_SHA256);
		if (!w->s->no_digests)
			sample_put(w, &ev);
	}
}

static inline void sample_image(struct sample_writer *w)
{
	struct tr_map map = {.start = 0x400000, .end = 0x401000, .prot = 5,
			     .flags = 2, .file = w->s->nfiles ? 1 : 0};
	struct tr_event ev = {.type = TR_EV_IMAGE, .stream = 1, .task = 1,
			      .map = &map, .nmap = 1, .text = {"/bin/sh", 7}};
	uint32_t pid = w->s->pid ? w->s->pid : 100;

	tr_event_set(&ev, TR_F_PID, pid);
	tr_event_set(&ev, TR_F_TID, pid);
	tr_event_set(&ev, TR_F_PARENT, 0);
	tr_event_mark(&ev, TR_F_MAP);
	tr_event_mark(&ev, TR_F_TEXT);
	sample_put(w, &ev);
}

static inline struct tr_event sample_call(uint32_t task, uint64_t nr,
					  int64_t result)
{
	struct tr_event ev = {.type = TR_EV_SYSCALL, .stream = task,
			      .task = task};

	tr_event_set(&ev, TR_F_NR, nr);
	tr_event_set(&ev, TR_F_RESULT, (uint64_t)result);
	tr_event_mark(&ev, TR_F_REGS);
	ev.regs.orig_rax = nr;
	return ev;
}

static inline void sample_read(struct sample_writer *w, uint32_t task)
{
	const char *data = w->s->read_data ? w->s->read_data : "hello";
	uint64_t buffer = 0x7ffe0000 + 16 * w->s->pid;
	struct tr_mem mem = {buffer, {data, strlen(data)}};
	struct tr_event ev = sample_call(task, SYS_read, w->s->read_result ?
					 w->s->read_result : 5);

	ev.regs.rdi = 3;
	ev.regs.rsi = buffer;
	ev.regs.rdx = 4096;
	ev.mem = &mem;
	ev.nmem = 1;
	tr_event_mark(&ev, TR_F_MEM);
	sample_put(w, &ev);
}

/* The first task forks. */
static inline void sample_fork(struct sample_writer *w)
{
	uint32_t pid = (w->s->pid ? w->s->pid : 100) + 1;
	struct tr_event ev = {.type = TR_EV_CLONE, .stream = 1, .task = 1};

	tr_event_set(&ev, TR_F_NR, SYS_fork);
	tr_event_set(&ev, TR_F_CHILD, 2);
	tr_event_set(&ev, TR_F_CHILD_STREAM, 2);
	tr_event_mark(&ev, TR_F_REGS);
	sample_put(w, &ev);
	ev = (struct tr_event){.type = TR_EV_START, .stream = 2, .task = 2};
	tr_event_set(&ev, TR_F_PARENT, 1);
	tr_event_set(&ev, TR_F_PID, pid);
	tr_event_set(&ev, TR_F_TID, pid);
	sample_put(w, &ev);
	ev = sample_call(1, SYS_fork, pid);
	tr_event_set(&ev, TR_F_ENTERED, 1);
	sample_put(w, &ev);
}

static inline void sample_child(struct sample_writer *w)
{
	struct tr_event ev = sample_call(2, SYS_getpid,
					 (w->s->pid ? w->s->pid : 100) + 1);

	sample_put(w, &ev);
	if (w->s->extra_call) {
		ev = sample_call(2, SYS_getuid, 0);
		sample_put(w, &ev);
	}
	ev = (struct tr_event){.type = TR_EV_EXIT, .stream = 2, .task = 2};
	tr_event_set(&ev, TR_F_STATUS, 0);
	sample_put(w, &ev);
}

static inline void sample_events(struct sample_writer *w)
{
	struct tr_event ev;

	sample_image(w);
	sample_fork(w);
	if (w->s->two_chunks)
		sample_must(tr_writer_flush(w->w, 0, &w->err), &w->err);
	if (w->s->child_first)
		sample_child(w);
	for (int i = 0; i < 3; i++)
		sample_read(w, 1);
	if (!w->s->child_first)
		sample_child(w);
	ev = sample_call(1, SYS_wait4, (w->s->pid ? w->s->pid : 100) + 1);
	ev.regs.rdi = (uint64_t)-1;
	sample_put(w, &ev);
	ev = (struct tr_event){.type = TR_EV_EXIT, .stream = 1, .task = 1};
	tr_event_set(&ev, TR_F_STATUS, (uint64_t)w->s->status);
	sample_put(w, &ev);
}

static inline void sample_end(struct sample_writer *w)
{
	struct tr_event ev = {.type = TR_EV_END};

	tr_event_set(&ev, TR_F_EVENTS, w->number + 1);
	tr_event_set(&ev, TR_F_TASKS, 2);
	tr_event_set(&ev, TR_F_STREAMS, 3);
	sample_put(w, &ev);
}

/* Make the trace `path`. */
static inline void sample_trace(const char *path, const struct sample *s)
{
	struct sample_writer w = {.s = s};
	struct tr_manifest m = {.version = 1, .complete = !s->incomplete,
				.tasks = 2, .streams = 3, .files = s->nfiles};
	struct tr_store *store;

	sample_must(mkdir(path, 0700), &w.err);
	TR_AUTOCLOSE int dir = open(path, O_RDONLY | O_DIRECTORY);

	store = tr_store_open(dir, &w.err);
	sample_must(store ? 0 : -1, &w.err);
	w.w = tr_writer_open(dir, &w.err);
	sample_must(w.w ? 0 : -1, &w.err);
	sample_files(&w, store);
	sample_events(&w);
	sample_digests(&w, store);
	if (!s->incomplete)
		sample_end(&w);
	for (uint32_t i = 1; i < 3; i++)
		sample_must(tr_writer_end_stream(w.w, i, &w.err), &w.err);
	sample_must(tr_writer_end_stream(w.w, 0, &w.err), &w.err);
	sample_must(tr_writer_close(w.w, NULL, &w.err), &w.err);
	if (s->incomplete) {
		TR_AUTOFREE char *index = tr_printf("%s/index", path);

		unlink(index);
	}
	tr_store_close(store);
	m.events = w.number;
	sample_must(tr_manifest_write(dir, &m, &w.err), &w.err);
}

#endif
