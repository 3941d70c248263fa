/* The store of mapped files: every kind of file, each method, digests. */
#include <errno.h>
#include <sys/wait.h>

#include "libtrace/base/sha256.h"
#include "tests/unit/check.h"
#include "tests/unit/sample.h"

static struct tr_store *store;
static int trace_dir = -1;

static void open_store(const char *dir)
{
	struct tr_error err;

	if (mkdir(dir, 0700) < 0)
		abort();
	trace_dir = open(dir, O_RDONLY | O_DIRECTORY);
	store = tr_store_open(trace_dir, &err);
	sample_must(store ? 0 : -1, &err);
}

static void close_store(void)
{
	tr_store_close(store);
	close(trace_dir);
}

/* Add; the id, or 0 with *err. */
static uint32_t add(int fd, const char *path, bool *is_new,
		    enum tr_store_method *method, struct tr_error *err)
{
	const struct tr_store_file *f = tr_store_add(store, fd, path, is_new,
						     err);

	if (f && method)
		*method = f->method;
	return f ? f->id : 0;
}

static bool stored_is(uint32_t id, const void *data, size_t n)
{
	TR_AUTOFREE char *name = tr_printf("files/%u", id);
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_error err;

	return tr_read_file(trace_dir, name, 1 << 30, &b, &err) == 0 &&
	       b.len == n && (n == 0 || memcmp(b.data, data, n) == 0);
}

static void same_file_once(void)
{
	bool is_new;
	struct tr_error err;

	open_store("once");
	sample_file("a", "abc", 3);
	sample_file("b", "abc", 3);
	TR_AUTOCLOSE int a = open("a", O_RDONLY), a2 = open("a", O_RDONLY);
	TR_AUTOCLOSE int b = open("b", O_RDONLY);

	CHECK(add(a, "a", &is_new, NULL, &err) == 1 && is_new);
	CHECK(add(a2, "a", &is_new, NULL, &err) == 1 && !is_new);
	CHECK(add(b, "b", &is_new, NULL, &err) == 2 && is_new);
	sample_file("a", "abcd", 4);
	CHECK(add(a, "a", &is_new, NULL, &err) == 3 && is_new);
	CHECK(stored_is(1, "abc", 3) && stored_is(2, "abc", 3));
	CHECK(stored_is(3, "abcd", 4));
	close_store();
}

static void many_files(void)
{
	enum { N = 1000 };
	bool is_new;
	struct tr_error err;
	int wrong = 0;

	open_store("many");
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 1; i <= N; i++) {
			TR_AUTOFREE char *path = tr_printf("many-%u", i);

			if (pass == 0)
				sample_file(path, path, strlen(path));
			TR_AUTOCLOSE int fd = open(path, O_RDONLY);

			wrong += add(fd, path, &is_new, NULL, &err) != i;
			wrong += is_new != (pass == 0);
			if (pass == 0)
				wrong += !stored_is(i, path, strlen(path));
		}
	}
	CHECK(wrong == 0);
	close_store();
}

/* However the descriptor is open, and without moving its offset. */
static void any_descriptor(void)
{
	bool is_new;
	struct tr_error err;

	open_store("any");
	sample_file("w", "write-only", 10);
	sample_file("p", "path-only", 9);
	sample_file("o", "at an offset", 12);
	sample_file("d", "deleted", 7);
	TR_AUTOCLOSE int w = open("w", O_WRONLY), p = open("p", O_PATH);
	TR_AUTOCLOSE int o = open("o", O_RDONLY), d = open("d", O_RDONLY);
	TR_AUTOCLOSE int m = memfd_create("m", 0);

	lseek(o, 5, SEEK_SET);
	unlink("d");
	CHECK(tr_write_all(m, "memory", 6) == 0);
	CHECK(stored_is(add(w, "w", &is_new, NULL, &err), "write-only", 10));
	CHECK(stored_is(add(p, "p", &is_new, NULL, &err), "path-only", 9));
	CHECK(stored_is(add(o, "o", &is_new, NULL, &err), "at an offset", 12));
	CHECK(lseek(o, 0, SEEK_CUR) == 5);
	CHECK(stored_is(add(d, "d", &is_new, NULL, &err), "deleted", 7));
	CHECK(stored_is(add(m, "m", &is_new, NULL, &err), "memory", 6));
	CHECK(lseek(m, 0, SEEK_CUR) == 6);
	close_store();
}

/* Files of proc(5) have size 0 and content. */
static void proc_file(void)
{
	TR_AUTOCLOSE int fd = open("/proc/version", O_RDONLY);
	TR_AUTOBUF struct tr_buf b = {0};
	struct tr_error err;
	bool is_new;

	open_store("proc");
	CHECK(tr_read_file(AT_FDCWD, "/proc/version", 4096, &b, &err) == 0);
	CHECK(b.len > 0);
	CHECK(stored_is(add(fd, "/proc/version", &is_new, NULL, &err), b.data,
			b.len));
	close_store();
}

static void not_a_file(void)
{
	TR_AUTOCLOSE int null = open("/dev/null", O_RDWR);
	TR_AUTOCLOSE int dir = open("/", O_RDONLY);
	struct tr_error err;
	bool is_new;

	open_store("not");
	CHECK(add(null, "/dev/null", &is_new, NULL, &err) == 0);
	CHECK(err.code == TR_EINVAL && strstr(err.text, "/dev/null"));
	CHECK(add(dir, "/", &is_new, NULL, &err) == 0);
	close_store();
}

static void holes_stay_holes(void)
{
	const off_t size = (off_t)1 << 30;
	struct tr_error err;
	struct stat st;
	bool is_new;
	char c[4];

	open_store("holes");
	TR_AUTOCLOSE int fd = open("sparse", O_RDWR | O_CREAT, 0600);

	CHECK(ftruncate(fd, size) == 0);
	CHECK(pwrite(fd, "head", 4, 0) == 4);
	CHECK(pwrite(fd, "body", 4, 500 << 20) == 4);
	CHECK(add(fd, "sparse", &is_new, NULL, &err) == 1);
	TR_AUTOCLOSE int out = openat(trace_dir, "files/1", O_RDONLY);

	CHECK(fstat(out, &st) == 0 && st.st_size == size);
	CHECK(st.st_blocks < 2000);
	CHECK((st.st_mode & 07777) == 0400);
	CHECK(pread(out, c, 4, 500 << 20) == 4 && memcmp(c, "body", 4) == 0);
	CHECK(pread(out, c, 4, 0) == 4 && memcmp(c, "head", 4) == 0);
	close_store();
}

static bool digest_is(const uint8_t *sha256, const char *hex)
{
	char text[65];

	for (int i = 0; i < 32; i++)
		sprintf(text + 2 * i, "%02x", sha256[i]);
	return strcmp(text, hex) == 0;
}

/* The test vectors of FIPS 180-4 for "abc" and the empty message. */
static void digests(void)
{
	struct tr_store_digest d;
	struct tr_error err;
	bool is_new;

	open_store("digests");
	CHECK(!tr_store_take_digest(store, true, &d));
	sample_file("abc", "abc", 3);
	sample_file("empty", "", 0);
	TR_AUTOCLOSE int abc = open("abc", O_RDONLY);
	TR_AUTOCLOSE int empty = open("empty", O_RDONLY);

	CHECK(add(abc, "abc", &is_new, NULL, &err) == 1);
	CHECK(add(empty, "empty", &is_new, NULL, &err) == 2);
	CHECK(tr_store_take_digest(store, true, &d));
	CHECK(d.id == 1 && !d.changed && !d.pages);
	CHECK(digest_is(d.sha256, "ba7816bf8f01cfea414140de5dae2223"
			"b00361a396177a9cb410ff61f20015ad"));
	CHECK(tr_store_take_digest(store, true, &d));
	CHECK(d.id == 2 && !d.changed && !d.pages);
	CHECK(digest_is(d.sha256, "e3b0c44298fc1c149afbf4c8996fb924"
			"27ae41e4649b934ca495991b7852b855"));
	CHECK(!tr_store_take_digest(store, true, &d));
	close_store();
}

/* The first file keeps the digest thread busy while the second is changed. */
static void change_is_noticed(void)
{
	struct tr_store_digest d;
	struct tr_error err;
	bool is_new;

	open_store("change");
	TR_AUTOCLOSE int busy = open("busy", O_RDWR | O_CREAT, 0600);

	CHECK(ftruncate(busy, 512 << 20) == 0);
	sample_file("small", "1234", 4);
	TR_AUTOCLOSE int small = open("small", O_RDONLY);

	CHECK(add(busy, "busy", &is_new, NULL, &err) == 1);
	CHECK(add(small, "small", &is_new, NULL, &err) == 2);
	CHECK(fchmodat(trace_dir, "files/2", 0600, 0) == 0);
	TR_AUTOCLOSE int out = openat(trace_dir, "files/2", O_WRONLY);

	CHECK(pwrite(out, "12345", 5, 0) == 5);
	CHECK(tr_store_take_digest(store, true, &d));
	CHECK(d.id == 1 && !d.changed && !d.pages);
	CHECK(tr_store_take_digest(store, true, &d));
	CHECK(d.id == 2 && d.changed);
	close_store();
}

/* A terabyte of holes: only its pages are read, wherever its holes are. */
static void holes(void)
{
	const off_t size = (off_t)1 << 40;
	uint8_t once[TR_SHA256_SIZE];
	struct tr_store_digest d;
	struct tr_error err;
	struct stat st;
	bool is_new;

	open_store("page_digests");
	TR_AUTOCLOSE int fd = memfd_create("holes", MFD_CLOEXEC);

	CHECK(ftruncate(fd, size) == 0 && pwrite(fd, "ab", 2, 4095) == 2);
	CHECK(pwrite(fd, "end", 3, size - 3) == 3);
	CHECK(add(fd, "holes", &is_new, NULL, &err) == 1);
	CHECK(tr_store_take_digest(store, true, &d));
	CHECK(d.pages && !d.changed);
	CHECK(fstatat(trace_dir, "files/1", &st, 0) == 0);
	CHECK(st.st_size == size && st.st_blocks * 512 < 1 << 20);
	CHECK(tr_sha256_pages_fd(fd, once, &err) == 0);
	CHECK(memcmp(once, d.sha256, sizeof once) == 0);
	/* Pages of zeroes are no different from holes, other bytes are. */
	CHECK(pwrite(fd, (char[8192]){0}, 8192, size / 2 + 7) == 8192);
	CHECK(tr_sha256_pages_fd(fd, once, &err) == 0);
	CHECK(memcmp(once, d.sha256, sizeof once) == 0);
	CHECK(pwrite(fd, "x", 1, size / 2) == 1);
	CHECK(tr_sha256_pages_fd(fd, once, &err) == 0);
	CHECK(memcmp(once, d.sha256, sizeof once) != 0);
	close_store();
}

/* Closing does not wait for digests. */
static void close_early(void)
{
	struct tr_error err;
	uint64_t start;
	bool is_new;

	open_store("early");
	for (int i = 0; i < 4; i++) {
		TR_AUTOFREE char *name = tr_printf("large-%d", i);
		TR_AUTOCLOSE int fd = open(name, O_RDWR | O_CREAT, 0600);

		CHECK(ftruncate(fd, (off_t)8 << 30) == 0);
		CHECK(add(fd, name, &is_new, NULL, &err) > 0);
	}
	start = tr_now_ns();
	close_store();
	CHECK(tr_now_ns() - start < 3000000000u);
}

/* ---- tests that need another environment run in a child ---- */

static int in_child(const char *mode, const char *fault)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (fault)
			setenv("TRACE_FAULT", fault, 1);
		execl("/proc/self/exe", "test_store", mode, NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void child_copy(void)
{
	enum { N = 3 << 20 };
	TR_AUTOFREE char *data = tr_alloc(N);
	enum tr_store_method method = 0;
	struct tr_error err;
	bool is_new;

	for (size_t i = 0; i < N; i++)
		data[i] = (char)(i * i >> 8);
	open_store("copy");
	sample_file("data", data, N);
	TR_AUTOCLOSE int fd = open("data", O_RDONLY);

	CHECK(stored_is(add(fd, "data", &is_new, &method, &err), data, N));
	CHECK(method == TR_STORE_COPY);
	close_store();
}

static void child_full(void)
{
	struct tr_error err;
	struct stat st;
	bool is_new;

	open_store("full");
	sample_file("data", "data", 4);
	TR_AUTOCLOSE int fd = open("data", O_RDONLY);

	CHECK(add(fd, "data", &is_new, NULL, &err) == 0);
	CHECK(err.code == TR_ESYS && err.sys_errno == ENOSPC);
	CHECK(strstr(err.text, "data") && strstr(err.text, "files/1"));
	CHECK(fstatat(trace_dir, "files/1", &st, 0) < 0 && errno == ENOENT);
	close_store();
}

static bool links_allowed(void)
{
	FILE *f = fopen("/proc/sys/fs/protected_hardlinks", "r");
	int c = f ? fgetc(f) : '1';

	if (f)
		fclose(f);
	return c == '0';
}

/*
 * As another user: a file that this user cannot write may be linked, when the
 * system allows it (proc_sys_fs(5), protected_hardlinks); its own never is.
 */
static void child_link(void)
{
	enum tr_store_method method = 0;
	struct tr_error err;
	struct stat st, in;
	bool is_new;

	sample_file("theirs", "theirs", 6);
	sample_file("open", "open", 4);
	CHECK(chmod("open", 0666) == 0);
	if (chown(".", 65534, 65534) < 0 || setgid(65534) < 0 ||
	    setuid(65534) < 0)
		exit(77);
	open_store("link");
	sample_file("mine", "mine", 4);
	CHECK(chmod("mine", 0444) == 0);
	TR_AUTOCLOSE int theirs = open("theirs", O_RDONLY);
	TR_AUTOCLOSE int mine = open("mine", O_RDONLY);
	TR_AUTOCLOSE int writable = open("open", O_RDONLY);

	CHECK(add(mine, "mine", &is_new, &method, &err) == 1);
	CHECK(method != TR_STORE_LINK);
	CHECK(add(writable, "open", &is_new, &method, &err) == 2);
	CHECK(method != TR_STORE_LINK);
	CHECK(add(theirs, "theirs", &is_new, &method, &err) == 3);
	CHECK(stored_is(3, "theirs", 6));
	if (method == TR_STORE_CLONE)
		goto out;
	CHECK((method == TR_STORE_LINK) == links_allowed());
	CHECK(fstatat(trace_dir, "files/3", &st, 0) == 0);
	CHECK(fstat(theirs, &in) == 0);
	CHECK((st.st_ino == in.st_ino) == (method == TR_STORE_LINK));
	/* The link changed its ctime: it must still be found. */
	CHECK(add(theirs, "theirs", &is_new, &method, &err) == 3 && !is_new);
out:
	close_store();
}

static void kernel_copy_refused(void)
{
	CHECK(in_child("copy", "store-clone=eopnotsupp,store-link=exdev,"
		       "store-copy-range=exdev") == 0);
}

static void kernel_copy(void)
{
	CHECK(in_child("copy", "store-clone=eopnotsupp,store-link=exdev") == 0);
}

static void disk_full(void)
{
	CHECK(in_child("full", "store-write=enospc") == 0);
	/* In the middle: the first passage is the file's creation. */
	CHECK(in_child("full", "store-clone=exdev,store-copy-range=exdev,"
		       "store-write=enospc@2") == 0);
}

static void link_rule(void)
{
	int r = geteuid() == 0 ? in_child("link", NULL) : 0;

	CHECK(r == 0 || r == 77);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *mode;
		void (*run)(void);
	} modes[] = {
		{"copy", child_copy}, {"full", child_full},
		{"link", child_link},
	};

	sample_init();
	for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
		if (strcmp(argv[1], modes[i].mode) != 0)
			continue;
		modes[i].run();
		fflush(stdout);
		return check_failed_now;
	}
	RUN(same_file_once);
	RUN(many_files);
	RUN(any_descriptor);
	RUN(proc_file);
	RUN(not_a_file);
	RUN(holes_stay_holes);
	RUN(digests);
	RUN(change_is_noticed);
	RUN(holes);
	RUN(close_early);
	RUN(kernel_copy);
	RUN(kernel_copy_refused);
	RUN(disk_full);
	RUN(link_rule);
	return check_status();
}
