/*
 * The library's reader and the independent decoder, which was written from
 * the specification, tell the same of the same bytes: whole and damaged.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libtrace/base/io.h"
#include "libtrace/format/reader.h"
#include "tests/unit/check.h"
#include "tests/unit/event_json.h"
#include "tests/unit/golden.h"
#include "tests/unit/synthetic.h"

#define DECODER "/usr/bin/python3 tests/decoder/tracedecode.py"

static char base[64];
static struct synthetic syn;

/* A line of the decoder in the library's spelling of JSON. */
static char *respell(char *line)
{
	struct tr_error err;
	struct tr_json *j = tr_json_parse(line, strlen(line), "line", &err);
	char *text;

	if (!j)
		return NULL;
	text = tr_json_dump(j);
	tr_json_free(j);
	return text;
}

/* The decoder's next line, or NULL. */
static char *decoder_line(FILE *f)
{
	char *line = NULL, *text;
	size_t cap = 0;

	if (getline(&line, &cap, f) < 0) {
		free(line);
		return NULL;
	}
	text = respell(line);
	free(line);
	return text;
}

static bool same_line(FILE *f, const struct tr_event *ev)
{
	TR_AUTOFREE char *theirs = decoder_line(f);
	struct tr_json *j = event_json(ev);
	TR_AUTOFREE char *ours = tr_json_dump(j);
	bool same = theirs && strcmp(ours, theirs) == 0;

	tr_json_free(j);
	if (!same)
		printf("# ours:   %.200s\n# theirs: %.200s\n", ours,
		       theirs ? theirs : "nothing");
	return same;
}

/* Events told alike; *whole what the library thinks of the trace. */
static bool same_events(const char *path, FILE *f, bool *whole)
{
	struct tr_error err;
	struct tr_reader *r = tr_reader_open(path, &err);
	const struct tr_event *ev;
	struct tr_cursor *c;
	bool same = true;
	int result;

	*whole = false;
	if (!r)
		return true;
	c = tr_cursor_all(r);
	while ((result = tr_cursor_next(c, &ev, &err)) > 0 && same)
		same = same_line(f, ev);
	*whole = result == 0 && tr_reader_complete(r);
	tr_cursor_free(c);
	tr_reader_close(r);
	return same;
}

static bool agree(const char *path, const char *options)
{
	TR_AUTOFREE char *command = tr_printf("%s %s '%s' 2>'%s/stderr'",
					      DECODER, options, path, base);
	FILE *f = popen(command, "r");
	bool whole, same = f && same_events(path, f, &whole);
	char *more;
	int status;

	if (!f)
		return false;
	more = decoder_line(f);
	if (more)
		printf("# theirs has more: %.200s\n", more);
	same = same && !more;
	free(more);
	while (fgetc(f) != EOF)
		continue;
	status = pclose(f);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != (whole ? 0 : 1)) {
		printf("# status %d, whole %d\n", status, whole);
		return false;
	}
	return same;
}

static void remove_tree(const char *dir)
{
	TR_AUTOFREE char *command = tr_printf("rm -rf '%s'", dir);

	CHECK(system(command) == 0);
}

static void make_trace(char *path, size_t room, bool small, uint64_t n,
		       uint32_t streams, const struct tr_writer_options *o)
{
	TR_AUTOCLOSE int dirfd = -1;
	struct tr_writer *w;
	struct tr_error err;
	int r = 0;

	snprintf(path, room, "%s/trace", base);
	remove_tree(path);
	CHECK(mkdir(path, 0700) == 0);
	dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(golden_manifest(dirfd, &err) == 0);
	w = tr_writer_open_with(dirfd, o, &err);
	if (!w) {
		CHECK(!"writer");
		return;
	}
	syn.small = small;
	for (uint64_t i = 1; i <= n && r == 0; i++)
		for (unsigned p = 0; p <= syn_parts(i) && r == 0; p++)
			r = tr_writer_put(w, synthesize(&syn, i, p, streams),
					  &err);
	CHECK(r == 0);
	CHECK(tr_writer_close(w, NULL, &err) == 0);
}

static void test_golden(void)
{
	CHECK(agree(GOLDEN_DIR, ""));
	CHECK(agree(GOLDEN_DIR, "--scan"));
}

static void test_large(void)
{
	char path[128];

	make_trace(path, sizeof path, false, 1500, 6,
		   &(struct tr_writer_options){.chunk_size = 30000,
					       .file_size = 200000});
	CHECK(agree(path, ""));
	CHECK(agree(path, "--scan"));
}

static void test_blocks(void)
{
	char path[128];

	make_trace(path, sizeof path, false, 1500, 6,
		   &(struct tr_writer_options){.chunk_size = 30000,
					       .file_size = 200000,
					       .block_size = 100});
	CHECK(agree(path, ""));
	CHECK(agree(path, "--scan"));
}

/* One byte altered, or the end cut off, anywhere in any file. */
static void damage(const char *path, const char *name, uint64_t seed)
{
	TR_AUTOFREE char *full = tr_printf("%s/%s", path, name);
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_error err;
	size_t at, n;

	CHECK(tr_read_file(AT_FDCWD, full, 1 << 20, &b, &err) == 0);
	syn.state = seed;
	at = (size_t)syn_below(&syn, b.len);
	n = b.len;
	if (syn_below(&syn, 4) == 0)
		n = at;
	else
		b.data[at] ^= (uint8_t)(1u << syn_below(&syn, 8));
	CHECK(tr_replace_file(AT_FDCWD, full, b.data, n, false, &err) == 0);
}

static void remove_index(const char *path)
{
	TR_AUTOFREE char *index = tr_printf("%s/index", path);

	CHECK(unlink(index) == 0);
}

static void damaged(bool stored, uint32_t block_size)
{
	static const char *const names[] = {"chunks/000000", "chunks/000001",
					    "chunks/000000", "index",
					    "manifest.json"};
	struct tr_writer_options o = {.stored = stored, .chunk_size = 400,
				      .file_size = 5000,
				      .block_size = block_size};

	for (uint64_t i = 0; i < 30; i++) {
		char path[128];
		bool same;

		make_trace(path, sizeof path, true, 40, 3, &o);
		if (i % 3 == 0)
			remove_index(path);
		damage(path, names[i % 3 ? i % 5 : i % 2], i);
		same = agree(path, "");
		CHECK(same);
		if (!same)
			printf("# case %d\n", (int)i);
	}
}

static void test_damaged(void)
{
	damaged(false, 0);
}

static void test_damaged_stored(void)
{
	damaged(true, 0);
}

static void test_damaged_blocks(void)
{
	damaged(false, 1);
	damaged(true, 1);
}

int main(void)
{
	if (system("/usr/bin/python3 -c 'import xxhash' 2>/dev/null") != 0) {
		printf("1..0 # skip python3-xxhash is not installed\n");
		return 77;
	}
	snprintf(base, sizeof base, "%s/test_decoder.XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(base))
		return 1;
	RUN(test_golden);
	RUN(test_large);
	RUN(test_blocks);
	RUN(test_damaged);
	RUN(test_damaged_stored);
	RUN(test_damaged_blocks);
	remove_tree(base);
	return check_status();
}
