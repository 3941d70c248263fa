/*
 * The golden trace of format version 1: synthetic, stored uncompressed so
 * that no deflate library has a say in its bytes.
 */
#ifndef TR_TESTS_GOLDEN_H
#define TR_TESTS_GOLDEN_H

#include "libtrace/base/error.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/writer.h"
#include "tests/unit/synthetic.h"

#define GOLDEN_DIR "tests/golden/v1"
#define GOLDEN_EVENTS 60
#define GOLDEN_STREAMS 4

static inline int golden_manifest(int dirfd, struct tr_error *err)
{
	char *argv[] = {(char[]){"/usr/bin/example"},
			       (char[]){"gr\xc3\xbc\xc3\x9f"},
			       (char[]){"not\xff utf8"}, NULL};
	char *envp[] = {(char[]){"LANG=C"}, NULL};
	char *labels[] = {(char[]){"purpose=golden"}, NULL};
	struct tr_manifest m = {
		.uuid = "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
		.tool = (char[]){"make_golden 1"},
		.host = (char[]){"host"},
		.kernel = (char[]){"6.1.0"},
		.machine = (char[]){"x86_64"},
		.cpu_model = (char[]){"model"},
		.cpu_flags = (char[]){"fpu sse2"},
		.xcr0 = 7,
		.argv = argv,
		.envp = envp,
		.labels = labels,
		.cwd = (char[]){"/tmp"},
		.start_ns = 1700000000000000000,
		.duration_ns = 123456789,
		.complete = true,
		.status = 256,
		.events = GOLDEN_EVENTS,
		.tasks = 12,
		.streams = GOLDEN_STREAMS,
		.files = 0,
	};

	return tr_manifest_write(dirfd, &m, err);
}

static inline int golden_events(struct tr_writer *w, struct tr_error *err)
{
	struct synthetic *s = tr_alloc(sizeof *s);
	int r = 0;

	s->small = true;
	for (uint64_t i = 1; i <= GOLDEN_EVENTS && r == 0; i++)
		for (unsigned p = 0; p <= syn_parts(i) && r == 0; p++)
			r = tr_writer_put(w, synthesize(s, i, p,
							GOLDEN_STREAMS), err);
	free(s);
	return r;
}

/* Write it into the empty directory dirfd. */
static inline int write_golden(int dirfd, struct tr_error *err)
{
	struct tr_writer_options o = {.stored = true, .chunk_size = 700,
				      .file_size = 6000};
	struct tr_writer *w = tr_writer_open_with(dirfd, &o, err);

	if (!w)
		return -1;
	if (golden_events(w, err) < 0) {
		tr_writer_abandon(w);
		return -1;
	}
	if (tr_writer_close(w, NULL, err) < 0)
		return -1;
	return golden_manifest(dirfd, err);
}

#endif
