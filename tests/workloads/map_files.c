/* Private file mappings, beyond the file's end too: SIGBUS is handled; files
 * that grow, shrink and change while they are mapped. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

#define PAGE 4096ul

static sigjmp_buf back;
static volatile sig_atomic_t code;

static void on_bus(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	code = si->si_code;
	siglongjmp(back, 1);
}

static int bus_error(const char *p)
{
	if (sigsetjmp(back, 1))
		return code == BUS_ADRERR;
	(void)*(const volatile char *)p;
	return 0;
}

static int make_file(size_t size)
{
	char name[] = "/tmp/map_files.XXXXXX";
	int fd = mkstemp(name);

	CHECK(fd >= 0 && unlink(name) == 0);
	for (size_t i = 0; i < size; i++)
		CHECK(write(fd, &(char){(char)('a' + i / PAGE)}, 1) == 1);
	return fd;
}

static void beyond_end(int flags)
{
	int fd = make_file(PAGE + 100);
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	CHECK(p != MAP_FAILED);
	CHECK(p[0] == 'a' && p[PAGE + 99] == 'b' && p[PAGE + 100] == 0);
	CHECK(bus_error(p + 2 * PAGE) && bus_error(p + 3 * PAGE));
	CHECK(!bus_error(p + PAGE));
	p[PAGE + 200] = 'x'; /* past the end, in its page */
	CHECK(p[PAGE + 200] == 'x');
	if (flags & MAP_SHARED) { /* a private mapping may or may not grow */
		CHECK(ftruncate(fd, 3 * (off_t)PAGE) == 0);
		CHECK(!bus_error(p + 2 * PAGE) && p[2 * PAGE] == 0);
		CHECK(bus_error(p + 3 * PAGE));
	}
	CHECK(munmap(p, 4 * PAGE) == 0 && close(fd) == 0);
}

static void copy_on_write(void)
{
	int fd = make_file(3 * PAGE);
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
		       (off_t)PAGE), c;

	CHECK(p != MAP_FAILED && p[0] == 'b' && p[PAGE] == 'c');
	p[0] = 'X';
	CHECK(pread(fd, &c, 1, (off_t)PAGE) == 1 && c == 'b');
	CHECK(madvise(p, PAGE, MADV_DONTNEED) == 0 && p[0] == 'b');
	CHECK(munmap(p, 2 * PAGE) == 0 && close(fd) == 0);
}

static void refused(void)
{
	int fd = open("/dev/null", O_WRONLY);

	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED &&
	      (errno == EACCES || errno == ENODEV));
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 999, 0) == MAP_FAILED &&
	      errno == EBADF);
	CHECK(close(fd) == 0);
	fd = open("/dev/zero", O_RDWR);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	CHECK(close(fd) == 0);
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};

	CHECK(sigaction(SIGBUS, &sa, NULL) == 0);
	beyond_end(MAP_PRIVATE);
	beyond_end(MAP_SHARED);
	copy_on_write();
	refused();
	puts("ok");
	return 0;
}
