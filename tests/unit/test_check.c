/*
 * The verifier: a good trace has no problem, and every damage to its bytes,
 * every contradiction between its events is reported.
 */
#include "libtrace/format/check.h"

#include "libtrace/base/buf.h"
#include "libtrace/format/chunk.h"
#include "tests/unit/check.h"
#include "tests/unit/sample.h"

static const char *const contents[] = {"first", "other"};
static const struct sample plain = {.files = contents, .nfiles = 2};

static struct tr_error err;
static struct tr_check_stats stats;

/* The problems of the last run, as lines "code where: what". */
static char report[65536];

static void note(void *arg, const struct tr_problem *p)
{
	size_t n = strlen(report);

	(void)arg;
	snprintf(report + n, sizeof report - n, "%s %s: %s\n",
		 tr_code_name(p->code), p->where, p->what);
}

/* The number of problems, or -1. */
static int check(const char *path)
{
	report[0] = '\0';
	if (tr_check(path, note, NULL, &stats, &err) < 0)
		return -1;
	return (int)stats.problems;
}

/* Problems are found, one of them with this text. */
static bool reports(const char *path, const char *text)
{
	if (check(path) > 0 && strstr(report, text))
		return true;
	printf("# expected \"%s\", got:\n# %s\n", text, report);
	return false;
}

static void load(const char *path, struct tr_buf *b)
{
	b->len = 0;
	if (tr_read_file(AT_FDCWD, path, 1 << 30, b, &err) < 0)
		abort();
}

/* ---- whole traces ---- */

static void good(void)
{
	CHECK(check("plain") == 0);
	CHECK(stats.files == 2 && stats.tasks == 2 && stats.streams == 3);
	CHECK(stats.events == 16 && stats.chunks == 3);
}

static void unfinished(void)
{
	CHECK(reports("cut", "incomplete manifest.json"));
	CHECK(stats.problems == 1);
}

static void no_trace(void)
{
	CHECK(check("nowhere") < 0 && err.code == TR_ESYS);
	CHECK(check("plain/manifest.json") < 0 && err.code == TR_ENOTRACE);
	CHECK(check("plain/files") < 0 && err.code == TR_ENOTRACE);
}

/* ---- damaged bytes ---- */

/* Any bit of any file of the trace. */
static int unnoticed_flips(const char *path)
{
	TR_AUTOBUF struct tr_buf b = {0};
	int missed = 0;

	load(path, &b);
	chmod(path, 0600);
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= (uint8_t)(1 << i % 8);
		sample_file(path, b.data, b.len);
		/* A version or feature from the future is refused. */
		missed += check("flip") == 0;
		b.data[i] ^= (uint8_t)(1 << i % 8);
	}
	sample_file(path, b.data, b.len);
	return missed;
}

static void flips(void)
{
	CHECK(check("flip") == 0);
	CHECK(unnoticed_flips("flip/chunks/000000") == 0);
	CHECK(unnoticed_flips("flip/index") == 0);
	CHECK(unnoticed_flips("flip/manifest.json") == 0);
	CHECK(unnoticed_flips("flip/files/1") == 0);
	CHECK(check("flip") == 0);
}

static void cuts(void)
{
	TR_AUTOBUF struct tr_buf b = {0};
	int missed = 0;

	load("flip/chunks/000000", &b);
	for (size_t n = 0; n < b.len; n++) {
		sample_file("flip/chunks/000000", b.data, n);
		missed += check("flip") == 0;
		missed += !strstr(report, "chunks/000000") &&
			  !strstr(report, "index");
	}
	CHECK(missed == 0);
	sample_file("flip/chunks/000000", b.data, b.len - 10);
	CHECK(reports("flip", "incomplete chunks/000000: "));
	CHECK(strstr(report, "after the last whole chunk") != NULL);
	sample_file("flip/chunks/000000", b.data, b.len);
	CHECK(check("flip") == 0);
}

/* Write the chunk file `b` without the nth chunk of the stream. */
static void write_without(const struct tr_buf *b, uint32_t stream, int nth)
{
	TR_AUTOBUF struct tr_buf out = {0};
	size_t n;

	for (size_t at = 0; at < b->len; at += n) {
		const uint8_t *h = b->data + at;

		n = TR_CHUNK_HEADER + tr_get_le32(h + 36); /* stored size */
		if (tr_get_le32(h + 8) != stream || nth-- != 0)
			tr_buf_put(&out, h, n);
	}
	CHECK(out.len < b->len);
	sample_file("chain/chunks/000000", out.data, out.len);
}

/* A chunk taken out whole leaves its stream's chain, or its end, open. */
static void removed_chunks(void)
{
	TR_AUTOBUF struct tr_buf b = {0};
	struct sample s = plain;

	s.two_chunks = true;
	sample_trace("chain", &s);
	CHECK(check("chain") == 0);
	load("chain/chunks/000000", &b);
	write_without(&b, 1, 0);
	CHECK(reports("chain", "corrupt index: disagrees"));
	unlink("chain/index");
	CHECK(reports("chain", "does not follow the stream's chunk before it"));
	write_without(&b, 1, 1);
	CHECK(reports("chain", "the stream's last chunk is missing"));
	write_without(&b, 2, 0);
	CHECK(reports("chain", "does not follow the stream's chunk before it"));
	/* What was not read is not said to be missing. */
	CHECK(!strstr(report, "no digest"));
}

/* Where the stream's nth chunk begins in `b`. */
static size_t chunk_at(const struct tr_buf *b, uint32_t stream, int nth)
{
	size_t at = 0;

	while (at < b->len) {
		const uint8_t *h = b->data + at;

		if (tr_get_le32(h + 8) == stream && nth-- == 0)
			return at;
		at += TR_CHUNK_HEADER + tr_get_le32(h + 36);
	}
	abort();
}

/* One damaged chunk is one problem, and perhaps what could not be checked:
 * the digests behind it are not said to be missing. */
static void unread_digests(void)
{
	static const struct { uint32_t stream; int nth; size_t byte; } flip[] = {
		{0, 1, TR_CHUNK_HEADER + 3}, {0, 1, 20},
		{1, 0, TR_CHUNK_HEADER + 3}, {1, 0, 20},
		{2, 0, TR_CHUNK_HEADER + 3}, {2, 0, 20},
	};
	TR_AUTOBUF struct tr_buf b = {0};
	struct sample s = plain;

	s.two_chunks = true;
	sample_remove("chain");
	sample_trace("chain", &s);
	load("chain/chunks/000000", &b);
	for (size_t i = 0; i < sizeof flip / sizeof *flip; i++) {
		uint8_t *at = b.data + flip[i].byte +
			      chunk_at(&b, flip[i].stream, flip[i].nth);

		*at ^= 1;
		sample_file("chain/chunks/000000", b.data, b.len);
		CHECK(reports("chain", "checksum does not match"));
		CHECK(!strstr(report, "no digest"));
		CHECK(!strstr(report, "does not belong"));
		*at ^= 1;
	}
}

/* Damage is named for what it is, and what follows it is still looked at. */
static void named_damage(void)
{
	TR_AUTOBUF struct tr_buf b = {0};

	load("flip/chunks/000000", &b);
	b.data[TR_CHUNK_HEADER + 3] ^= 1;
	sample_file("flip/chunks/000000", b.data, b.len);
	CHECK(reports("flip", "chunk payload checksum does not match"));
	CHECK(stats.chunks == 3);
	b.data[TR_CHUNK_HEADER + 3] ^= 1;
	b.data[20] ^= 1;
	sample_file("flip/chunks/000000", b.data, b.len);
	CHECK(reports("flip", "chunk header checksum does not match"));
	CHECK(stats.chunks == 2);
	b.data[20] ^= 1;
	sample_file("flip/chunks/000000", b.data, b.len);
	CHECK(check("flip") == 0);
}

/* ---- files ---- */

static void files(void)
{
	sample_trace("files-t", &plain);
	CHECK(check("files-t") == 0);
	sample_file("files-t/files/3", "", 0);
	CHECK(reports("files-t", "corrupt files/3: does not belong"));
	unlink("files-t/files/3");
	sample_file("files-t/surprise", "", 0);
	CHECK(reports("files-t", "corrupt surprise: does not belong"));
	unlink("files-t/surprise");
	sample_file("files-t/chunks/000007", "", 0);
	CHECK(reports("files-t", "chunks/000007: does not belong"));
	unlink("files-t/chunks/000007");
	CHECK(check("files-t") == 0);
	chmod("files-t/files/2", 0600);
	sample_file("files-t/files/2", "othes", 5);
	CHECK(reports("files-t", "corrupt files/2: source-1: changed since"));
	unlink("files-t/files/2");
	CHECK(reports("files-t", "corrupt files/2: source-1: missing"));
	CHECK(symlink("1", "files-t/files/2") == 0);
	CHECK(reports("files-t", "files/2: source-1"));
	unlink("files-t/index");
	CHECK(reports("files-t", "corrupt index: "));
}

/* ---- contradictions ---- */

static int spoil_count;

static void no_start(struct tr_event *ev)
{
	if (ev->type == TR_EV_START)
		ev->type = TR_EV_NOTE;
}

static void no_exit(struct tr_event *ev)
{
	if (ev->type == TR_EV_EXIT && ev->task == 2)
		ev->type = TR_EV_NOTE;
}

static void late_call(struct tr_event *ev)
{
	if (ev->type == TR_EV_EXIT && ev->task == 1)
		spoil_count = 1;
	else if (spoil_count == 1 && ev->type == TR_EV_DIGEST) {
		spoil_count = 2;
		*ev = (struct tr_event){.type = TR_EV_SYSCALL, .stream = 1,
					.task = 1, .number = ev->number};
		tr_event_set(ev, TR_F_NR, 0);
	}
}

static void not_entered(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && tr_event_get(ev, TR_F_ENTERED))
		tr_event_set(ev, TR_F_ENTERED, 0);
}

static void entered(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && ev->task == 2)
		tr_event_set(ev, TR_F_ENTERED, 1);
}

static void other_call(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && tr_event_get(ev, TR_F_ENTERED))
		tr_event_set(ev, TR_F_NR, 1);
}

static void undeclared(struct tr_event *ev)
{
	if (ev->type == TR_EV_IMAGE)
		ev->map[0].file = 77;
}

static void same_id(struct tr_event *ev)
{
	if (ev->type == TR_EV_FILE)
		tr_event_set(ev, TR_F_FILE, 1);
}

static void digest_of_none(struct tr_event *ev)
{
	if (ev->type == TR_EV_DIGEST)
		tr_event_set(ev, TR_F_FILE,
			     tr_event_get(ev, TR_F_FILE) + 50);
}

static void gap(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && ev->task == 2)
		ev->type = 0;
}

static void no_end(struct tr_event *ev)
{
	if (ev->type == TR_EV_END)
		ev->type = TR_EV_NOTE;
}

static void wrong_total(struct tr_event *ev)
{
	if (ev->type == TR_EV_END)
		tr_event_set(ev, TR_F_TASKS, 9);
}

static void lost_parts(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && ev->task == 2)
		tr_event_set(ev, TR_F_PARTS, 2);
}

static void stray_more(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && ev->task == 2)
		ev->type = TR_EV_MORE;
}

static void no_parent(struct tr_event *ev)
{
	if (ev->type == TR_EV_START)
		tr_event_set(ev, TR_F_PARENT, 12);
}

static void wrong_stream(struct tr_event *ev)
{
	if (ev->type == TR_EV_CLONE)
		tr_event_set(ev, TR_F_CHILD_STREAM, 1);
}

static void misplaced(struct tr_event *ev)
{
	if (ev->type == TR_EV_SYSCALL && ev->task == 2)
		ev->type = TR_EV_FILE;
}

static void lost_child(struct tr_event *ev)
{
	if (ev->stream == 2)
		ev->type = 0;
}

static void contradictions(void)
{
	static const struct {
		void (*spoil)(struct tr_event *ev);
		const char *text;
	} cases[] = {
		{no_start, "its task has not started"},
		{no_exit, "task 2 never ends"},
		{late_call, "its task has ended before"},
		{not_entered, "does not end the call its task is in"},
		{entered, "ends a call that did not begin"},
		{other_call, "ends another call"},
		{undeclared, "maps a file that was not declared"},
		{same_id, "its file id was used before"},
		{digest_of_none, "the digest of a file that was not declared"},
		{gap, "events 10 to 10 are missing"},
		{no_end, "the end event is missing"},
		{wrong_total, "says 9 tasks, but there are 2"},
		{lost_parts, "2 further records of event 10 are missing"},
		{stray_more, "does not belong to the event before it"},
		{no_parent, "its parent task has not started"},
		{wrong_stream, "starts in another stream"},
		{misplaced, "belongs in the catalogue"},
		{lost_child, "task 2 never starts"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sample s = plain;

		s.spoil = cases[i].spoil;
		spoil_count = 0;
		sample_remove("spoilt");
		sample_trace("spoilt", &s);
		CHECK(reports("spoilt", cases[i].text));
	}
}

/* ---- recordings that were cut short ---- */

/* In a trace that says it is incomplete, what is lost is no corruption. */
static void incomplete_is_not_corrupt(void)
{
	struct sample s = plain;

	s.incomplete = true;
	s.spoil = lost_child;
	sample_trace("partial", &s);
	CHECK(reports("partial", "incomplete"));
	CHECK(!strstr(report, "corrupt"));
}

/* Task 2 has lost its start, so that it seems to begin with an image. */
static void image_after_gap(struct tr_event *ev)
{
	if (ev->type == TR_EV_START)
		ev->type = 0;
	else if (ev->type == TR_EV_SYSCALL && ev->task == 2)
		ev->type = TR_EV_IMAGE;
}

/* Task 1 has lost the beginning of its fork and every read. */
static void many_gaps(struct tr_event *ev)
{
	if (ev->type == TR_EV_CLONE)
		ev->type = 0;
	if (ev->type == TR_EV_SYSCALL && ev->task == 1 &&
	    tr_event_get(ev, TR_F_NR) == 0)
		ev->type = 0;
}

static void no_digests(struct tr_event *ev)
{
	if (ev->type == TR_EV_DIGEST)
		ev->type = 0;
}

static void no_exits(struct tr_event *ev)
{
	if (ev->type == TR_EV_EXIT)
		ev->type = 0;
}

static int count(const char *text)
{
	int n = 0;

	for (const char *p = report; (p = strstr(p, text)) != NULL; p++)
		n++;
	return n;
}

/* A trace of spoilt events, cut short or not. */
static bool cut_reports(void (*spoil)(struct tr_event *ev), bool incomplete,
			const char *text)
{
	struct sample s = plain;

	s.incomplete = incomplete;
	s.spoil = spoil;
	sample_remove("spoilt");
	sample_trace("spoilt", &s);
	return reports("spoilt", text);
}

/* What refers to lost events is no contradiction, and part of one problem. */
static void gaps_explain(void)
{
	CHECK(cut_reports(image_after_gap, true, "; 1 later event needs what "
			  "was lost"));
	CHECK(count("corrupt") == 0 && count("are missing") == 1);
	CHECK(stats.problems == 2);
	CHECK(cut_reports(image_after_gap, false, "corrupt chunks/000000: "));
	CHECK(count("are missing") == 1);
}

static void gaps_are_one_problem(void)
{
	CHECK(cut_reports(many_gaps, true, "events 4 to 4 are missing before "
			  "it (4 events in 2 gaps)"));
	CHECK(count("are missing") == 1 && count("corrupt") == 0);
	CHECK(stats.problems == 2);
	CHECK(cut_reports(many_gaps, false, "(4 events in 2 gaps)"));
	CHECK(count("are missing") == 1 && count("corrupt") == 1);
	CHECK(cut_reports(no_digests, false, "are missing"));
	CHECK(count("no digest") == 0);
}

static void unfinished_tasks(void)
{
	CHECK(cut_reports(no_exits, true,
			  "incomplete chunks: 2 tasks had not ended"));
	CHECK(count("ended") == 1 && count("corrupt") == 0);
	CHECK(cut_reports(no_exit, true, "1 task had not ended"));
	CHECK(cut_reports(no_exits, false, "task 1 never ends"));
}

/* Killed before anything was written; the chunk file may be empty, too. */
static void nothing_written(void)
{
	struct sample s = plain;

	s.incomplete = true;
	sample_remove("spoilt");
	sample_trace("spoilt", &s);
	sample_file("spoilt/chunks/000000", "", 0);
	CHECK(check("spoilt") > 0 && count("corrupt") == 0);
	unlink("spoilt/chunks/000000");
	CHECK(reports("spoilt", "incomplete chunks/000000: missing"));
	CHECK(count("corrupt") == 0);
}

int main(void)
{
	struct sample cut = plain;

	sample_init();
	sample_trace("plain", &plain);
	sample_trace("flip", &plain);
	cut.incomplete = true;
	sample_trace("cut", &cut);
	RUN(good);
	RUN(unfinished);
	RUN(no_trace);
	RUN(flips);
	RUN(cuts);
	RUN(removed_chunks);
	RUN(unread_digests);
	RUN(named_damage);
	RUN(files);
	RUN(contradictions);
	RUN(incomplete_is_not_corrupt);
	RUN(gaps_explain);
	RUN(gaps_are_one_problem);
	RUN(unfinished_tasks);
	RUN(nothing_written);
	return check_status();
}
