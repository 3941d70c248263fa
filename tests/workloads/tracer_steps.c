/*
 * A tracer of its child: system calls seen and changed, memory and registers
 * written, breakpoints, single steps, signals suppressed and replaced.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "check.h"

static volatile long shared_word = 1;
static volatile int handled;
static pid_t child;

static void on_signal(int sig)
{
	handled = handled * 100 + sig;
}

__attribute__((noinline)) static long triple(long x)
{
	__asm__ volatile("" : "+r"(x));
	return 3 * x;
}

/* Ten instructions of which nobody inlines anything. */
__attribute__((noinline, naked)) static long ten(void)
{
	__asm__("mov $0, %eax\n\t"
		"inc %eax\n\tinc %eax\n\tinc %eax\n\tinc %eax\n\t"
		"inc %eax\n\tinc %eax\n\tinc %eax\n\tinc %eax\n\t"
		"ret");
}

static void be_traced(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	char byte = 'x';

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
	CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM);
	raise(SIGSTOP);
	/* The tracer has written here. */
	CHECK(shared_word == 42);
	/* It makes this return 12345, and the kernel never sees it. */
	CHECK(syscall(SYS_getppid) == 12345);
	/* It makes this another call. */
	CHECK(syscall(SYS_getuid) == getpid());
	/* It has a breakpoint there, and changes the argument. */
	CHECK(triple(5) == 300);
	CHECK(triple(7) == 21);
	raise(SIGUSR1); /* suppressed */
	CHECK(handled == 0);
	raise(SIGUSR1); /* becomes SIGUSR2 */
	CHECK(handled == SIGUSR2);
	raise(SIGUSR1); /* passed on */
	CHECK(handled == SIGUSR2 * 100 + SIGUSR1);
	__asm__ volatile("int3");
	CHECK(ten() == 8);
	CHECK(write(-1, &byte, 1) == -1 && errno == EBADF);
	_exit(7);
}

static int next_stop(long request, int sig)
{
	int status;

	CHECK(ptrace(request, child, 0, sig) == 0);
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static bool stopped_by(int status, int sig)
{
	return WIFSTOPPED(status) && WSTOPSIG(status) == sig;
}

static struct user_regs_struct regs_of(void)
{
	struct user_regs_struct g;

	CHECK(ptrace(PTRACE_GETREGS, child, 0, &g) == 0);
	return g;
}

/* To the entry of the call, past the exits and entries of others. */
static struct user_regs_struct reach_entry(long nr)
{
	struct user_regs_struct g;

	do {
		CHECK(stopped_by(next_stop(PTRACE_SYSCALL, 0), SIGTRAP | 0x80));
		g = regs_of();
	} while ((long)g.orig_rax != nr || (long)g.rax != -ENOSYS);
	return g;
}

static void change_calls(void)
{
	struct user_regs_struct g = reach_entry(SYS_getppid);

	g.orig_rax = (unsigned long)-1;
	CHECK(ptrace(PTRACE_SETREGS, child, 0, &g) == 0);
	CHECK(stopped_by(next_stop(PTRACE_SYSCALL, 0), SIGTRAP | 0x80));
	g = regs_of();
	g.rax = 12345;
	CHECK(ptrace(PTRACE_SETREGS, child, 0, &g) == 0);

	reach_entry(SYS_getuid);
	CHECK(ptrace(PTRACE_POKEUSER, child,
		     offsetof(struct user_regs_struct, orig_rax),
		     SYS_getpid) == 0);
	CHECK(stopped_by(next_stop(PTRACE_SYSCALL, 0), SIGTRAP | 0x80));
	CHECK((pid_t)regs_of().rax == child);
}

static void use_breakpoint(void)
{
	struct user_regs_struct g;
	siginfo_t si;
	long word, broken;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, child, triple, 0);
	CHECK(errno == 0);
	broken = (word & ~0xffl) | 0xcc;
	CHECK(ptrace(PTRACE_POKETEXT, child, triple, broken) == 0);
	CHECK(ptrace(PTRACE_PEEKTEXT, child, triple, 0) == broken);
	CHECK(stopped_by(next_stop(PTRACE_CONT, 0), SIGTRAP));
	CHECK(ptrace(PTRACE_GETSIGINFO, child, 0, &si) == 0);
	CHECK(si.si_signo == SIGTRAP && si.si_code == SI_KERNEL);
	g = regs_of();
	CHECK(g.rip == (unsigned long)triple + 1);
	g.rip--;
	g.rdi = 100;
	CHECK(ptrace(PTRACE_SETREGS, child, 0, &g) == 0);
	CHECK(ptrace(PTRACE_POKETEXT, child, triple, word) == 0);
}

static void use_signals(void)
{
	siginfo_t si;

	CHECK(stopped_by(next_stop(PTRACE_CONT, 0), SIGUSR1));
	CHECK(ptrace(PTRACE_GETSIGINFO, child, 0, &si) == 0);
	CHECK(si.si_signo == SIGUSR1 && si.si_pid == child);
	CHECK(stopped_by(next_stop(PTRACE_CONT, 0), SIGUSR1));
	CHECK(stopped_by(next_stop(PTRACE_CONT, SIGUSR2), SIGUSR1));
	CHECK(stopped_by(next_stop(PTRACE_CONT, SIGUSR1), SIGTRAP)); /* int3 */
}

/* Steps to the function and through it. */
static void use_steps(void)
{
	unsigned long start = (unsigned long)ten;
	int inside = 0, steps = 0;

	do {
		unsigned long rip = regs_of().rip;

		inside += rip >= start && rip < start + 64;
		CHECK(stopped_by(next_stop(PTRACE_SINGLESTEP, 0), SIGTRAP));
		CHECK(++steps < 1000);
	} while (!inside || (regs_of().rip >= start &&
			     regs_of().rip < start + 64));
	CHECK(inside == 10);
	CHECK(regs_of().rax == 8);
}

static void look_at_registers(void)
{
	struct user_regs_struct g = regs_of(), h;
	struct user_fpregs_struct fp;
	char xstate[16384];
	struct iovec iov = {&h, sizeof h};
	unsigned long mask;

	CHECK(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &iov) == 0);
	CHECK(iov.iov_len == sizeof h && memcmp(&g, &h, sizeof g) == 0);
	CHECK(ptrace(PTRACE_PEEKUSER, child,
		     offsetof(struct user_regs_struct, rsp), 0) == (long)g.rsp);
	CHECK(ptrace(PTRACE_GETFPREGS, child, 0, &fp) == 0);
	CHECK(ptrace(PTRACE_SETFPREGS, child, 0, &fp) == 0);
	iov = (struct iovec){xstate, sizeof xstate};
	CHECK(ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &iov) == 0);
	CHECK(iov.iov_len >= 512 && iov.iov_len < sizeof xstate);
	CHECK(ptrace(PTRACE_SETREGSET, child, NT_X86_XSTATE, &iov) == 0);
	CHECK(ptrace(PTRACE_GETSIGMASK, child, sizeof mask, &mask) == 0);
	CHECK(mask == 0);
}

/* The entry and exit of write(-1), as GET_SYSCALL_INFO tells of them. */
static void look_at_call(void)
{
	struct __ptrace_syscall_info info;

	reach_entry(SYS_write);
	CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0);
	CHECK(info.op == PTRACE_SYSCALL_INFO_ENTRY);
	CHECK(info.entry.nr == SYS_write && (int)info.entry.args[0] == -1);
	CHECK(stopped_by(next_stop(PTRACE_SYSCALL, 0), SIGTRAP | 0x80));
	CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0);
	CHECK(info.op == PTRACE_SYSCALL_INFO_EXIT);
	CHECK(info.exit.is_error && info.exit.rval == -EBADF);
}

int main(void)
{
	int status;

	child = fork();
	if (child == 0)
		be_traced();
	CHECK(ptrace(PTRACE_CONT, getpid(), 0, 0) == -1 && errno == ESRCH);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(stopped_by(status, SIGSTOP));
	CHECK(ptrace(PTRACE_ATTACH, child, 0, 0) == -1 && errno == EPERM);
	CHECK(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD) == 0);
	CHECK(ptrace(PTRACE_POKEDATA, child, &shared_word, 42) == 0);
	CHECK(ptrace(PTRACE_PEEKDATA, child, &shared_word, 0) == 42);
	CHECK(ptrace(PTRACE_POKEDATA, child, 8, 42) == -1 && errno == EIO);
	CHECK(shared_word == 1);
	change_calls();
	use_breakpoint();
	use_signals();
	use_steps();
	look_at_registers();
	look_at_call();
	status = next_stop(PTRACE_CONT, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(waitpid(-1, &status, __WALL) == -1 && errno == ECHILD);
	puts("ok");
	return 0;
}
