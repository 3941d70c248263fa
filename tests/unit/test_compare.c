/*
 * Comparing traces: what differs from run to run of one program is no
 * difference, everything else is found, and the first of it is reported.
 */
#include "libtrace/model/compare.h"
#include "tests/unit/check.h"
#include "tests/unit/sample.h"

static const char *const contents[] = {"first"};
static const struct sample plain = {.files = contents, .nfiles = 1};

static struct tr_error err;

/* The last comparison; what points into it is copied. */
static struct {
	struct tr_difference d;
	struct tr_event left, right;
	uint64_t before[4];
} last;

static bool compare_with(const char *a, const char *b, size_t context)
{
	struct tr_reader *l = tr_reader_open(a, &err);
	struct tr_reader *r = tr_reader_open(b, &err);
	struct tr_compare *c;

	sample_must(l && r ? 0 : -1, &err);
	c = tr_compare_new(l, r, context);
	memset(&last, 0, sizeof last);
	sample_must(tr_compare_run(c, &last.d, &err), &err);
	if (last.d.found) {
		last.left = *last.d.left;
		last.right = *last.d.right;
	}
	for (size_t i = 0; i < last.d.nbefore && i < 4; i++)
		last.before[i] = last.d.before[i]->number;
	tr_compare_free(c);
	tr_reader_close(l);
	tr_reader_close(r);
	return last.d.found;
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
	CHECK(last.d.compared == 10);
}

static void other_pids(void)
{
	struct sample s = plain;

	s.pid = 4711;
	make("pids", &s);
	CHECK(!differ("plain", "pids") && last.d.compared == 10);
}

static void other_order(void)
{
	struct sample s = plain;

	s.child_first = true;
	make("order", &s);
	CHECK(!differ("plain", "order") && last.d.compared == 10);
	CHECK(!differ("order", "plain") && last.d.compared == 10);
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
	CHECK(last.d.compared == 9);
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
	CHECK(last.d.nbefore == 2 && last.before[0] == 5 &&
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
	CHECK(strcmp(last.d.kind, "type") == 0);
	CHECK(last.left.type == TR_EV_EXIT && last.left.task == 2);
	CHECK(last.right.type == TR_EV_SYSCALL && last.right.task == 2);
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
	CHECK(compare_with("plain", "failed", 0) && last.d.nbefore == 0);
	CHECK(compare_with("plain", "failed", 1) && last.d.nbefore == 1);
	CHECK(last.before[0] == 11);
	CHECK(compare_with("plain", "failed", 3) && last.d.nbefore == 3);
	CHECK(last.before[0] == 7 && last.before[2] == 11);
	CHECK(compare_with("plain", "failed", 1000) && last.d.nbefore == 6);
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
	CHECK(!differ("large-a", "large-b") && last.d.compared == 2);
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
	return check_status();
}
