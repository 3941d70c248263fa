/*
 * Comparing traces: what differs from run to run of one program is no
 * difference, everything else is found, and the first of it is reported.
 */
#include "libtrace/model/compare.h"
#include "libtrace/model/describe.h"
#include "tests/unit/check.h"
#include "tests/unit/sample.h"

static const char *const contents[] = {"first"};
static const struct sample plain = {.files = contents, .nfiles = 1};

static struct tr_error err;

/* The last comparison: its first difference; what points into it is copied. */
static struct {
	struct tr_difference d;
	struct tr_event left, right;
	uint64_t before[4];
	size_t nbefore, nbehind, hunks;
	uint64_t compared, changed, missing, extra;
} last;

static void copy_last(const struct tr_comparison *result)
{
	const struct tr_hunk *h = result->hunk;

	last.hunks = result->n;
	last.compared = result->compared;
	last.changed = result->changed;
	last.missing = result->missing;
	last.extra = result->extra;
	if (result->n == 0)
		return;
	last.d = h->d[0];
	last.nbefore = h->nbefore;
	last.nbehind = h->nbehind;
	if (last.d.left.event)
		last.left = *last.d.left.event;
	if (last.d.right.event)
		last.right = *last.d.right.event;
	for (size_t i = 0; i < h->nbefore && i < 4; i++)
		last.before[i] = h->before[i].number;
}

static struct tr_compare_options options = {
	.ignore = TR_IGNORE_USUAL, .context = 2,
};

static bool compare_inputs(const struct tr_compare_input *l,
			   const struct tr_compare_input *r)
{
	struct tr_compare *c = tr_compare_new(l, r, &options);
	struct tr_comparison result = {0};

	memset(&last, 0, sizeof last);
	sample_must(tr_compare_run(c, &result, &err), &err);
	copy_last(&result);
	tr_compare_free(c);
	return last.changed + last.missing + last.extra > 0;
}

static struct tr_compare_input open_trace(const char *path)
{
	struct tr_compare_input in = {.reader = tr_reader_open(path, &err),
				      .name = path};

	sample_must(in.reader ? 0 : -1, &err);
	return in;
}

/* The events of a trace as JSON Lines. */
static struct tr_compare_input open_lines(const char *path)
{
	struct tr_compare_input in = {.lines = tmpfile(), .name = path};
	struct tr_reader *r = tr_reader_open(path, &err);
	struct tr_cursor *cur = tr_cursor_all(r);
	const struct tr_event *ev;

	while (tr_cursor_next(cur, &ev, &err) > 0)
		tr_json_line(in.lines, tr_describe_json(ev, false));
	tr_cursor_free(cur);
	tr_reader_close(r);
	rewind(in.lines);
	return in;
}

static void close_input(struct tr_compare_input *in)
{
	if (in->reader)
		tr_reader_close(in->reader);
	if (in->lines)
		fclose(in->lines);
}

static bool compare_with(const char *a, const char *b, size_t context)
{
	struct tr_compare_input l = open_trace(a), r = open_trace(b);
	bool found;

	options.context = context;
	found = compare_inputs(&l, &r);
	close_input(&l);
	close_input(&r);
	return found;
}

static bool differ(const char *a, const char *b)
{
	return compare_with(a, b, 2);
}

static void make(const char *path, const struct sample *s)
{
	sample_remove(path);
	sample_trace(path, s);
}

/* Compare the plain trace with a spoilt one: kind and text as expected? */
static bool spoilt_by(void (*spoil)(struct tr_event *ev), const char *kind,
		      const char *what)
{
	struct sample s = plain;

	s.spoil = spoil;
	make("spoilt", &s);
	if (!differ("plain", "spoilt")) {
		printf("# no difference, expected %s\n", what);
		return false;
	}
	if (strcmp(last.d.kind, kind) == 0 && strcmp(last.d.what, what) == 0)
		return true;
	printf("# %s: %s\n# expected %s: %s\n", last.d.kind, last.d.what, kind,
	       what);
	return false;
}

/* ---- no difference ---- */

static void same(void)
{
	CHECK(!differ("plain", "plain"));
	/* image, fork, start, 3 reads, getpid, exit, wait4, exit */
	CHECK(last.compared == 10);
}

static void other_pids(void)
{
	struct sample s = plain;

	s.pid = 4711;
	make("pids", &s);
	CHECK(!differ("plain", "pids") && last.compared == 10);
}

static void other_order(void)
{
	struct sample s = plain;

	s.child_first = true;
	make("order", &s);
	CHECK(!differ("plain", "order") && last.compared == 10);
	CHECK(!differ("order", "plain") && last.compared == 10);
}

/* A call with an argument. */
static void close_instead(struct tr_event *ev)
{
	if (ev->type != TR_EV_SYSCALL || ev->task != 2)
		return;
	tr_event_set(ev, TR_F_NR, SYS_close);
	ev->regs.rdi = 5;
}

/* Whether a call had an event at its entry depends on what others did. */
static void enter(struct tr_event *ev)
{
	static struct tr_event pending;

	close_instead(ev);
	if (ev->type == TR_EV_SYSCALL && ev->task == 2) {
		pending = *ev;
		ev->type = TR_EV_ENTER;
		ev->has &= ~((uint64_t)1 << TR_F_RESULT);
	} else if (pending.type && ev->type == TR_EV_EXIT && ev->task == 2) {
		pending.number = ev->number;
		*ev = pending;
		tr_event_set(ev, TR_F_ENTERED, 1);
		ev->has &= ~((uint64_t)1 << TR_F_REGS);
		pending.type = 0;
	}
}

static void end_early(struct tr_event *ev)
{
	close_instead(ev);
	if (ev->type == TR_EV_EXIT && ev->task == 2)
		ev->type = 0;
}

static void entered_calls(void)
{
	struct sample s = plain;

	s.spoil = enter;
	make("entered", &s);
	s.spoil = end_early;
	make("direct", &s);
	CHECK(!differ("direct", "entered"));
	CHECK(!differ("entered", "direct"));
	CHECK(last.compared == 9);
}

static void ignored_signal(struct tr_event *ev)
{
	if (ev->type != TR_EV_DIGEST)
		return;
	*ev = (struct tr_event){.type = TR_EV_SIGNAL, .number = ev->number,
				.stream = 1, .task = 1};
	tr_event_set(ev, TR_F_SIGNO, 17);
	tr_event_set(ev, TR_F_ACTION, TR_SIG_NONE);
}

static void other_address(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && ev->nmem) {
		ev->regs.rsi += 4096;
		ev->mem[0].addr += 4096;
	}
	ev->time *= 7;
	if (ev->type == TR_EV_IMAGE) {
		ev->map[0].start += 8192;
		ev->map[0].end += 8192;
	}
	ignored_signal(ev);
}

static void other_addresses(void)
{
	struct sample s = plain;

	s.spoil = other_address;
	make("moved", &s);
	CHECK(!differ("plain", "moved"));
}

/* ---- differences ---- */

static void result(struct tr_event *ev)
{
	if (ev->number == 7)
		tr_event_set(ev, TR_F_RESULT, (uint64_t)-11);
}

static void argument(struct tr_event *ev)
{
	if (ev->number == 7)
		ev->regs.rdi = 4;
}

static void call(struct tr_event *ev)
{
	if (ev->number == 7)
		tr_event_set(ev, TR_F_NR, SYS_pread64);
}

static void signal_instead(struct tr_event *ev)
{
	if (ev->number != 7)
		return;
	ev->type = TR_EV_SIGNAL;
	tr_event_set(ev, TR_F_SIGNO, 14);
	tr_event_set(ev, TR_F_ACTION, TR_SIG_HANDLER);
}

static void data(struct tr_event *ev)
{
	if (ev->number == 7)
		ev->mem[0].bytes = (struct tr_bytes){"help!", 5};
}

static void status(struct tr_event *ev)
{
	if (ev->type == TR_EV_EXIT && ev->task == 1)
		tr_event_set(ev, TR_F_STATUS, 3 << 8);
}

static void program(struct tr_event *ev)
{
	if (ev->type == TR_EV_IMAGE)
		ev->text = (struct tr_bytes){"/bin/ls", 7};
}

/* Escaped as dump does it: octal, three digits where a digit follows. */
static void odd_bytes(struct tr_event *ev)
{
	if (ev->type == TR_EV_IMAGE)
		ev->text = (struct tr_bytes){"\n\"\342" "6\342x", 6};
}

static void mapped(struct tr_event *ev)
{
	if (ev->type == TR_EV_FILE)
		ev->text = (struct tr_bytes){"elsewhere", 9};
}

static void killed(struct tr_event *ev)
{
	if (ev->type == TR_EV_EXIT && ev->task == 2)
		tr_event_set(ev, TR_F_STATUS, 9);
}

static void each_kind(void)
{
	CHECK(spoilt_by(result, "result", "result of read: 5, -1 EAGAIN"));
	CHECK(last.left.number == 7 && last.right.number == 7);
	CHECK(last.nbefore == 2 && last.before[0] == 5 &&
	      last.before[1] == 6);
	CHECK(spoilt_by(argument, "argument", "fd of read: 3, 4"));
	CHECK(spoilt_by(call, "syscall", "system call: read, pread64"));
	CHECK(spoilt_by(signal_instead, "type", "event: read, signal SIGALRM"));
	CHECK(spoilt_by(data, "data",
			"data at byte 3 of read: \"lo\", \"p!\""));
	CHECK(spoilt_by(status, "status",
			"exit status: exited with 0, exited with 3"));
	CHECK(spoilt_by(killed, "status",
			"exit status: exited with 0, killed by SIGKILL"));
	CHECK(spoilt_by(program, "data",
			"program of image: \"/bin/sh\", \"/bin/ls\""));
	CHECK(spoilt_by(odd_bytes, "data", "program of image: \"/bin/sh\", "
			"\"\\n\\\"\\3426\\342x\""));
	CHECK(spoilt_by(mapped, "data",
			"mapped file of image: \"source-0\", \"elsewhere\""));
}

static void one_more(void)
{
	struct sample s = plain;

	s.extra_call = true;
	make("more", &s);
	CHECK(differ("plain", "more"));
	CHECK(strcmp(last.d.kind, "extra") == 0);
	CHECK(last.left.type == 0 && last.d.after[0] == 9);
	CHECK(last.right.type == TR_EV_SYSCALL && last.right.task == 2);
	CHECK(last.extra == 1 && last.missing == 0 && last.changed == 0);
	CHECK(last.compared == 10 && last.hunks == 1 && last.nbehind == 1);
	CHECK(differ("more", "plain"));
	CHECK(strcmp(last.d.kind, "missing") == 0 && last.missing == 1);
}

/* One side ends before the other. */
static void cut(struct tr_event *ev)
{
	if (ev->number > 8)
		ev->type = 0;
}

static void ends(void)
{
	struct sample s = plain;

	s.incomplete = true;
	s.spoil = cut;
	make("cut", &s);
	CHECK(differ("plain", "cut"));
	CHECK(strcmp(last.d.kind, "missing") == 0);
	CHECK(last.left.number == 9 && last.right.type == 0);
	CHECK(strcmp(last.d.what, "getpid of task 2: only in the left trace")
	      == 0);
	CHECK(differ("cut", "plain"));
	CHECK(strcmp(last.d.kind, "extra") == 0);
	CHECK(last.left.type == 0 && last.right.number == 9);
}

/* Two differences in two tasks: the left trace's order decides. */
static void both(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && ev->task == 2)
		tr_event_set(ev, TR_F_NR, SYS_getuid);
	if (ev->type == TR_EV_SYSCALL && tr_event_get(ev, TR_F_NR) == SYS_read)
		ev->regs.rdi = 9;
}

static void the_first(void)
{
	struct sample s = plain;

	make("parent-first", &s);
	s.child_first = true;
	make("child-first", &s);
	s.spoil = both;
	make("both-child", &s);
	s.child_first = false;
	make("both-parent", &s);
	CHECK(differ("parent-first", "both-child") && last.left.task == 1);
	CHECK(differ("parent-first", "both-parent") && last.left.task == 1);
	CHECK(differ("child-first", "both-child") && last.left.task == 2);
	CHECK(differ("child-first", "both-parent") && last.left.task == 2);
	CHECK(last.left.number == 6);
}

static void context(void)
{
	struct sample s = plain;

	s.status = 1 << 8;
	make("failed", &s);
	CHECK(compare_with("plain", "failed", 0) && last.nbefore == 0);
	CHECK(compare_with("plain", "failed", 1) && last.nbefore == 1);
	CHECK(last.before[0] == 11);
	CHECK(compare_with("plain", "failed", 3) && last.nbefore == 3);
	CHECK(last.before[0] == 7 && last.before[2] == 11);
	CHECK(compare_with("plain", "failed", 1000) && last.nbefore == 6);
	CHECK(last.before[0] == 2);
}

/* ---- strings and large data ---- */

static char text[2][64];
static int which;

static void with_path(struct tr_event *ev)
{
	static struct tr_arg a;

	if (ev->number != 7)
		return;
	a = (struct tr_arg){.index = 1, .is_string = 1,
			    .len = strlen(text[which]), .hash = 1 + which,
			    .bytes = {text[which], strlen(text[which])}};
	ev->arg = &a;
	ev->narg = 1;
	ev->nmem = 0;
	ev->has &= ~((uint64_t)1 << TR_F_MEM);
	tr_event_mark(ev, TR_F_ARG);
	tr_event_set(ev, TR_F_NR, SYS_openat);
}

static bool paths_differ(const char *a, const char *b)
{
	struct sample s = plain;

	s.spoil = with_path;
	strcpy(text[0], a);
	strcpy(text[1], b);
	which = 0;
	s.pid = 100;
	make("path-a", &s);
	which = 1;
	s.pid = 200;
	make("path-b", &s);
	return differ("path-a", "path-b");
}

static void paths(void)
{
	CHECK(!paths_differ("/etc/passwd", "/etc/passwd"));
	CHECK(paths_differ("/etc/passwd", "/etc/group"));
	CHECK(strcmp(last.d.what, "filename of openat: \"/etc/passwd\", "
		     "\"/etc/group\"") == 0);
	CHECK(!paths_differ("/proc/100/maps", "/proc/200/maps"));
	CHECK(!paths_differ("/proc/100/task/101/x", "/proc/200/task/201/x"));
	CHECK(paths_differ("/proc/100/maps", "/proc/201/maps"));
	CHECK(paths_differ("/tmp/100/maps", "/tmp/200/maps"));
}

/* A read whose data is in `more` records, cut into other pieces. */
static void large(const char *path, size_t piece, size_t changed)
{
	enum { N = 1 << 20 };
	TR_AUTOFREE uint8_t *bytes = tr_alloc(N);
	struct sample_writer w = {.s = &plain};
	struct tr_manifest m = {.version = 1};
	struct tr_event ev;

	sample_remove(path);
	sample_must(mkdir(path, 0700), &w.err);
	TR_AUTOCLOSE int dir = open(path, O_RDONLY | O_DIRECTORY);

	sample_must(tr_manifest_write(dir, &m, &w.err), &w.err);
	w.w = tr_writer_open(dir, &w.err);
	sample_image(&w);
	if (changed < N)
		bytes[changed] = 'x';
	ev = sample_call(1, SYS_read, N);
	ev.regs.rsi = 0x10000;
	tr_event_set(&ev, TR_F_PARTS, N / piece - 1);
	for (size_t at = 0; at < N; at += piece) {
		struct tr_mem mem = {0x10000 + at, {bytes + at, piece}};

		ev.mem = &mem;
		ev.nmem = 1;
		tr_event_mark(&ev, TR_F_MEM);
		if (at)
			w.number--;
		sample_put(&w, &ev);
		ev = (struct tr_event){.type = TR_EV_MORE, .stream = 1,
				       .task = 1};
	}
	sample_must(tr_writer_close(w.w, NULL, &w.err), &w.err);
}

static void large_data(void)
{
	large("large-a", 1 << 18, SIZE_MAX);
	large("large-b", 1 << 16, SIZE_MAX);
	CHECK(!differ("large-a", "large-b") && last.compared == 2);
	large("large-b", 1 << 16, 777777);
	CHECK(differ("large-a", "large-b"));
	CHECK(strncmp(last.d.what, "data at byte 777777 of read: ", 29) == 0);
}

/* Directory entries: inode numbers and offsets do not count, names do. */
static void dirents(struct tr_event *ev)
{
	static char entries[2][24];

	if (ev->number != 7)
		return;
	for (int i = 0; i < 2; i++) {
		memset(entries[i], i + 1, 16);
		memcpy(entries[i] + 16, "\x18\0\x08" "ab\0\1", 8);
		entries[i][23] = (char)i;
	}
	ev->mem[0].bytes = (struct tr_bytes){entries[which & 1], 24};
	if (which == 2)
		entries[0][20] = 'x';
	tr_event_set(ev, TR_F_NR, SYS_getdents64);
	tr_event_set(ev, TR_F_RESULT, 24);
}

static void directories(void)
{
	struct sample s = plain;

	s.spoil = dirents;
	which = 0;
	make("dir-0", &s);
	which = 1;
	make("dir-1", &s);
	which = 2;
	make("dir-2", &s);
	CHECK(!differ("dir-0", "dir-1"));
	CHECK(differ("dir-0", "dir-2"));
	CHECK(strcmp(last.d.kind, "data") == 0);
}

/* execve does not return: its arguments count all the same. */
static void exec(struct tr_event *ev)
{
	with_path(ev);
	if (ev->number == 7) {
		ev->type = TR_EV_ENTER;
		tr_event_set(ev, TR_F_NR, SYS_execve);
		ev->arg[0].index = 0;
		ev->arg[0].addr = ev->regs.rdi;
	} else if (ev->number == 8) {
		*ev = (struct tr_event){.type = TR_EV_IMAGE, .number = 8,
					.stream = 1, .task = 1};
	}
}

static void unreturned(void)
{
	struct sample s = plain;

	s.spoil = exec;
	strcpy(text[0], "/bin/a");
	strcpy(text[1], "/bin/b");
	which = 0;
	make("exec-a", &s);
	CHECK(!differ("exec-a", "exec-a"));
	which = 1;
	make("exec-b", &s);
	CHECK(differ("exec-a", "exec-b"));
	CHECK(strcmp(last.d.what, "filename of execve: \"/bin/a\", \"/bin/b\"")
	      == 0);
	CHECK(last.left.type == TR_EV_ENTER);
}

/* ---- sides that are JSON ---- */

static bool lines_differ(const char *a, const char *b)
{
	struct tr_compare_input l = open_lines(a), r = open_lines(b);
	struct tr_compare_input t = open_trace(a);
	bool both = compare_inputs(&l, &r), one;
	uint64_t compared = last.compared;

	rewind(r.lines);
	one = compare_inputs(&t, &r);
	CHECK(both == one && compared == last.compared);
	close_input(&l);
	close_input(&r);
	close_input(&t);
	return one;
}

static void json_lines(void)
{
	struct sample s = plain;

	CHECK(!lines_differ("plain", "plain") && last.compared == 10);
	CHECK(!lines_differ("plain", "pids"));
	CHECK(!lines_differ("plain", "order"));
	CHECK(!lines_differ("direct", "entered"));
	CHECK(!lines_differ("plain", "moved"));
	s.spoil = data;
	make("spoilt", &s);
	CHECK(lines_differ("plain", "spoilt"));
	CHECK(strcmp(last.d.kind, "data") == 0);
	CHECK(strcmp(last.d.what,
		     "buf of read: \"hello\", \"help!\"") == 0);
	CHECK(last.d.left.number == 7 && last.d.right.number == 7);
	CHECK(last.d.left.event != NULL && last.d.right.event == NULL);
	s.spoil = result;
	make("spoilt", &s);
	CHECK(lines_differ("plain", "spoilt") &&
	      strcmp(last.d.what, "result of read: 5, -1 EAGAIN") == 0);
	s.spoil = argument;
	make("spoilt", &s);
	CHECK(lines_differ("plain", "spoilt") &&
	      strcmp(last.d.what, "fd of read: 3, 4") == 0);
	CHECK(lines_differ("path-a", "path-b"));
	CHECK(lines_differ("exec-a", "exec-b"));
	CHECK(strcmp(last.d.what, "filename of execve: \"/bin/a\", "
		     "\"/bin/b\"") == 0);
	CHECK(lines_differ("plain", "more") && last.extra == 1);
}

static bool refused(const char *lines, const char *why)
{
	struct tr_compare_input l = open_trace("plain");
	struct tr_compare_input r = {.lines = tmpfile(), .name = "lines"};
	struct tr_comparison result;
	struct tr_compare *c;
	bool failed;

	fputs(lines, r.lines);
	rewind(r.lines);
	c = tr_compare_new(&l, &r, &options);
	failed = tr_compare_run(c, &result, &err) < 0;
	if (!failed || !strstr(err.text, why)) {
		printf("# %s\n", failed ? err.text : "not refused");
		failed = false;
	}
	tr_compare_free(c);
	close_input(&l);
	close_input(&r);
	return failed;
}

static void bad_lines(void)
{
	CHECK(refused("", "no event"));
	CHECK(refused("{\"type\":\"header\"}\n", "no event"));
	CHECK(refused("hello\n", "line 1"));
	CHECK(refused("\n{\"type\":\"exit\",\"event\":1,\"task\":1}\n{",
		      "line 3"));
	CHECK(refused("{\"type\":\"exit\",\"event\":-1,\"task\":1}\n",
		      "no event has such numbers"));
	CHECK(refused("{\"type\":\"exit\",\"event\":1,\"task\":4294967296}\n",
		      "no event has such numbers"));
}

/* ---- what may differ ---- */

static void other_fd(struct tr_event *ev)
{
	if (ev->number == 7)
		ev->regs.rdi = 9;
}

static bool differ_ignoring(const char *a, const char *b, unsigned ignore)
{
	bool found;

	options.ignore = ignore;
	found = differ(a, b);
	CHECK(lines_differ(a, b) == found);
	options.ignore = TR_IGNORE_USUAL;
	return found;
}

/* A file is created exclusively, then opened below that name. */
static void temporary(struct tr_event *ev)
{
	with_path(ev);
	if (ev->number == 7) {
		ev->regs.rdx = O_CREAT | O_EXCL;
	} else if (ev->number == 8) {
		static struct tr_arg a;
		static char below[80];

		snprintf(below, sizeof below, "%s/below", text[which]);
		a = (struct tr_arg){.index = 1, .is_string = 1,
				    .len = strlen(below), .hash = 1,
				    .bytes = {below, strlen(below)}};
		ev->type = TR_EV_SYSCALL;
		ev->task = 1;
		ev->stream = 1;
		tr_event_set(ev, TR_F_NR, SYS_openat);
		ev->regs.rdx = 0;
		ev->arg = &a;
		ev->narg = 1;
		ev->nmem = 0;
		ev->has &= ~((uint64_t)1 << TR_F_MEM);
		tr_event_mark(ev, TR_F_ARG);
	}
}

static void ignoring(void)
{
	struct sample s = plain;

	s.spoil = other_fd;
	make("fd", &s);
	CHECK(differ_ignoring("plain", "fd", TR_IGNORE_USUAL));
	CHECK(!differ_ignoring("plain", "fd",
			       TR_IGNORE_USUAL | TR_IGNORE_FDS));
	CHECK(!differ_ignoring("plain", "plain", 0));
	CHECK(differ_ignoring("plain", "pids", 0));
	CHECK(differ_ignoring("plain", "moved", 0));
	CHECK(!differ_ignoring("plain", "moved",
			       TR_IGNORE_ADDRESSES | TR_IGNORE_FILES));
	s.spoil = data;
	make("spoilt", &s);
	CHECK(differ_ignoring("plain", "spoilt", TR_IGNORE_USUAL));
	CHECK(!differ_ignoring("plain", "spoilt",
			       TR_IGNORE_USUAL | TR_IGNORE_DATA));
	s.spoil = temporary;
	strcpy(text[0], "/tmp/abc");
	strcpy(text[1], "/tmp/xyz");
	which = 0;
	make("tmp-a", &s);
	which = 1;
	make("tmp-b", &s);
	options.ignore = TR_IGNORE_USUAL;
	CHECK(differ("tmp-a", "tmp-b") && last.changed == 2);
	options.ignore |= TR_IGNORE_NAMES;
	CHECK(!differ("tmp-a", "tmp-b"));
	options.ignore = TR_IGNORE_USUAL;
}

/* ---- how many are shown ---- */

static void every_read(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && tr_event_get(ev, TR_F_NR) == SYS_read)
		ev->regs.rdi = 77;
}

static void limits(void)
{
	struct sample s = plain;

	s.spoil = every_read;
	make("reads", &s);
	CHECK(differ("plain", "reads") && last.changed == 3);
	CHECK(last.hunks == 1);
	options.max = 2;
	CHECK(differ("plain", "reads") && last.changed == 3);
	options.max = 0;
	options.any = true;
	CHECK(differ("plain", "reads") && last.changed == 1);
	CHECK(!differ("plain", "plain"));
	options.any = false;
}

/* ---- states ---- */

static uint64_t memory;

static void with_state(struct tr_event *ev)
{
	if (ev->type != TR_EV_SYSCALL || ev->task != 1 || ev->number != 7)
		return;
	*ev = (struct tr_event){.type = TR_EV_STATE, .number = ev->number,
				.stream = 1, .task = 1, .time = ev->time};
	tr_event_set(ev, TR_F_ROOT, memory);
	tr_event_set(ev, TR_F_REGISTERS, 5);
}

static void states(void)
{
	struct sample s = plain;

	s.spoil = with_state;
	memory = 1;
	make("state-1", &s);
	memory = 2;
	make("state-2", &s);
	CHECK(!differ("state-1", "state-2")); /* not compared with events */
	options.states = true;
	CHECK(differ("state-1", "state-2"));
	CHECK(strcmp(last.d.kind, "state") == 0);
	CHECK(strcmp(last.d.what, "memory of state: 0x1, 0x2") == 0);
	CHECK(!differ("state-1", "state-1") && last.compared == 1);
	CHECK(lines_differ("state-1", "state-2"));
	options.states = false;
}

int main(void)
{
	sample_init();
	sample_trace("plain", &plain);
	RUN(same);
	RUN(other_pids);
	RUN(other_order);
	RUN(entered_calls);
	RUN(other_addresses);
	RUN(each_kind);
	RUN(one_more);
	RUN(ends);
	RUN(the_first);
	RUN(context);
	RUN(paths);
	RUN(large_data);
	RUN(directories);
	RUN(unreturned);
	RUN(json_lines);
	RUN(bad_lines);
	RUN(ignoring);
	RUN(limits);
	RUN(states);
	return check_status();
}
