/*
 * Memory of other processes, written and read without ptrace(2): by
 * process_vm_writev(2) and through /proc/PID/mem, also into code.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

static volatile int word = 1;
static char text[] = "text of the child";
static const int constant = 5;

__attribute__((noinline)) static int answer(void)
{
	int x = 1;

	__asm__ volatile("" : "+r"(x));
	return x + 40;
}

/* Answers each byte on the first pipe by what it finds. */
static void child(int in, int out)
{
	char byte;
	int found[4];

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	while (read(in, &byte, 1) == 1) {
		found[0] = word;
		found[1] = text[0];
		found[2] = answer();
		found[3] = *(const volatile int *)&constant;
		CHECK(write(out, found, sizeof found) == sizeof found);
	}
	_exit(0);
}

/* Until the child sleeps in its call: what changes then has a clear order. */
static void wait_until_blocked(pid_t pid)
{
	char path[64], line[256];

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	for (int i = 0; i < 5000; i++) {
		FILE *f = fopen(path, "r");

		CHECK(f && fgets(line, sizeof line, f));
		fclose(f);
		if (strstr(line, ") S "))
			return;
		usleep(1000);
	}
	CHECK(!"it blocks");
}

static void ask(int to, int from, int w, int t, int a, int c)
{
	int found[4];

	CHECK(write(to, "x", 1) == 1);
	CHECK(read(from, found, sizeof found) == sizeof found);
	CHECK(found[0] == w && found[1] == t && found[2] == a && found[3] == c);
}

static void write_vector(pid_t pid)
{
	int two = 2;
	char big = 'B';
	struct iovec local[2] = {{&two, sizeof two}, {&big, 1}};
	struct iovec remote[2] = {{(void *)&word, sizeof word}, {text, 1}};

	CHECK(process_vm_writev(pid, local, 2, remote, 2, 0) == 5);
	two = big = 0;
	CHECK(process_vm_readv(pid, local, 2, remote, 2, 0) == 5);
	CHECK(two == 2 && big == 'B');
	remote[0].iov_base = (void *)8;
	CHECK(process_vm_writev(pid, local, 1, remote, 1, 0) == -1);
	CHECK(errno == EFAULT);
}

static void write_file(pid_t pid)
{
	unsigned char code[64], *one;
	char path[64];
	int fd, seven = 7;

	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	CHECK(pwrite(fd, &seven, sizeof seven, (off_t)&constant) ==
	      sizeof seven);
	CHECK(lseek(fd, (off_t)&word, SEEK_SET) == (off_t)&word);
	CHECK(write(fd, &(int){3}, sizeof(int)) == sizeof(int));
	/* The constant 40 in the code becomes 50. */
	CHECK(pread(fd, code, sizeof code, (off_t)answer) == sizeof code);
	CHECK(memcmp(code, (const void *)answer, sizeof code) == 0);
	one = memchr(code, 40, sizeof code);
	CHECK(one);
	*one = 50;
	CHECK(pwrite(fd, code, sizeof code, (off_t)answer) == sizeof code);
	close(fd);
}

/* And into its own memory. */
static void write_own(void)
{
	struct iovec local = {&(int){9}, sizeof(int)};
	struct iovec remote = {(void *)&word, sizeof word};
	int fd = open("/proc/self/mem", O_RDWR);

	CHECK(fd >= 0);
	CHECK(pwrite(fd, &(int){8}, sizeof(int), (off_t)&constant) ==
	      sizeof(int));
	CHECK(*(const volatile int *)&constant == 8);
	CHECK(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) ==
	      sizeof(int));
	CHECK(word == 9);
	close(fd);
}

int main(void)
{
	int to[2], from[2], status;
	pid_t pid;

	CHECK(pipe(to) == 0 && pipe(from) == 0);
	pid = fork();
	if (pid == 0) {
		close(to[1]);
		child(to[0], from[1]);
	}
	ask(to[1], from[0], 1, 't', 41, 5);
	wait_until_blocked(pid);
	write_vector(pid);
	ask(to[1], from[0], 2, 'B', 41, 5);
	wait_until_blocked(pid);
	write_file(pid);
	ask(to[1], from[0], 3, 'B', 51, 7);
	CHECK(word == 1 && text[0] == 't' && answer() == 41);
	write_own();
	close(to[1]);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	puts("ok");
	return 0;
}
