/*
 * What a system call must leave alone, asked many times at one place: all
 * registers but rax, rcx and r11, the flags, the red zone, a stack that is
 * not there; bad pointers are errors; signals are delivered in time.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x)                                                     \
	((x) ? (void)0                                               \
	     : (fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__,  \
			__LINE__, #x, errno), exit(1)))

struct regs {
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13,
		r14, r15, rsp, flags;
};

/* Load all registers from *g, make the call, store them there. */
void raw_call(struct regs *g);
extern const char raw_after[];
__asm__(
	"	.text\n"
	"	.p2align 5\n"
	"	.globl raw_call\n"
	"	.type raw_call, @function\n"
	"raw_call:\n"
	"	.cfi_startproc\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rdi, own(%rip)\n"
	"	mov %rsp, stack(%rip)\n"
	"	mov 0(%rdi), %rax; mov 8(%rdi), %rbx; mov 24(%rdi), %rdx\n"
	"	mov 32(%rdi), %rsi; mov 48(%rdi), %rbp; mov 56(%rdi), %r8\n"
	"	mov 64(%rdi), %r9; mov 72(%rdi), %r10; mov 88(%rdi), %r12\n"
	"	mov 96(%rdi), %r13; mov 104(%rdi), %r14; mov 112(%rdi), %r15\n"
	"	pushq 128(%rdi); popfq\n"
	"	mov 120(%rdi), %rsp; mov 40(%rdi), %rdi\n"
	"	syscall\n"
	"	.globl raw_after\n"
	"raw_after:\n"
	"	xchg %rdi, own(%rip)\n"
	"	mov %rsp, 120(%rdi); mov stack(%rip), %rsp\n"
	"	pushfq; popq 128(%rdi)\n"
	"	cld\n"
	"	mov %rax, 0(%rdi); mov %rbx, 8(%rdi); mov %rcx, 16(%rdi)\n"
	"	mov %rdx, 24(%rdi); mov %rsi, 32(%rdi); mov %rbp, 48(%rdi)\n"
	"	mov %r8, 56(%rdi); mov %r9, 64(%rdi); mov %r10, 72(%rdi)\n"
	"	mov %r11, 80(%rdi); mov %r12, 88(%rdi); mov %r13, 96(%rdi)\n"
	"	mov %r14, 104(%rdi); mov %r15, 112(%rdi)\n"
	"	mov own(%rip), %rax; mov %rax, 40(%rdi)\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size raw_call, .-raw_call\n"
	"	.p2align 6\n" /* room between the functions */
	"	.globl raw_next\n"
	"	.type raw_next, @function\n"
	"raw_next:\n"
	"	.cfi_startproc\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.bss\n"
	"own:	.quad 0\n"
	"stack:	.quad 0\n"
	"	.text\n");

static struct regs pattern(uint64_t nr, uint64_t n)
{
	struct regs g = {nr, 11 + n, 0, 33, 44, 55, 66, 77, 88, 99, 0, 1212,
			 1313, 1414, 1515, 0x18, 0x202};

	/* Carry, or the direction flag, or neither. */
	if (n % 3 == 1)
		g.flags |= 1;
	else if (n % 3 == 2)
		g.flags |= 0x400;
	return g;
}

static void registers(void)
{
	uint64_t parent = (uint64_t)getppid();

	for (uint64_t n = 0; n < 200; n++) {
		struct regs want = pattern(SYS_getppid, n), got = want;

		raw_call(&got);
		CHECK(got.rax == parent);
		CHECK(got.rcx == (uint64_t)(uintptr_t)raw_after);
		CHECK(got.r11 == got.flags && got.flags == want.flags);
		want.rax = got.rax;
		want.rcx = got.rcx;
		want.r11 = got.r11;
		CHECK(memcmp(&want, &got, sizeof got) == 0);
	}
}

static void bad_pointers(void)
{
	int fd = open("/dev/zero", O_RDONLY), out = open("/dev/null", O_WRONLY);
	char *none = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	const char *volatile null = NULL;
	char c = 'x';

	CHECK(fd >= 0 && out >= 0 && none != MAP_FAILED);
	for (int i = 0; i < 50; i++) {
		CHECK(read(fd, none, 10) < 0 && errno == EFAULT);
		CHECK(read(fd, &c, 1) == 1 && c == 0);
		CHECK(syscall(SYS_write, out, &c, 1) == 1);
		CHECK(open(none, O_RDONLY) < 0 && errno == EFAULT);
		CHECK(access(null, R_OK) < 0 && errno == EFAULT);
		CHECK(access("/", R_OK) == 0);
		CHECK(read(-1, &c, 1) < 0 && errno == EBADF);
	}
	CHECK(close(fd) == 0 && close(out) == 0 && munmap(none, 8192) == 0);
}

static volatile sig_atomic_t alarms, pipes;

static void on_signal(int sig)
{
	int saved = errno;

	(void)getppid();
	if (sig == SIGALRM)
		alarms++;
	else
		pipes++;
	errno = saved;
}

static void set_handler(int sig, int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	CHECK(sigaction(sig, &sa, NULL) == 0);
}

static void set_timer(long us)
{
	struct itimerval it = {{0, us}, {0, us}};

	CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
}

/* A handler runs while calls are made one after the other. */
static void interrupted_loop(void)
{
	set_handler(SIGALRM, SA_RESTART);
	set_timer(3000);
	while (alarms < 20)
		CHECK(getppid() > 0);
	set_timer(0);
}

/* A read that blocks ends with EINTR, or is restarted. */
static void interrupted_read(void)
{
	int fd[2];
	char c;

	CHECK(pipe(fd) == 0);
	CHECK(write(fd[1], "ab", 2) == 2);
	CHECK(read(fd[0], &c, 1) == 1 && read(fd[0], &c, 1) == 1);
	set_handler(SIGALRM, 0);
	alarms = 0;
	for (int i = 0; i < 5; i++) {
		set_timer(5000);
		CHECK(read(fd[0], &c, 1) < 0 && errno == EINTR && alarms > 0);
	}
	set_timer(0);
	set_handler(SIGALRM, SA_RESTART);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (child == 0) {
			usleep(20000);
			_exit(write(fd[1], "c", 1) != 1);
		}
		set_timer(3000);
		CHECK(read(fd[0], &c, 1) == 1 && c == 'c');
		set_timer(0);
		CHECK(waitpid(child, NULL, 0) == child);
	}
	/* The signal of a write that fails comes before it returns. */
	set_handler(SIGPIPE, SA_RESTART);
	CHECK(close(fd[0]) == 0);
	for (int i = 1; i <= 20; i++)
		CHECK(write(fd[1], "x", 1) < 0 && errno == EPIPE && pipes == i);
	CHECK(close(fd[1]) == 0);
}

/* Descriptors change their meaning. */
static void descriptors(void)
{
	char name[] = "/tmp/inside.XXXXXX";
	int fd = mkstemp(name), null = open("/dev/null", O_WRONLY);
	int saved = dup(1);
	char text[32];

	CHECK(fd >= 0 && null >= 0 && saved >= 0 && unlink(name) == 0);
	for (int i = 0; i < 20; i++) {
		int n = snprintf(text, sizeof text, "line %d\n", i);
		int to = i % 3 == 0 ? saved : i % 3 == 1 ? null : fd;

		CHECK(dup2(to, 1) == 1);
		CHECK(write(1, text, (size_t)n) == n);
		CHECK(write(1, text, (size_t)n) == n);
	}
	CHECK(dup2(saved, 1) == 1 && lseek(fd, 0, SEEK_END) > 0);
	CHECK(close(fd) == 0 && close(null) == 0 && close(saved) == 0);
}

static void *count(void *arg)
{
	for (int i = 0; i < 300; i++)
		*(long *)arg += getppid() > 0;
	return NULL;
}

static void threads(void)
{
	long n[3] = {0};
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&t[i], NULL, count, &n[i]) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(t[i], NULL) == 0 && n[i] == 300);
}

int main(void)
{
	registers();
	bad_pointers();
	interrupted_loop();
	interrupted_read();
	descriptors();
	threads();
	registers();
	puts("ok");
	return 0;
}
