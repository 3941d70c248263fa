/*
 * Packing and unpacking: what goes in comes out, the same for the same input;
 * and archives made by hand that try everything they should not.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>

#include "libtrace/store/archive.h"
#include "tests/unit/check.h"
#include "tests/unit/sample.h"

static struct tr_error err;
static struct tr_pack_stats stats;

static const char *const contents[] = {"first", "other", "first", "", "5678"};
static const struct sample plain = {.files = contents, .nfiles = 5};

/* ---- helpers ---- */

static int pack_to(const char *path, const char *const *dirs, size_t n)
{
	TR_AUTOCLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	return tr_pack_write(fd, dirs, n, &(struct tr_pack_options){0}, &stats,
			     &err);
}

static void free_names(char **names)
{
	for (char **n = names; n && *n; n++)
		free(*n);
	free(names);
}

static int unpack_limited(const char *path, const char *target, uint64_t max)
{
	TR_AUTOCLOSE int fd = open(path, O_RDONLY);
	char **names = NULL;
	const struct tr_unpack_options o = {.max_bytes = max};
	int r = tr_pack_extract(fd, target, &o, &names, &stats, &err);

	free_names(names);
	return r;
}

static int unpack(const char *path, const char *target)
{
	return unpack_limited(path, target, 0);
}

static void load(const char *path, struct tr_buf *b)
{
	b->len = 0;
	if (tr_read_file(AT_FDCWD, path, 1 << 30, b, &err) < 0)
		abort();
}

static bool same_bytes(const char *a, const char *b)
{
	TR_AUTOBUF struct tr_buf x = {0}, y = {0};

	load(a, &x);
	load(b, &y);
	return x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
}

static bool same_trees(const char *a, const char *b)
{
	TR_AUTOFREE char *command = tr_printf("diff -r '%s' '%s' >/dev/null",
					      a, b);

	return system(command) == 0;
}

/* Entries of a directory, hidden ones included; -1 when it is not there. */
static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = -2;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- archives made by hand: ustar, as POSIX.1 pax describes it ---- */

struct member {
	const char *name;
	char type;         /* '0' file, '1' link, '2' symbolic, '5' directory */
	const char *target;
	const char *data;  /* NULL: none */
	uint64_t declared; /* size in the header when not that of data */
};

static void put_member(struct tr_buf *b, const struct member *m)
{
	char h[512] = {0};
	size_t n = m->data ? strlen(m->data) : 0;
	unsigned sum = 0;

	snprintf(h, 100, "%s", m->name);
	snprintf(h + 100, 8, "%07o", m->type == '5' ? 0700 : 0600);
	snprintf(h + 108, 8, "%07o", 0);
	snprintf(h + 116, 8, "%07o", 0);
	snprintf(h + 124, 12, "%011llo", (unsigned long long)
		 (m->declared ? m->declared : n));
	snprintf(h + 136, 12, "%011o", 0);
	h[156] = m->type;
	if (m->target)
		snprintf(h + 157, 100, "%s", m->target);
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < sizeof h; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	tr_buf_put(b, h, sizeof h);
	tr_buf_put(b, m->data, n);
	memset(tr_buf_reserve(b, 512), 0, 512);
	b->len += (512 - n % 512) % 512;
}

static void put_end(struct tr_buf *b)
{
	memset(tr_buf_reserve(b, 1024), 0, 1024);
	b->len += 1024;
}

/* The archive of the plain trace without its end, then the members. */
static void make_with(const char *path, const struct member *m, size_t n)
{
	TR_AUTOBUF struct tr_buf b = {0};

	load("plain.tar", &b);
	b.len -= 1024;
	for (size_t i = 0; i < n; i++)
		put_member(&b, &m[i]);
	put_end(&b);
	sample_file(path, b.data, b.len);
}

/* Unpacking must fail so and leave nothing. */
static bool refused(const char *path, enum tr_code code)
{
	bool ok = true;

	sample_remove("target");
	if (unpack(path, "target") == 0) {
		printf("# %s was unpacked\n", path);
		ok = false;
	} else if (err.code != code) {
		printf("# %s: %s: %s\n", path, tr_code_name(err.code),
		       err.text);
		ok = false;
	}
	if (entries("target") > 0) {
		printf("# %s left something\n", path);
		ok = false;
	}
	return ok;
}

static bool hostile(const struct member *m, size_t n)
{
	make_with("hostile.tar", m, n);
	if (refused("hostile.tar", TR_EHOSTILE))
		return true;
	printf("# member %s\n", m[n - 1].name);
	return false;
}

/* ---- tests ---- */

static void round_trip(void)
{
	const char *const dirs[] = {"plain"};
	struct stat st;

	CHECK(pack_to("plain.tar", dirs, 1) == 0);
	CHECK(stats.traces == 1);
	CHECK(unpack("plain.tar", "out/of/sight") == 0);
	CHECK(same_trees("plain", "out/of/sight/plain"));
	CHECK(stat("out/of/sight/plain", &st) == 0 &&
	      (st.st_mode & 07777) == 0700);
	CHECK(stat("out/of/sight/plain/files/1", &st) == 0 &&
	      (st.st_mode & 07777) == 0400);
	CHECK(entries("out/of/sight") == 1);
}

static void several(void)
{
	const char *const dirs[] = {"plain", "unfinished", "copies/plain",
				    "plain/."};

	CHECK(pack_to("several.tar", dirs, 4) == 0);
	CHECK(stats.traces == 4);
	/* "first" twice in each, all others once more in each later one. */
	CHECK(stats.shared_bytes == 5 + 3 * (5 + 5 + 5 + 4));
	CHECK(unpack("several.tar", "several") == 0);
	CHECK(stats.traces == 4);
	CHECK(same_trees("plain", "several/plain"));
	CHECK(same_trees("plain", "several/plain-2"));
	CHECK(same_trees("plain", "several/plain-3"));
	CHECK(same_trees("unfinished", "several/unfinished"));
}

/* Twice, through a pipe, and from a copy with other times: equal bytes. */
static void deterministic(void)
{
	const char *const dirs[] = {"plain"};
	int p[2], status;
	pid_t pid;

	CHECK(system("rm -rf again && mkdir again && cp -r plain again/plain && "
		     "find again -exec touch -d 2001-01-01 {} +") == 0);
	TR_AUTOFREE char *again = tr_strdup("again/plain/");
	const char *const others[] = {again};

	CHECK(pack_to("one.tar", dirs, 1) == 0);
	CHECK(pack_to("two.tar", others, 1) == 0);
	CHECK(same_bytes("one.tar", "two.tar"));
	CHECK(pipe(p) == 0);
	pid = fork();
	if (pid == 0) {
		close(p[0]);
		_exit(tr_pack_write(p[1], dirs, 1, &(struct tr_pack_options){0},
				    &stats, &err));
	}
	close(p[1]);
	TR_AUTOBUF struct tr_buf b = {0};
	ssize_t n;

	while ((n = read(p[0], tr_buf_reserve(&b, 4096), 4096)) > 0)
		b.len += (size_t)n;
	close(p[0]);
	waitpid(pid, &status, 0);
	CHECK(status == 0);
	sample_file("three.tar", b.data, b.len);
	CHECK(same_bytes("one.tar", "three.tar"));
}

/* Names are bytes to us, whatever the locale makes of them. */
static void any_name(void)
{
	static const char *const names[] = {
		"sp ace", "\xc3\xa9t\xc3\xa9", "\xff\xfe", "-dash", ".hidden",
		"new\nline",
	};
	static const char *const become[] = {
		"sp ace", "\xc3\xa9t\xc3\xa9", "\xff\xfe", "-dash", "_hidden",
		"new_line",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		TR_AUTOFREE char *dir = tr_printf("./%s", names[i]);
		TR_AUTOFREE char *out = tr_printf("names/%s", become[i]);
		const char *const dirs[] = {dir};

		sample_trace(dir, &plain);
		CHECK(pack_to("name.tar", dirs, 1) == 0);
		if (unpack("name.tar", "names") < 0)
			printf("# %s\n", err.text);
		CHECK(same_trees(dir, out));
	}
}

static void filters(void)
{
	static const char *const tools[] = {"gzip", "xz", "zstd"};

	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
		TR_AUTOFREE char *command = tr_printf(
			"command -v %s >/dev/null || exit 9; "
			"%s -c <plain.tar >filtered", tools[i], tools[i]);

		if (system(command) != 0)
			continue;
		sample_remove("filtered-out");
		CHECK(unpack("filtered", "filtered-out") == 0);
		CHECK(same_trees("plain", "filtered-out/plain"));
	}
}

static void no_traces(void)
{
	const char *const missing[] = {"plain", "no-such-directory"};
	const char *const file[] = {"plain/manifest.json"};
	const char *const empty[] = {"empty"};

	CHECK(pack_to("x.tar", NULL, 0) < 0 && err.code == TR_EINVAL);
	CHECK(mkdir("empty", 0700) == 0);
	CHECK(pack_to("x.tar", missing, 2) < 0 && err.code == TR_ESYS);
	CHECK(strstr(err.text, "no-such-directory") != NULL);
	CHECK(pack_to("x.tar", file, 1) < 0 && err.code == TR_ENOTRACE);
	CHECK(pack_to("x.tar", empty, 1) < 0 && err.code == TR_ENOTRACE);
}

/* A symbolic link in a trace would pack what it leads to. */
static void links_are_not_followed(void)
{
	const char *const dirs[] = {"linked"};

	sample_trace("linked", &plain);
	CHECK(unlink("linked/files/2") == 0);
	CHECK(symlink("/etc/passwd", "linked/files/2") == 0);
	CHECK(pack_to("x.tar", dirs, 1) < 0 && err.code == TR_ECORRUPT);
}

static void not_overwritten(void)
{
	CHECK(mkdir("there", 0700) == 0 && mkdir("there/plain", 0700) == 0);
	CHECK(unpack("plain.tar", "there") < 0 && err.code == TR_EEXIST);
	CHECK(entries("there") == 1 && entries("there/plain") == 0);
}

/* When the second trace is there already the first is not left either. */
static void all_or_nothing(void)
{
	CHECK(mkdir("half", 0700) == 0 && mkdir("half/plain-3", 0700) == 0);
	CHECK(unpack("several.tar", "half") < 0 && err.code == TR_EEXIST);
	CHECK(entries("half") == 1);
}

static void make_in_the_way(void *arg, const struct tr_pack_progress *p)
{
	(void)arg;
	if (strcmp(p->member, "plain-3/files/5") != 0)
		return;
	mkdir("race/plain-3", 0700);
	sample_file("race/plain-3/mine", "", 0);
}

/* The same when it appears while unpacking, after the first look. */
static void in_the_way_late(void)
{
	TR_AUTOCLOSE int fd = open("several.tar", O_RDONLY);
	char **names = NULL;

	const struct tr_unpack_options o = {.progress = make_in_the_way};

	CHECK(tr_pack_extract(fd, "race", &o, &names, &stats, &err) < 0);
	CHECK(err.code == TR_EEXIST);
	CHECK(entries("race") == 1 && entries("race/plain-3") == 1);
}

static void hostile_names(void)
{
	static const char *const names[] = {
		"/tmp/trace-hostile", "../hostile", "plain/../../hostile",
		"plain/files/../../../hostile", "plain/./index", "./plain/index",
		"plain//index", "plain/files/1/2", "plain/files/01",
		"plain/files/0", "plain/files/x", "plain/files/-1",
		"plain/files/4294967296", "plain/chunks/1",
		"plain/chunks/0000001", "plain/chunks/00000x", "plain/notes",
		"plain/manifest.json.tmp", "plain/files2/1", "hostile",
		".hidden/manifest.json", "..", ".", "/", "a\nb/manifest.json",
		"a\033[2J/manifest.json", "plain/index/1",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct member m = {.name = names[i], .type = '0',
					 .data = "x"};

		CHECK(hostile(&m, 1));
	}
	CHECK(entries("/tmp/trace-hostile") == -1);
	CHECK(access("hostile", F_OK) < 0 && access("../hostile", F_OK) < 0);
}

static void hostile_types(void)
{
	static const char types[] = "23456";

	for (const char *t = types; *t; t++) {
		const struct member m = {.name = "plain/files/9", .type = *t,
					 .target = "/etc/passwd"};

		CHECK(hostile(&m, 1));
	}
	const struct member dirs[] = {
		{.name = "plain/files", .type = '2', .target = "/tmp"},
		{.name = "new", .type = '2', .target = "/tmp"},
		{.name = "new/manifest.json", .type = '5'},
	};

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		CHECK(hostile(&dirs[i], 1));
}

static void hostile_links(void)
{
	static const char *const targets[] = {
		"/etc/passwd", "../../../etc/passwd", "plain/files/77",
		"plain/files/9", "other/files/1", "plain/manifest.json",
		"plain/files", "plain/files/../files/1", "",
	};

	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		const struct member m = {.name = "plain/files/9", .type = '1',
					 .target = targets[i]};

		if (*targets[i])
			CHECK(hostile(&m, 1));
	}
	const struct member late[] = {
		{.name = "plain/files/8", .type = '1',
		 .target = "plain/files/9"},
		{.name = "plain/files/9", .type = '0', .data = "x"},
	};
	const struct member odd[] = {
		{.name = "new/manifest.json", .type = '1',
		 .target = "plain/manifest.json"},
		{.name = "new/manifest.json", .type = '1',
		 .target = "plain/files/1"},
		{.name = "new/files/", .type = '1', .target = "plain/files/1"},
	};

	CHECK(hostile(late, 2));
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		CHECK(hostile(&odd[i], 1));
}

static void twice(void)
{
	const struct member again[] = {
		{.name = "plain/files/1", .type = '0', .data = "first"},
		{.name = "plain/files/1", .type = '1',
		 .target = "plain/files/2"},
		{.name = "plain/manifest.json", .type = '0', .data = "{}"},
		{.name = "plain/index", .type = '0', .data = ""},
		{.name = "plain/chunks/000000", .type = '0', .data = ""},
		{.name = "plain/", .type = '5'},
		{.name = "plain/files", .type = '5'},
		{.name = "plain/chunks/", .type = '5'},
	};

	for (size_t i = 0; i < sizeof again / sizeof *again; i++)
		CHECK(hostile(&again[i], 1));
}

static void unknown_file(void)
{
	const struct member m = {.name = "plain/files/9", .type = '0',
				 .data = "stowaway"};

	CHECK(hostile(&m, 1));
}

static void sizes(void)
{
	const struct member huge = {.name = "plain/files/9", .type = '0',
				    .data = "x", .declared = 077777777777};
	TR_AUTOBUF struct tr_buf all = {0};

	make_with("huge.tar", &huge, 1);
	sample_remove("target");
	CHECK(unpack_limited("huge.tar", "target", 1 << 20) < 0);
	CHECK(err.code == TR_EHOSTILE && entries("target") <= 0);
	load("plain.tar", &all);
	CHECK(unpack_limited("plain.tar", "target", 100) < 0);
	CHECK(err.code == TR_EHOSTILE && entries("target") <= 0);
	CHECK(unpack_limited("plain.tar", "target", all.len) == 0);
	CHECK(refused("huge.tar", TR_EHOSTILE));
	/* Within the limit, but the bytes are not there. */
	const struct member less = {.name = "new/manifest.json", .type = '0',
				    .data = "x", .declared = 077777777777};

	make_with("less.tar", &less, 1);
	CHECK(refused("less.tar", TR_ECORRUPT));
}

/* However much is missing, even if all members are whole. */
static void cut_off(void)
{
	TR_AUTOBUF struct tr_buf b = {0};
	int wrong = 0;

	load("several.tar", &b);
	for (size_t n = 0; n + 1024 < b.len; n += n % 512 ? 507 : 5) {
		sample_file("cut.tar", b.data, n);
		wrong += !refused("cut.tar", TR_ECORRUPT);
	}
	CHECK(wrong == 0);
}

/* A changed byte of a stored file is found by its digest. */
static void wrong_digest(void)
{
	TR_AUTOBUF struct tr_buf b = {0};
	uint8_t *p;

	load("plain.tar", &b);
	p = memmem(b.data, b.len, "other", 5);
	CHECK(p != NULL);
	*p = 'O';
	sample_file("changed.tar", b.data, b.len);
	CHECK(refused("changed.tar", TR_ECORRUPT));
	CHECK(strstr(err.text, "plain/files/2") != NULL);
}

/* Leave one member out. */
static void make_without(const char *path, const char *name)
{
	TR_AUTOBUF struct tr_buf b = {0}, out = {0};

	load("plain.tar", &b);
	for (size_t at = 0; at + 512 <= b.len;) {
		const char *h = (const char *)b.data + at;
		size_t n = 512 + ((strtoul(h + 124, NULL, 8) + 511) &
				  ~(size_t)511);

		if (strcmp(h, name) != 0)
			tr_buf_put(&out, h, n);
		at += n;
	}
	sample_file(path, out.data, out.len);
}

static void missing_members(void)
{
	make_without("less.tar", "plain/files/2");
	CHECK(refused("less.tar", TR_ECORRUPT));
	make_without("less.tar", "plain/manifest.json");
	CHECK(refused("less.tar", TR_ENOTRACE));
	make_without("less.tar", "plain/chunks/000000");
	CHECK(refused("less.tar", TR_ECORRUPT));
	/* Directories, and the index, can be made again or done without. */
	make_without("less.tar", "plain/files/");
	CHECK(unpack("less.tar", "implied") == 0);
	CHECK(same_trees("plain", "implied/plain"));
}

static void no_archives(void)
{
	sample_file("bad", "", 0);
	CHECK(refused("bad", TR_ECORRUPT));
	sample_file("bad", "not an archive at all", 21);
	CHECK(refused("bad", TR_ECORRUPT));
	TR_AUTOBUF struct tr_buf b = {0};

	put_end(&b);
	sample_file("bad", b.data, b.len);
	CHECK(refused("bad", TR_ECORRUPT));
	/* An old cpio archive: an archive, but not one of ours. */
	sample_file("bad", "0707070000000000010006440000000000000000010000000000"
		    "0000000000000130000000000TRAILER!!!", 87);
	CHECK(refused("bad", TR_ECORRUPT));
}

static void incomplete_trace(void)
{
	const char *const dirs[] = {"bare"};
	struct sample s = plain;

	s.incomplete = s.no_digests = true;
	sample_trace("bare", &s);
	CHECK(pack_to("bare.tar", dirs, 1) == 0);
	CHECK(unpack("bare.tar", "bare-out") == 0);
	CHECK(same_trees("bare", "bare-out/bare"));
}

/* ---- tests that need another environment run in a child ---- */

static int in_child(const char *mode, const char *fault)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setenv("TRACE_FAULT", fault, 1);
		execl("/proc/self/exe", "test_archive", mode, sample_dir, NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int child_pack(void)
{
	const char *const dirs[] = {"plain"};

	return pack_to("full.tar", dirs, 1) < 0 && err.code == TR_ESYS &&
		err.sys_errno == ENOSPC ? 0 : 1;
}

static int child_unpack(void)
{
	sample_remove("target");
	return unpack("several.tar", "target") < 0 && err.code == TR_ESYS &&
		err.sys_errno == ENOSPC && entries("target") <= 0 ? 0 : 1;
}

static int child_works(void)
{
	sample_remove("target");
	return unpack("several.tar", "target") == 0 &&
		same_trees("plain", "target/plain-3") ? 0 : 1;
}

static void faults(void)
{
	CHECK(in_child("pack", "pack-write=enospc") == 0);
	CHECK(in_child("unpack", "unpack-write=enospc@5") == 0);
	CHECK(in_child("unpack", "unpack-sync=enospc") == 0);
	CHECK(in_child("works", "unpack-clone=exdev") == 0);
	CHECK(in_child("works", "unpack-clone=exdev,unpack-link=exdev") == 0);
	CHECK(in_child("works", "openat2=eacces") == 0);
}

static int child(const char *mode, const char *dir)
{
	if (chdir(dir) < 0)
		return 1;
	return strcmp(mode, "pack") == 0 ? child_pack() :
	       strcmp(mode, "unpack") == 0 ? child_unpack() : child_works();
}

int main(int argc, char **argv)
{
	struct sample unfinished = plain;

	if (argc == 3)
		return child(argv[1], argv[2]);
	sample_init();
	sample_trace("plain", &plain);
	unfinished.incomplete = true;
	sample_trace("unfinished", &unfinished);
	if (system("mkdir copies && cp -r plain copies/plain") != 0)
		abort();
	RUN(round_trip);
	RUN(several);
	RUN(deterministic);
	RUN(any_name);
	RUN(filters);
	RUN(no_traces);
	RUN(links_are_not_followed);
	RUN(not_overwritten);
	RUN(all_or_nothing);
	RUN(in_the_way_late);
	RUN(hostile_names);
	RUN(hostile_types);
	RUN(hostile_links);
	RUN(twice);
	RUN(unknown_file);
	RUN(sizes);
	RUN(cut_off);
	RUN(wrong_digest);
	RUN(missing_members);
	RUN(no_archives);
	RUN(incomplete_trace);
	RUN(faults);
	return check_status();
}
