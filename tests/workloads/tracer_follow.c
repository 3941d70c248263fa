/*
 * A tracer that follows its tracees: fork, vfork, threads, execve and ends,
 * with the events that tell of them, for old-style and seized tracees.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "check.h"

#define EVENT_STOP 128
#define ALL (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	     PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT |                        \
	     PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACESYSGOOD |                \
	     PTRACE_O_EXITKILL)

static void *thread(void *arg)
{
	return arg;
}

/* What the tracees do: a fork, a thread, a vfork with an execve. */
static void program(void)
{
	pthread_t id;
	void *got;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(3);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK(pthread_create(&id, NULL, thread, &got) == 0);
	CHECK(pthread_join(id, &got) == 0 && got == &got);
	pid = vfork();
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	_exit(4);
}

/* What the tracer has seen. */
struct seen {
	int forks, vforks, clones, vfork_dones, execs, ends, births, exits;
	int calls, signals;
};

/* A stop; gives the signal to pass on. */
static int look(pid_t pid, int status, bool seized, struct seen *s)
{
	unsigned long msg = 0;
	int event = status >> 16, sig = WSTOPSIG(status);

	CHECK(ptrace(PTRACE_GETEVENTMSG, pid, 0, &msg) == 0);
	switch (event) {
	case PTRACE_EVENT_FORK:
		s->forks++;
		CHECK(msg > 0 && (pid_t)msg != pid);
		return 0;
	case PTRACE_EVENT_VFORK:
		s->vforks++;
		return 0;
	case PTRACE_EVENT_CLONE:
		s->clones++;
		return 0;
	case PTRACE_EVENT_VFORK_DONE:
		s->vfork_dones++;
		return 0;
	case PTRACE_EVENT_EXEC:
		s->execs++;
		CHECK((pid_t)msg == pid);
		return 0;
	case PTRACE_EVENT_EXIT:
		s->ends++;
		CHECK((msg & 0x7f) == 0);
		return 0;
	case EVENT_STOP:
		CHECK(seized && sig == SIGTRAP);
		s->births++;
		return 0;
	}
	if (sig == SIGSTOP && !seized) {
		s->births++;
		return 0;
	}
	if (sig == (SIGTRAP | 0x80)) {
		s->calls++;
		return 0;
	}
	s->signals++;
	CHECK(sig == SIGCHLD);
	return sig;
}

static struct seen follow(pid_t root, bool seized, long request)
{
	struct seen s = {0};
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int sig;

		if (!WIFSTOPPED(status)) {
			CHECK(WIFEXITED(status));
			CHECK(pid != root || WEXITSTATUS(status) == 4);
			s.exits++;
			continue;
		}
		sig = look(pid, status, seized, &s);
		CHECK(ptrace(request, pid, 0, sig) == 0);
	}
	CHECK(errno == ECHILD);
	return s;
}

static void check(const struct seen *s, bool calls)
{
	CHECK(s->forks == 1 && s->vforks == 1 && s->clones == 1);
	CHECK(s->vfork_dones == 1 && s->execs == 1);
	CHECK(s->births == 3 && s->ends == 4 && s->exits == 4);
	CHECK(s->signals == 2); /* SIGCHLD for two children */
	CHECK(calls ? s->calls > 50 : s->calls == 0);
}

static void old_style(long request)
{
	struct seen s;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
		raise(SIGSTOP);
		program();
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	CHECK(ptrace(PTRACE_SETOPTIONS, pid, 0, ALL) == 0);
	CHECK(ptrace(request, pid, 0, 0) == 0);
	s = follow(pid, false, request);
	check(&s, request == PTRACE_SYSCALL);
}

static void seized(long request)
{
	struct seen s;
	int go[2];
	pid_t pid;
	char byte = 'x';

	CHECK(pipe(go) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(read(go[0], &byte, 1) == 1);
		program();
	}
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, ALL) == 0);
	if (request == PTRACE_SYSCALL) {
		int status;

		CHECK(ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(status >> 16 == EVENT_STOP);
		CHECK(ptrace(request, pid, 0, 0) == 0);
	}
	CHECK(write(go[1], &byte, 1) == 1);
	s = follow(pid, true, request);
	check(&s, request == PTRACE_SYSCALL);
	close(go[0]);
	close(go[1]);
}

/* execve without options stops the old-style tracee by SIGTRAP. */
static void trap_at_exec(void)
{
	struct user_regs_struct g;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSTOPPED(status) && status >> 8 == SIGTRAP);
	CHECK(ptrace(PTRACE_GETREGS, pid, 0, &g) == 0 && g.rax == 0);
	CHECK(ptrace(PTRACE_KILL, pid, 0, 0) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int main(void)
{
	trap_at_exec();
	old_style(PTRACE_CONT);
	old_style(PTRACE_SYSCALL);
	seized(PTRACE_CONT);
	seized(PTRACE_SYSCALL);
	puts("ok");
	return 0;
}
