/*
 * A survey of the kernel: every system call, ioctl command, fcntl command,
 * prctl option and socket option that the tables name (calls.awk), with good,
 * odd and bad arguments.  It verifies nothing itself: recorded with an audit,
 * it shows where the kernel writes and the tables do not say so.
 *
 * usage: survey VARIANTS SEED [NAME], in namespaces of its own and an empty
 * directory, as root: it makes calls that would do harm elsewhere, and leaves
 * out those that would do so in any case.  Each call has a process of its own,
 * so that what it does to that process matters to no other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum type {
	INT, UINT, LONG, SIZE, MODE, SIGNAL, PID, FD, DIRFD, PATH, FLAGS,
	MEMORY, IOVEC, MESSAGE
};

struct arg {
	enum type type;
	unsigned size; /* of memory, 0: not known */
	const uint32_t *set;
	unsigned n;
};

struct call {
	int nr;
	const char *name;
	int nargs;
	struct arg arg[6];
};

struct command {
	const char *name;
	uint32_t number;
};

#include "calls.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define PAGE 4096u
#define PAGES 12u
#define CALL_US 5000 /* a call that blocks is interrupted */
#define PROCESS_S 5  /* what blocks the interruption, too, is killed */

static char *memory; /* PAGES to write, one to read, one that is not there */
static int fds[32];
static unsigned nfds;
static int ids[3]; /* of System V objects */
static uint64_t state = 88172645463325252;

/* Calls that end, stop or lock the machine, others' processes or this one, or
 * that wait for what never comes. */
static const char *const left_out[] = {
	"reboot", "kexec_load", "kexec_file_load", "kill", "tkill", "tgkill",
	"rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
	"process_mrelease", "vhangup", "swapon", "swapoff", "acct",
	"settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
	"init_module", "finit_module", "delete_module", "syslog", "sync",
	"mount", "umount2", "pivot_root", "move_mount", "mount_setattr",
	"open_tree_attr", "unshare", "setns", "ptrace", "seccomp",
	"setrlimit", "fanotify_mark", "restart_syscall", "quotactl",
	"quotactl_fd", "mlockall",
	/* with tables of their own below */
	"ioctl", "fcntl", "prctl", "getsockopt",
};

static const char *const ioctls_left_out[] = {
	"FIFREEZE", "FITHAW", "FITRIM", "TIOCSTI", "TIOCCONS", "TIOCSETD",
	"TIOCVHANGUP", "FS_IOC_SETFLAGS", "FS_IOC_FSSETXATTR",
	"FS_IOC_SETFSLABEL", "FIOSETOWN", "SIOCSPGRP",
};

static int is_in(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return 1;
	return 0;
}

static uint64_t any(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

/* Somewhere to write with room for n bytes, now and then without, and with
 * contents of some kind. */
static char *room(unsigned n)
{
	unsigned kind = (unsigned)any(12);
	char *p = memory + any(PAGES * PAGE - 2 * PAGE) / 8 * 8;

	if (n == 0)
		n = 256;
	if (kind == 0)
		return NULL;
	if (kind == 1)
		return (char *)16;
	if (kind == 2)
		p = memory + PAGES * PAGE - n / 2; /* half of it read-only */
	else if (kind == 3)
		return memory + PAGES * PAGE + 8;
	else if (kind == 4)
		p = memory + PAGES * PAGE + PAGE - 4;
	if (kind == 2 || kind == 4)
		return p;
	memset(p, 0, n);
	for (unsigned i = 0; kind > 6 && i + 4 <= n; i += 4)
		*(uint32_t *)(p + i) = (uint32_t)(kind < 10 ? any(5)
							    : any(1u << 31));
	return p;
}

static const char *some_path(void)
{
	static const char *const names[] = {
		"file", "directory", ".", "missing", "", "link", "directory/x",
		"/proc/self/status",
	};
	unsigned i = (unsigned)any(COUNT(names) + 2);

	if (i >= COUNT(names))
		return i == COUNT(names) ? NULL : (char *)16;
	return names[i];
}

static uint64_t some_flags(const struct arg *a)
{
	uint64_t v = a->set[any(a->n)];

	if (any(6) == 0)
		return any(4) ? 0 : any(1u << 31);
	return any(3) ? v : v | a->set[any(a->n)];
}

static void fill_vector(struct iovec *v, unsigned n)
{
	static const unsigned lengths[] = {0, 1, 16, 100, 5000};

	for (unsigned i = 0; i < n; i++)
		v[i] = (struct iovec){room(0), lengths[any(5)]};
}

static uint64_t some_vector(void)
{
	struct iovec *v = (struct iovec *)(memory + any(4) * 512);

	fill_vector(v, 8);
	return any(8) ? (uintptr_t)v : (uintptr_t)room(64);
}

static uint64_t some_message(void)
{
	struct msghdr *m = (struct msghdr *)(memory + any(4) * 512);

	memset(m, 0, sizeof *m);
	fill_vector((struct iovec *)(memory + 2048), 4);
	m->msg_iov = (struct iovec *)(memory + 2048);
	m->msg_iovlen = any(5);
	m->msg_name = any(2) ? room(128) : NULL;
	m->msg_namelen = (socklen_t)(any(2) ? 128 : any(40));
	m->msg_control = any(2) ? room(200) : NULL;
	m->msg_controllen = any(3) ? 200 : any(40);
	return any(8) ? (uintptr_t)m : (uintptr_t)room(56);
}

static uint64_t some_number(enum type type)
{
	static const uint64_t few[] = {0, 1, 2, 3, 4, 8, 16, 24, 64, 144, 200};
	unsigned kind = (unsigned)any(10);

	if (type == INT && kind < 2)
		return (uint64_t)ids[any(3)];
	if (kind < 8)
		return few[any(COUNT(few))];
	if (kind == 8)
		return any(2) ? 4096 : 10000;
	return any(2) ? (uint64_t)-1 : any(1u << 20);
}

static uint64_t some(const struct arg *a)
{
	switch (a->type) {
	case FD:
		return any(12) ? (uint64_t)fds[any(nfds)] : (uint64_t)-1;
	case DIRFD:
		return any(2) ? (uint64_t)AT_FDCWD : (uint64_t)fds[any(nfds)];
	case PATH:
		return (uintptr_t)some_path();
	case FLAGS:
		return some_flags(a);
	case MEMORY:
		return (uintptr_t)room(a->size);
	case IOVEC:
		return some_vector();
	case MESSAGE:
		return some_message();
	case MODE:
		return any(2) ? 0755 : S_IFREG | 0644;
	case SIGNAL:
		return 1 + any(64);
	case PID:
		return any(3) ? 0 : (uint64_t)getpid();
	default:
		return some_number(a->type);
	}
}

/* ---- what there is to call with ---- */

static void keep(int fd)
{
	if (fd >= 0)
		fds[nfds++] = fd;
}

static void connected(int type)
{
	int two[2];

	if (socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, two) < 0)
		return;
	if (write(two[1], "some bytes", 10) != 10)
		_exit(3);
	keep(two[0]);
	keep(two[1]);
}

/* A TCP connection over the loopback device, which may be down. */
static void internet(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (bind(l, (void *)&a, sizeof a) == 0 && listen(l, 5) == 0 &&
	    getsockname(l, (void *)&a, &n) == 0)
		(void)!connect(c, (void *)&a, sizeof a);
	keep(l);
	keep(c);
	keep(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	keep(socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	keep(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0));
	keep(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, 0));
	keep(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0));
}

/* Of a devpts of its own: what is done to its files is done to no others. */
static void terminal(void)
{
	int fd = open("pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK), zero = 0;

	if (fd < 0 || ioctl(fd, TIOCSPTLCK, &zero) < 0)
		return;
	keep(fd);
	keep(open("pts/0", O_RDWR | O_NOCTTY | O_NONBLOCK));
}

static void make_things(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	sigset_t set;
	int p[2], fd;

	memory = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED ||
	    mprotect(memory + PAGES * PAGE, PAGE, PROT_READ) < 0)
		_exit(3);
	fd = open("file", O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, 10000) < 0 || pwrite(fd, "text", 4, 0) < 4)
		_exit(3);
	keep(fd);
	(void)!mkdir("directory", 0755);
	(void)!symlink("file", "link");
	keep(open("directory", O_RDONLY | O_DIRECTORY));
	if (pipe2(p, O_NONBLOCK) < 0 || write(p[1], "bytes", 5) != 5)
		_exit(3);
	keep(p[0]);
	keep(p[1]);
	connected(SOCK_STREAM);
	connected(SOCK_DGRAM);
	internet();
	terminal();
	keep(eventfd(3, EFD_NONBLOCK));
	keep(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	keep(signalfd(-1, &set, SFD_NONBLOCK));
	keep(inotify_init1(IN_NONBLOCK));
	keep(memfd_create("memory", MFD_ALLOW_SEALING));
	keep(mq_open("/survey", O_RDWR | O_CREAT | O_NONBLOCK, 0600, NULL));
	keep(open("/proc/self/ns/net", O_RDONLY));
	fd = epoll_create1(0);
	epoll_ctl(fd, EPOLL_CTL_ADD, fds[2], &e);
	keep(fd);
	ids[0] = shmget(IPC_PRIVATE, 8192, 0600);
	ids[1] = semget(IPC_PRIVATE, 3, 0600);
	ids[2] = msgget(IPC_PRIVATE, 0600);
	for (long i = 1; i < 4; i++) {
		*(long *)memory = i;
		(void)!msgsnd(ids[2], memory, 100, IPC_NOWAIT);
	}
}

/* ---- the processes ---- */

static void on_alarm(int sig)
{
	(void)sig;
}

static void invoke(int nr, const uint64_t a[6])
{
	syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Run in a process of its own; what blocks there is interrupted. */
static void apart(void (*run)(const void *what, unsigned variants),
		  const void *what, unsigned variants)
{
	const struct itimerval often = {{0, CALL_US}, {0, CALL_US}};
	const struct timespec most = {.tv_sec = PROCESS_S};
	struct sigaction sa = {.sa_handler = on_alarm};
	sigset_t child;
	pid_t pid;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		sigaction(SIGALRM, &sa, NULL);
		signal(SIGIO, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
		setitimer(ITIMER_REAL, &often, NULL);
		run(what, variants);
		_exit(0);
	}
	if (sigtimedwait(&child, NULL, &most) < 0)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void call_it(const void *what, unsigned variants)
{
	const struct call *c = what;

	for (unsigned v = 0; v < variants; v++) {
		uint64_t a[6] = {0};

		for (int i = 0; i < c->nargs; i++)
			a[i] = some(&c->arg[i]);
		if (c->nr == SYS_prlimit64)
			a[2] = 0; /* too little of anything would end it */
		if (c->nr == SYS_close || c->nr == SYS_close_range)
			a[0] = 100 + any(100);
		if (c->nr == SYS_dup2 || c->nr == SYS_dup3)
			a[1] = 100 + any(100);
		invoke(c->nr, a);
	}
}

/* A command comes with every descriptor: a fourth of the variants will do, by
 * chance where that is no whole number. */
static unsigned quarter(unsigned variants)
{
	return variants / 4 + (any(4) < variants % 4);
}

static void ioctl_it(const void *what, unsigned variants)
{
	const struct command *c = what;

	for (unsigned i = 0; i < nfds; i++)
		for (unsigned v = quarter(variants); v; v--) {
			uint64_t a[6] = {(uint64_t)fds[i], c->number,
					 any(10) ? (uintptr_t)room(0) : any(5)};

			invoke(SYS_ioctl, a);
		}
}

static void fcntl_it(const void *what, unsigned variants)
{
	const uint32_t *command = what;

	if (*command == F_SETOWN || *command == F_SETSIG ||
	    *command == F_SETFL)
		return;
	for (unsigned i = 0; i < nfds; i++)
		for (unsigned v = quarter(variants); v; v--) {
			uint64_t a[6] = {(uint64_t)fds[i], *command,
					 any(2) ? (uintptr_t)room(32) : any(9)};

			invoke(SYS_fcntl, a);
		}
}

/* Options that end the process, or what observes it. */
static int is_fatal_option(uint32_t option)
{
	return option == 22 /* PR_SET_SECCOMP */ || option == 26 /* _TSC */ ||
	       option == 35 /* _MM */ || option == 4 /* _DUMPABLE */ ||
	       option == 59 /* _SYSCALL_USER_DISPATCH */;
}

static void prctl_it(const void *what, unsigned variants)
{
	const uint32_t *option = what;

	if (is_fatal_option(*option))
		return;
	for (unsigned v = 0; v < 2 * variants; v++) {
		uint64_t a[6] = {*option, any(2) ? (uintptr_t)room(64) : any(4),
				 any(3) ? 0 : (uintptr_t)room(16), any(3) ? 0 : 4,
				 0};

		invoke(SYS_prctl, a);
	}
}

static void sockopt_it(const void *what, unsigned variants)
{
	static const struct {
		int level, options;
	} levels[] = {{1, 84}, {0, 52}, {6, 46}, {41, 82}, {17, 106},
		      {270, 13}, {263, 24}, {255, 4}};
	static const uint32_t lengths[] = {0, 1, 2, 4, 8, 12, 24, 120, 300};
	uint32_t *length = (uint32_t *)memory;
	int fd = *(const int *)what;

	for (size_t l = 0; l < COUNT(levels); l++)
		for (int o = 0; o < levels[l].options; o++)
			for (unsigned v = quarter(variants); v; v--) {
				uint64_t a[6] = {(uint64_t)fd,
						 (uint64_t)levels[l].level,
						 (uint64_t)o,
						 (uintptr_t)room(400),
						 (uintptr_t)length};

				*length = lengths[any(COUNT(lengths))];
				invoke(SYS_getsockopt, a);
			}
}

static int is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Is it the one that was asked for, if one was? */
static int is(const char *name, const char *only)
{
	return !only || strcmp(name, only) == 0;
}

int main(int argc, char **argv)
{
	unsigned variants = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
	const char *only = argc > 3 ? argv[3] : NULL;
	sigset_t child;

	state += argc > 2 ? (uint64_t)atoi(argv[2]) : 0;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	make_things();
	for (size_t i = 0; i < COUNT(calls); i++)
		if (!is_in(calls[i].name, left_out, COUNT(left_out)) &&
		    is(calls[i].name, only))
			apart(call_it, &calls[i], variants);
	for (size_t i = 0; is("ioctl", only) && i < COUNT(ioctls); i++)
		if (!is_in(ioctls[i].name, ioctls_left_out,
			   COUNT(ioctls_left_out)))
			apart(ioctl_it, &ioctls[i], variants);
	for (size_t i = 0; is("fcntl", only) && i < COUNT(set_fcntl); i++)
		apart(fcntl_it, &set_fcntl[i], variants);
	for (size_t i = 0; is("prctl", only) && i < COUNT(set_prctl); i++)
		apart(prctl_it, &set_prctl[i], variants);
	for (unsigned i = 0; is("getsockopt", only) && i < nfds; i++)
		if (is_socket(fds[i]))
			apart(sockopt_it, &fds[i], variants);
	shmctl(ids[0], IPC_RMID, NULL);
	semctl(ids[1], 0, IPC_RMID);
	msgctl(ids[2], IPC_RMID, NULL);
	puts("ok");
	return 0;
}
