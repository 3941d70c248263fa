/* Pipes: full and empty ones, their end, and SIGPIPE. */
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

static volatile sig_atomic_t broken;

static void on_pipe(int sig)
{
	broken += sig == SIGPIPE;
}

static void fill_and_drain(void)
{
	static char page[4096];
	int fds[2], written = 0;

	CHECK(pipe2(fds, O_NONBLOCK) == 0);
	while (write(fds[1], page, sizeof page) == sizeof page)
		written++;
	CHECK(errno == EAGAIN && written > 0);
	while (read(fds[0], page, sizeof page) == sizeof page)
		written--;
	CHECK(errno == EAGAIN && written == 0);
	CHECK(close(fds[1]) == 0);
	CHECK(read(fds[0], page, sizeof page) == 0);
	close(fds[0]);
}

static void between_processes(void)
{
	char a[3], b[100000];
	struct iovec io[] = {{a, sizeof a}, {b, sizeof b}};
	int fds[2];
	ssize_t n, total = 0;

	CHECK(pipe(fds) == 0);
	if (fork() == 0) {
		close(fds[0]);
		for (int i = 0; i < 1000; i++) {
			memset(b, i, 1000);
			CHECK(write(fds[1], b, 1000) == 1000);
		}
		_exit(0);
	}
	close(fds[1]);
	while ((n = readv(fds[0], io, 2)) > 0)
		total += n;
	CHECK(n == 0 && total == 1000000);
	close(fds[0]);
	CHECK(wait(NULL) > 0);
}

static void no_reader(void)
{
	int fds[2], status;

	CHECK(pipe(fds) == 0);
	close(fds[0]);
	signal(SIGPIPE, on_pipe);
	CHECK(write(fds[1], "x", 1) == -1 && errno == EPIPE && broken == 1);
	signal(SIGPIPE, SIG_IGN);
	CHECK(write(fds[1], "x", 1) == -1 && errno == EPIPE && broken == 1);
	if (fork() == 0) {
		signal(SIGPIPE, SIG_DFL);
		_exit(write(fds[1], "x", 1) == 1);
	}
	CHECK(wait(&status) > 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	close(fds[1]);
}

static void moved(void)
{
	int a[2], b[2];
	char text[8] = "";
	struct iovec io = {"xyz", 3};

	CHECK(pipe(a) == 0 && pipe(b) == 0);
	CHECK(vmsplice(a[1], &io, 1, 0) == 3);
	CHECK(tee(a[0], b[1], 2, 0) == 2);
	CHECK(splice(a[0], NULL, b[1], NULL, 3, 0) == 3);
	CHECK(read(b[0], text, sizeof text) == 5 && strcmp(text, "xyxyz") == 0);
}

int main(void)
{
	fill_and_drain();
	between_processes();
	no_reader();
	moved();
	puts("ok");
	return 0;
}
