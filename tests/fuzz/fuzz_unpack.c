/*
 * Fuzzing what reads archives.  With clang's -fsanitize=fuzzer and
 * -DFUZZING_ENGINE this is a libFuzzer target; without, each argument is a
 * file to read, so that a finding can be looked at with a debugger and a
 * corpus be run as a test.
 *
 * After each input nothing may be where the archive's traces would be unless
 * unpacking succeeded, and never anything beside the target.  Listing the
 * archive and checking it where it is must end, too.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/store/archive.h"
#include "libtrace/store/open.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char scratch[64];

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	return ftw->level > 0 ? remove(path) : 0;
}

static void empty_scratch(void)
{
	nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_scratch(void)
{
	empty_scratch();
	rmdir(scratch);
}

/* In memory where possible: a run makes millions of files. */
static void make_scratch(void)
{
	const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	snprintf(scratch, sizeof scratch, "%s/fuzz-unpack-XXXXXX", where);
	if (!mkdtemp(scratch))
		abort();
	atexit(remove_scratch);
}

static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = -2;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return d ? n : 0;
}

static void check_scratch(const char *target, int made)
{
	/* The target, and nothing beside it. */
	if (entries(scratch) > 1 || entries(target) != made)
		abort();
}

static int on_member(void *arg, const struct tr_pack_member *m)
{
	*(uint64_t *)arg += strlen(m->name) + strlen(m->trace);
	return 0;
}

static void on_problem(void *arg, const struct tr_problem *p)
{
	*(uint64_t *)arg += strlen(p->where) + strlen(p->what);
}

/* What failed says why. */
static void must_tell(int r, const struct tr_error *err)
{
	if (r < 0 && (err->code == TR_OK || !err->text[0]))
		abort();
}

static void look(int fd)
{
	TR_AUTOFREE char *name = tr_printf("/proc/self/fd/%d", fd);
	struct tr_check_stats stats;
	struct tr_error err = {0};
	uint64_t seen = 0;

	if (lseek(fd, 0, SEEK_SET) < 0)
		abort();
	must_tell(tr_pack_list(fd, on_member, &seen, &err), &err);
	err = (struct tr_error){0};
	must_tell(tr_trace_check(name, on_problem, &seen, &stats, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TR_AUTOCLOSE int fd = memfd_create("archive", MFD_CLOEXEC);
	TR_AUTOFREE char *target = NULL;
	struct tr_pack_stats stats = {0};
	struct tr_error err = {0};
	char **names = NULL;
	int r, made = 0;

	if (!*scratch)
		make_scratch();
	target = tr_printf("%s/target", scratch);
	if (fd < 0 || tr_pwrite_all(fd, data, size, 0) < 0)
		abort();
	r = tr_pack_extract(fd, target,
			    &(struct tr_unpack_options){.max_bytes = 1 << 24},
			    &names, &stats, &err);
	must_tell(r, &err);
	for (char **n = names; r == 0 && *n; n++, made++)
		free(*n);
	free(names);
	check_scratch(target, made);
	empty_scratch();
	look(fd);
	return 0;
}

#ifdef FUZZING_ENGINE
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned seed);

/* The checksum of a ustar header: POSIX.1 pax, "ustar Interchange Format". */
static void fix_header(uint8_t *h)
{
	unsigned sum = 0;

	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
}

/* Without this nearly every mutation ends at a header's checksum. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned seed)
{
	size_t n = LLVMFuzzerMutate(data, size, max);

	for (size_t at = 0; seed % 8 && at + 512 <= n; at += 512)
		if (memcmp(data + at + 257, "ustar", 5) == 0)
			fix_header(data + at);
	return n;
}
#else
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		TR_AUTOBUF struct tr_buf b = {0};
		struct tr_error err;

		if (tr_read_file(AT_FDCWD, argv[i], 1 << 30, &b, &err) < 0) {
			fprintf(stderr, "fuzz_unpack: %s\n", err.text);
			return 2;
		}
		LLVMFuzzerTestOneInput(b.data, b.len);
	}
	return 0;
}
#endif
