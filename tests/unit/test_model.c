/*
 * The syscall tables against the system's headers, the memory effects of
 * calls over a made-up memory, and the same against the running kernel.
 */
#include <asm/ioctls.h>
#include <asm/ldt.h>
#include <asm/prctl.h>
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/cdrom.h>
#include <linux/close_range.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/hdreg.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <linux/ioprio.h>
#include <linux/kcmp.h>
#include <linux/kd.h>
#include <linux/kvm.h>
#include <linux/loop.h>
#include <linux/membarrier.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/random.h>
#include <linux/route.h>
#include <linux/rtc.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/serial.h>
#include <linux/sockios.h>
#include <linux/vt.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "libtrace/base/buf.h"
#include "libtrace/model/irregular.h"
#include "libtrace/model/tables.h"
#include "tests/unit/check.h"

#define TR_MODEL_CHECK
#include "libtrace/model/tables.c"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* The tables. */

/* The C library's value of O_LARGEFILE is 0 here; the kernel's is not. */
static bool known_to_differ(const char *name)
{
	return strcmp(name, "O_LARGEFILE") == 0;
}

static void values_agree_with_headers(void)
{
	CHECK(COUNT(tr_value_checks) > 900);
	for (size_t i = 0; i < COUNT(tr_value_checks); i++) {
		const struct tr_model_check *c = &tr_value_checks[i];

		if (c->header == c->table || known_to_differ(c->name))
			continue;
		printf("# %s is %#x, not %#x\n", c->name, c->header, c->table);
		check_failed_now = 1;
	}
}

static void numbers_agree_with_headers(void)
{
	CHECK(COUNT(tr_number_checks) > 360);
	for (size_t i = 0; i < COUNT(tr_number_checks); i++) {
		const struct tr_model_check *c = &tr_number_checks[i];

		if (c->header == c->table)
			continue;
		printf("# %s is %u, not %u\n", c->name, c->header, c->table);
		check_failed_now = 1;
	}
}

/* Every number the header defines has a row of that name. */
static void every_number_has_a_row(void)
{
	static const char *const paths[] = {
		"/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
		"/usr/include/asm/unistd_64.h",
	};
	FILE *f = NULL;
	char line[256], name[128];
	unsigned nr, seen = 0;

	for (size_t i = 0; i < COUNT(paths) && !f; i++)
		f = fopen(paths[i], "r");
	CHECK(f);
	while (f && fgets(line, sizeof line, f)) {
		const struct tr_sys *sys;

		if (sscanf(line, "#define __NR_%127s %u", name, &nr) != 2)
			continue;
		seen++;
		sys = tr_sys_lookup(nr);
		if (sys && strcmp(sys->name, name) == 0 && sys->nr == (int)nr)
			continue;
		printf("# %u %s has no row\n", nr, name);
		check_failed_now = 1;
	}
	if (f)
		fclose(f);
	CHECK(seen > 350);
}

static void lookup_finds_what_is_there(void)
{
	CHECK(!tr_sys_lookup(340));
	CHECK(!tr_sys_lookup(tr_sys_count()));
	CHECK(!tr_sys_lookup(~(uint64_t)0));
	CHECK(tr_sys_lookup(469) && !strcmp(tr_sys_lookup(469)->name,
					    "file_setattr"));
	CHECK(tr_sys_by_name("openat") == tr_sys_lookup(SYS_openat));
	CHECK(!tr_sys_by_name("open_at"));
	CHECK(tr_sys_by_name("clone3")->class == TR_SYS_DENY);
	CHECK(tr_sys_by_name("clone3")->deny_errno == ENOSYS);
	CHECK(tr_sys_by_name("ptrace")->class == TR_SYS_PLAIN);
	CHECK(!strcmp(tr_errno_name(ENOENT), "ENOENT"));
	CHECK(!tr_errno_name(0) && !tr_errno_name(4000));
	CHECK(!strcmp(tr_signal_name(SIGSEGV), "SIGSEGV"));
	CHECK(!tr_signal_name(0) && !tr_signal_name(65));
}

static void every_computed_size_has_code(void)
{
	for (uint64_t nr = 0; nr < tr_sys_count(); nr++) {
		const struct tr_sys *sys = tr_sys_lookup(nr);

		for (unsigned i = 0; sys && i < sys->nargs; i++) {
			if (sys->arg[i].type != TR_ARG_BUF ||
			    sys->arg[i].size.kind != TR_SIZE_CODE ||
			    tr_irregular_has(nr))
				continue;
			printf("# %s has no handler\n", sys->name);
			check_failed_now = 1;
		}
	}
}

static void structures_have_the_kernels_sizes(void)
{
	static const struct {
		const char *name;
		size_t size;
	} real[] = {
#define SIZE(name) {#name, sizeof(struct name)}
		SIZE(stat), SIZE(statx), SIZE(statfs), SIZE(timespec),
		SIZE(timeval), SIZE(timezone), SIZE(itimerval),
		SIZE(itimerspec), SIZE(timex), SIZE(tms), SIZE(utimbuf),
		SIZE(rusage), SIZE(rlimit), SIZE(sysinfo), SIZE(utsname),
		SIZE(pollfd), SIZE(epoll_event), SIZE(iovec),
		SIZE(sched_param), SIZE(robust_list_head), SIZE(flock),
		SIZE(f_owner_ex), SIZE(sembuf), SIZE(semid_ds), SIZE(seminfo),
		SIZE(msqid_ds), SIZE(msginfo), SIZE(shmid_ds),
		SIZE(shm_info), SIZE(mq_attr), SIZE(open_how),
		SIZE(futex_waitv), SIZE(msghdr), SIZE(mmsghdr), SIZE(ucred),
		SIZE(user_desc), SIZE(file_handle), SIZE(sigevent),
		SIZE(mount_attr),
		SIZE(winsize), SIZE(termio), SIZE(termios), SIZE(termios2),
		SIZE(serial_struct), SIZE(vt_mode), SIZE(vt_stat),
		SIZE(file_clone_range), SIZE(fstrim_range), SIZE(fsxattr),
		SIZE(loop_info64), SIZE(loop_config), SIZE(rtentry),
		SIZE(ifreq), SIZE(arpreq), SIZE(rtc_time), SIZE(rtc_wkalrm),
#undef SIZE
		{"siginfo", sizeof(siginfo_t)},
		{"stack_t", sizeof(stack_t)},
		{"serial_icounter", sizeof(struct serial_icounter_struct)},
	};
	size_t found = 0;

	for (size_t i = 0; i < tr_struct_sizes_n; i++) {
		const struct tr_struct_size *s = &tr_struct_sizes[i];

		for (size_t k = 0; k < COUNT(real); k++) {
			if (strcmp(real[k].name, s->name) != 0)
				continue;
			found++;
			if (real[k].size == s->size)
				continue;
			printf("# struct %s has %zu bytes, not %zu\n",
			       s->name, real[k].size, s->size);
			check_failed_now = 1;
		}
	}
	CHECK(found == COUNT(real));
}

/*
 * Effects over a made-up memory of three pages, of which the last is not
 * there.
 */

#define BASE 0x10000u
#define MAPPED 8192u

static uint8_t memory[MAPPED];

static bool fake_read(void *ctx, uint64_t addr, void *buf, size_t n)
{
	(void)ctx;
	if (addr < BASE || addr - BASE > MAPPED || n > MAPPED - (addr - BASE))
		return false;
	memcpy(buf, memory + (addr - BASE), n);
	return true;
}

static struct tr_call call;
static struct tr_ranges in, out;
static bool known;

static void put32(uint64_t addr, uint32_t v)
{
	tr_put_le32(memory + (addr - BASE), v);
}

static void put64(uint64_t addr, uint64_t v)
{
	tr_put_le64(memory + (addr - BASE), v);
}

static void put_string(uint64_t addr, const char *s)
{
	memcpy(memory + (addr - BASE), s, strlen(s) + 1);
}

static void enter(uint64_t nr, const uint64_t args[6])
{
	tr_ranges_release(&in);
	call = (struct tr_call){.nr = nr, .read = fake_read};
	memcpy(call.args, args, sizeof call.args);
	tr_call_enter(&call, &in);
}

static void leave(int64_t result)
{
	tr_ranges_release(&out);
	call.result = result;
	known = tr_call_exit(&call, &out);
}

#define ENTER(nr, ...) enter(nr, (const uint64_t[6]){__VA_ARGS__})
#define RUN_CALL(result, nr, ...) (ENTER(nr, __VA_ARGS__), leave(result))

/* Is exactly this range among them? */
static bool has(const struct tr_ranges *rs, unsigned arg, uint64_t addr,
		uint64_t len)
{
	for (size_t i = 0; i < rs->n; i++)
		if (rs->r[i].arg == arg && rs->r[i].addr == addr &&
		    rs->r[i].len == len)
			return true;
	return false;
}

/* Are these the only effects? */
#define ONLY_OUT(arg, addr, len) \
	CHECK(known && out.n == 1 && has(&out, arg, addr, len))
#define NO_OUT() CHECK(known && out.n == 0)
#define ONLY_IN(arg, addr, len) CHECK(in.n == 1 && has(&in, arg, addr, len))

#define A (BASE + 0x100u)
#define B (BASE + 0x400u)
#define C (BASE + 0x800u)
#define ERR(e) (-(int64_t)(e))

static void plain_buffers(void)
{
	RUN_CALL(5, SYS_read, 3, A, 100);
	CHECK(in.n == 0);
	ONLY_OUT(1, A, 5);
	RUN_CALL(0, SYS_read, 3, A, 100);
	NO_OUT();
	RUN_CALL(ERR(EINTR), SYS_read, 3, A, 100);
	NO_OUT();
	RUN_CALL(ERR(512), SYS_read, 3, A, 100);
	NO_OUT();
	RUN_CALL(100, SYS_write, 3, A, 100);
	ONLY_IN(1, A, 100);
	NO_OUT();
	RUN_CALL(0, SYS_fstat, 3, A);
	ONLY_OUT(1, A, 144);
	RUN_CALL(0, SYS_pipe2, A, 0);
	ONLY_OUT(0, A, 8);
	RUN_CALL(7, SYS_getcwd, A, 100);
	ONLY_OUT(0, A, 7);
	RUN_CALL(0, SYS_prlimit64, 0, 7, A, B);
	ONLY_IN(2, A, 16);
	ONLY_OUT(3, B, 16);
	RUN_CALL(2, SYS_epoll_wait, 4, A, 10, -1);
	ONLY_OUT(1, A, 24);
	RUN_CALL(0, SYS_getpid, 0);
	NO_OUT();
}

static void null_and_missing_memory(void)
{
	RUN_CALL(9, SYS_time, 0);
	NO_OUT();
	RUN_CALL(0, SYS_wait4, 5, 0, 0, 0);
	NO_OUT();
	/* Only what can be read is listed. */
	RUN_CALL(0, SYS_getcpu, BASE + MAPPED - 4, BASE + MAPPED, 0);
	ONLY_OUT(0, BASE + MAPPED - 4, 4);
	ENTER(SYS_write, 1, BASE + MAPPED - 10, 100);
	ONLY_IN(1, BASE + MAPPED - 10, 10);
	ENTER(SYS_write, 1, 0x999000, 100);
	CHECK(in.n == 0);
	ENTER(SYS_write, 1, ~(uint64_t)0 - 4, 100);
	CHECK(in.n == 0);
	RUN_CALL(0, SYS_sched_getattr, 0, BASE + MAPPED - 48, 4096, 0);
	ONLY_OUT(1, BASE + MAPPED - 48, 48);
	RUN_CALL(0, SYS_getresuid, ~(uint64_t)0 - 1, 0, 0);
	NO_OUT();
}

static void strings(void)
{
	put_string(A, "/etc/passwd");
	ENTER(SYS_openat, AT_FDCWD, A, O_RDONLY, 0);
	ONLY_IN(1, A, 11);
	CHECK(in.n == 1 && in.r[0].is_string);
	/* No end before the memory ends. */
	memset(memory + MAPPED - 20, 'x', 20);
	ENTER(SYS_chdir, BASE + MAPPED - 20);
	CHECK(in.n == 0);
	memset(memory + MAPPED - 20, 0, 20);
	/* Across a page. */
	memset(memory + 4000, 'y', 200);
	memory[4200] = 0;
	ENTER(SYS_chdir, BASE + 4000);
	ONLY_IN(0, BASE + 4000, 200);
	put_string(A, "sh");
	put_string(B, "-c");
	put64(C, A);
	put64(C + 8, B);
	put64(C + 16, 0);
	ENTER(SYS_execve, A, C, 0);
	CHECK(in.n == 3 && has(&in, 0, A, 2) && has(&in, 1, A, 2) &&
	      has(&in, 1, B, 2));
	leave(ERR(ENOENT));
	NO_OUT();
}

static void results_with_limits(void)
{
	/* MSG_TRUNC returns the datagram's length, not what was stored. */
	RUN_CALL(500, SYS_recvfrom, 3, A, 100, MSG_TRUNC, 0, 0);
	ONLY_OUT(1, A, 100);
	/* Size 0 asks how much there is. */
	RUN_CALL(40, SYS_getxattr, A, A, B, 0);
	NO_OUT();
	RUN_CALL(40, SYS_flistxattr, 3, B, 64);
	ONLY_OUT(1, B, 40);
	RUN_CALL(3, SYS_getgroups, 0, 0);
	NO_OUT();
	RUN_CALL(3, SYS_getgroups, 10, A);
	ONLY_OUT(1, A, 12);
	RUN_CALL(8, SYS_sched_getaffinity, 0, 128, A);
	ONLY_OUT(2, A, 8);
}

static void value_result_lengths(void)
{
	put32(B, 16);
	ENTER(SYS_accept, 3, A, B);
	ONLY_IN(2, B, 4);
	put32(B, 110); /* longer than the room */
	leave(4);
	CHECK(known && out.n == 2 && has(&out, 1, A, 16) &&
	      has(&out, 2, B, 4));
	put32(B, 128);
	ENTER(SYS_getsockname, 3, A, B);
	put32(B, 16);
	leave(0);
	CHECK(known && out.n == 2 && has(&out, 1, A, 16));
	RUN_CALL(4, SYS_accept4, 3, 0, 0, 0);
	NO_OUT();
	put32(B, 8);
	ENTER(SYS_getsockopt, 3, SOL_SOCKET, SO_TYPE, A, B);
	put32(B, 4);
	leave(0);
	CHECK(known && out.n == 2 && has(&out, 3, A, 4) && has(&out, 4, B, 4));
	put32(B, 64);
	RUN_CALL(0, SYS_getsockopt, 3, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, A, B);
	CHECK(!known);
	/* Counted in instructions of eight bytes. */
	put32(B, 4);
	RUN_CALL(0, SYS_getsockopt, 3, SOL_SOCKET, SO_ATTACH_FILTER, A, B);
	CHECK(known && has(&out, 3, A, 32));
}

static void written_on_error(void)
{
	RUN_CALL(ERR(EINTR), SYS_nanosleep, A, B);
	ONLY_IN(0, A, 16);
	ONLY_OUT(1, B, 16);
	RUN_CALL(ERR(EINTR), SYS_poll, A, 3, 100);
	ONLY_IN(0, A, 24);
	ONLY_OUT(0, A, 24);
	RUN_CALL(ERR(EINTR), SYS_select, 10, A, 0, 0, B);
	ONLY_OUT(4, B, 16);
	RUN_CALL(ERR(ECHILD), SYS_waitid, P_ALL, 0, A, WEXITED, B);
	ONLY_OUT(2, A, 128);
	RUN_CALL(ERR(EAGAIN), SYS_sendfile, 1, 3, A, 100);
	ONLY_OUT(2, A, 8);
}

static void descriptor_sets(void)
{
	RUN_CALL(1, SYS_select, 65, A, B, 0, 0);
	CHECK(in.n == 2 && has(&in, 1, A, 16) && has(&in, 2, B, 16));
	CHECK(known && out.n == 2 && has(&out, 1, A, 16) &&
	      has(&out, 2, B, 16));
	RUN_CALL(1, SYS_select, 64, A, 0, 0, 0);
	ONLY_OUT(1, A, 8);
	RUN_CALL(ERR(EINVAL), SYS_select, (uint64_t)-1, A, 0, 0, 0);
	CHECK(in.n == 0);
	put64(C, B);
	put64(C + 8, 8);
	ENTER(SYS_pselect6, 1, 0, 0, 0, 0, C);
	CHECK(in.n == 2 && has(&in, 5, C, 16) && has(&in, 5, B, 8));
}

static void vectors(void)
{
	put64(C, A);
	put64(C + 8, 10);
	put64(C + 16, B);
	put64(C + 24, 20);
	ENTER(SYS_writev, 1, C, 2);
	CHECK(in.n == 3 && has(&in, 1, C, 32) && has(&in, 1, A, 10) &&
	      has(&in, 1, B, 20));
	leave(30);
	NO_OUT();
	RUN_CALL(15, SYS_readv, 0, C, 2);
	CHECK(in.n == 1);
	CHECK(known && out.n == 2 && has(&out, 1, A, 10) &&
	      has(&out, 1, B, 5));
	RUN_CALL(ERR(EAGAIN), SYS_preadv2, 0, C, 2, 0, 0, 0);
	NO_OUT();
	/* More than IOV_MAX is refused. */
	ENTER(SYS_writev, 1, C, 1025);
	CHECK(in.n == 0);
}

/* A header at addr with a name at A, one buffer at B, control data at C. */
static void put_message(uint64_t addr)
{
	put64(addr, A);
	put32(addr + 8, 16);
	put64(addr + 16, C + 0x100);
	put64(addr + 24, 1);
	put64(addr + 32, C);
	put64(addr + 40, 64);
	put32(addr + 48, 0);
	put64(C + 0x100, B);
	put64(C + 0x108, 100);
}

static void messages(void)
{
	const uint64_t m = C + 0x200;

	put_message(m);
	ENTER(SYS_sendmsg, 3, m, 0);
	CHECK(in.n == 5 && has(&in, 1, m, 56) && has(&in, 1, A, 16) &&
	      has(&in, 1, C + 0x100, 16) && has(&in, 1, B, 100) &&
	      has(&in, 1, C, 64));
	leave(100);
	NO_OUT();
	ENTER(SYS_recvmsg, 3, m, 0);
	CHECK(in.n == 2 && has(&in, 1, m, 56) && has(&in, 1, C + 0x100, 16));
	put32(m + 8, 110);
	put64(m + 40, 24);
	leave(7);
	CHECK(known && out.n == 4 && has(&out, 1, m, 56) &&
	      has(&out, 1, A, 16) && has(&out, 1, B, 7) &&
	      has(&out, 1, C, 24));
	leave(ERR(EAGAIN));
	NO_OUT();
	put_message(m);
	put32(m + 56, 9);
	put32(m + 64 + 56, 0);
	RUN_CALL(1, SYS_recvmmsg, 3, m, 2, 0, 0);
	CHECK(known && has(&out, 1, B, 9) && has(&out, 1, m + 56, 4) &&
	      !has(&out, 1, m + 64 + 56, 4));
	RUN_CALL(1, SYS_sendmmsg, 3, m, 1, 0);
	CHECK(has(&in, 1, B, 100));
	ONLY_OUT(1, m + 56, 4);
}

static void commands(void)
{
	RUN_CALL(0, SYS_ioctl, 0, TCGETS, A);
	ONLY_OUT(2, A, 36);
	RUN_CALL(0, SYS_ioctl, 0, TIOCSWINSZ, A);
	ONLY_IN(2, A, 8);
	NO_OUT();
	RUN_CALL(0, SYS_ioctl, 0, FICLONE, 5);
	CHECK(in.n == 0);
	NO_OUT();
	/* Without a row: by direction and size. */
	RUN_CALL(0, SYS_ioctl, 0, _IOWR('z', 1, uint64_t[3]), A);
	ONLY_IN(2, A, 24);
	ONLY_OUT(2, A, 24);
	RUN_CALL(0, SYS_ioctl, 0, _IO('z', 1), A);
	CHECK(!known);
	RUN_CALL(ERR(ENOTTY), SYS_ioctl, 0, _IO('z', 1), A);
	NO_OUT();
	/* A userfaultfd(2) command that fills other memory. */
	RUN_CALL(0, SYS_ioctl, 0, _IOWR(0xaa, 3, uint64_t[5]), A);
	CHECK(!known);
	put32(A + 20, 3);
	put32(A + 24, 2);
	RUN_CALL(0, SYS_ioctl, 0, FS_IOC_FIEMAP, A);
	CHECK(known && out.n == 2 && has(&out, 2, A + 32, 112));
	RUN_CALL(0, SYS_fcntl, 3, F_GETLK, A);
	ONLY_IN(2, A, 32);
	ONLY_OUT(2, A, 32);
	RUN_CALL(1, SYS_fcntl, 3, F_GETFD, A);
	NO_OUT();
	RUN_CALL(1, SYS_fcntl, 3, 4711, A);
	CHECK(!known);
	RUN_CALL(ERR(EINVAL), SYS_fcntl, 3, 4711, A);
	NO_OUT();
	RUN_CALL(0, SYS_prctl, PR_GET_NAME, A);
	ONLY_OUT(1, A, 16);
	RUN_CALL(0, SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, A);
	CHECK(!known);
	RUN_CALL(0, SYS_arch_prctl, ARCH_GET_FS, A);
	ONLY_OUT(1, A, 8);
	RUN_CALL(0, SYS_arch_prctl, ARCH_SET_FS, A);
	NO_OUT();
	RUN_CALL(0, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, A);
	CHECK(!known);
	RUN_CALL(0, SYS_shmctl, 1, IPC_STAT, A);
	ONLY_OUT(2, A, 112);
}

/* What tracers read and write of their own memory. */
static void tracers(void)
{
	enum { GETREGS = 12, SETREGS = 13, GETREGSET = 0x4204,
	       SETREGSET = 0x4205, PEEKSIGINFO = 0x4209, INFO = 0x420e };

	RUN_CALL(0, SYS_ptrace, 1, 77, B, A); /* PTRACE_PEEKTEXT */
	ONLY_OUT(3, A, 8);
	RUN_CALL(0, SYS_ptrace, 4, 77, B, A); /* PTRACE_POKETEXT */
	NO_OUT();
	CHECK(known && in.n == 0);
	RUN_CALL(0, SYS_ptrace, GETREGS, 77, 0, A);
	ONLY_OUT(3, A, 216);
	RUN_CALL(0, SYS_ptrace, SETREGS, 77, 0, A);
	ONLY_IN(3, A, 216);
	NO_OUT();
	put64(A, B);
	put64(A + 8, 100);
	RUN_CALL(0, SYS_ptrace, GETREGSET, 77, 1, A);
	CHECK(known && out.n == 2 && has(&out, 3, A, 16) && has(&out, 3, B, 100));
	RUN_CALL(ERR(ESRCH), SYS_ptrace, GETREGSET, 77, 1, A);
	NO_OUT();
	RUN_CALL(0, SYS_ptrace, SETREGSET, 77, 1, A);
	CHECK(in.n == 2 && has(&in, 3, B, 100));
	RUN_CALL(2, SYS_ptrace, PEEKSIGINFO, 77, A, B);
	ONLY_OUT(3, B, 256);
	RUN_CALL(80, SYS_ptrace, INFO, 77, 88, A);
	ONLY_OUT(3, A, 80);
	RUN_CALL(80, SYS_ptrace, INFO, 77, 24, A);
	ONLY_OUT(3, A, 24);
	RUN_CALL(0, SYS_ptrace, 4711, 77, A, B);
	NO_OUT();
}

static void futexes(void)
{
	RUN_CALL(0, SYS_futex, A, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, B);
	CHECK(in.n == 2 && has(&in, 0, A, 4) && has(&in, 3, B, 16));
	NO_OUT();
	/* The fourth argument of FUTEX_REQUEUE is a number. */
	RUN_CALL(1, SYS_futex, A, FUTEX_CMP_REQUEUE, 1, B, C, 0);
	CHECK(in.n == 0);
	NO_OUT();
	RUN_CALL(1, SYS_futex, A, FUTEX_WAKE_OP, 1, 1, B, 0);
	ONLY_OUT(4, B, 4);
	RUN_CALL(ERR(EINTR), SYS_futex, A, FUTEX_LOCK_PI, 0, 0);
	ONLY_OUT(0, A, 4);
}

static void other_irregular_calls(void)
{
	RUN_CALL(0, SYS_mincore, BASE, 4097, A);
	ONLY_OUT(2, A, 2);
	RUN_CALL(16, SYS_msgrcv, 1, A, 100, 0, 0);
	ONLY_OUT(1, A, 24);
	ENTER(SYS_msgsnd, 1, A, 16, 0);
	ONLY_IN(1, A, 24);
	RUN_CALL(77, SYS_clone, CLONE_PARENT_SETTID | CLONE_VM, 0, A, B, 0);
	ONLY_OUT(2, A, 4);
	RUN_CALL(77, SYS_clone, SIGCHLD, 0, A, B, 0);
	NO_OUT();
	put32(A, 0x20080522);
	RUN_CALL(0, SYS_capget, A, B);
	CHECK(known && has(&out, 0, A, 8) && has(&out, 1, B, 24));
	put32(A, 16);
	ENTER(SYS_name_to_handle_at, AT_FDCWD, 0, A, B, 0);
	put32(A, 28);
	leave(ERR(EOVERFLOW));
	CHECK(known && out.n == 2 && has(&out, 2, A, 24) && has(&out, 3, B, 4));
	put64(C, A);
	put32(C + 8, 10);
	RUN_CALL(6, 464, 0, 0, 0, 0, C, 16);
	ONLY_OUT(4, A, 6);
}

static void what_is_not_modelled(void)
{
	RUN_CALL(0, SYS_bpf, 0, A, 8);
	CHECK(!known);
	RUN_CALL(ERR(EPERM), SYS_bpf, 0, A, 8);
	NO_OUT();
	RUN_CALL(ERR(ENOSYS), 5000, 0);
	NO_OUT();
	RUN_CALL(0, 5000, 0);
	CHECK(!known);
	RUN_CALL(0, SYS_mmap, 0, 4096, 3, MAP_ANONYMOUS, 0, 0);
	NO_OUT();
}

static void output_descriptors(void)
{
	CHECK(tr_sys_write_fd(SYS_pwritev2) == 0);
	CHECK(tr_sys_write_fd(SYS_read) == -1);
	CHECK(tr_sys_kernel_copy_fd(SYS_sendfile) == 0);
	CHECK(tr_sys_kernel_copy_fd(SYS_tee) == 1);
	CHECK(tr_sys_kernel_copy_fd(SYS_splice) == 2);
	CHECK(tr_sys_kernel_copy_fd(SYS_write) == -1);
}

/*
 * Against the kernel: every argument that is an address lies in an arena; the
 * bytes of it that a real call changed must be in the ranges the model gives.
 */

#define ARENA (1u << 16)

static uint8_t *arena, before[ARENA];

static bool own_read(void *ctx, uint64_t addr, void *buf, size_t n)
{
	struct iovec local = {buf, n};
	struct iovec remote = {(void *)(uintptr_t)addr, n};

	(void)ctx;
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
	       (ssize_t)n;
}

static bool covered(const struct tr_ranges *rs, uint64_t addr)
{
	for (size_t i = 0; i < rs->n; i++)
		if (addr >= rs->r[i].addr && addr - rs->r[i].addr < rs->r[i].len)
			return true;
	return false;
}

/* Make the call; count the bytes it changed, and complain of those that the
 * model does not know. */
static size_t audited;

static long audit(const char *what, long nr, const uint64_t a[6])
{
	size_t changed = 0, missed = 0;
	long result;

	tr_ranges_release(&in);
	tr_ranges_release(&out);
	call = (struct tr_call){.nr = (uint64_t)nr, .read = own_read};
	memcpy(call.args, a, sizeof call.args);
	tr_call_enter(&call, &in);
	memcpy(before, arena, ARENA);
	result = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	call.result = result < 0 ? -errno : result;
	known = tr_call_exit(&call, &out);
	for (size_t i = 0; i < ARENA; i++) {
		if (before[i] == arena[i])
			continue;
		changed++;
		missed += !covered(&out, (uint64_t)(uintptr_t)(arena + i));
	}
	audited += changed != 0;
	if (missed || !known) {
		printf("# %s: %zu of %zu changed bytes not known\n", what,
		       missed, changed);
		check_failed_now = 1;
	}
	return result;
}

/* A fresh part of the arena, full of a pattern no call writes. */
static uint64_t room(size_t size)
{
	static size_t used;
	uint8_t *p;

	size = (size + 63) & ~(size_t)63;
	if (used + size > ARENA)
		used = 0;
	p = arena + used;
	used += size;
	memset(p, 0xa5, size);
	return (uint64_t)(uintptr_t)p;
}

static uint64_t room_with(const void *data, size_t n)
{
	uint64_t at = room(n);

	memcpy((void *)(uintptr_t)at, data, n);
	return at;
}

static uint64_t text(const char *s)
{
	return room_with(s, strlen(s) + 1);
}

static uint64_t number32(uint32_t v)
{
	return room_with(&v, sizeof v);
}

#define AUDIT(name, ...) \
	audit(#name, SYS_##name, (const uint64_t[6]){__VA_ARGS__})

static void audit_files(void)
{
	uint64_t fd = (uint64_t)open("/usr/bin/env", O_RDONLY);
	uint64_t dir = (uint64_t)open("/", O_RDONLY | O_DIRECTORY);
	struct iovec iov[2] = {
		{(void *)(uintptr_t)room(100), 100},
		{(void *)(uintptr_t)room(100), 100},
	};

	AUDIT(read, fd, room(500), 500);
	AUDIT(pread64, fd, room(500), 500, 0);
	AUDIT(readv, fd, room_with(iov, sizeof iov), 2);
	AUDIT(preadv2, fd, room_with(iov, sizeof iov), 2, 0, 0, 0);
	AUDIT(stat, text("/"), room(300));
	AUDIT(fstat, fd, room(300));
	AUDIT(newfstatat, AT_FDCWD, text("/"), room(300), 0);
	AUDIT(statx, AT_FDCWD, text("/"), 0, STATX_ALL, room(400));
	AUDIT(statfs, text("/"), room(300));
	AUDIT(fstatfs, fd, room(300));
	AUDIT(getdents64, dir, room(400), 400);
	AUDIT(getdents, dir, room(400), 400);
	AUDIT(getcwd, room(4096), 4096);
	AUDIT(readlink, text("/proc/self/exe"), room(300), 300);
	AUDIT(readlinkat, AT_FDCWD, text("/proc/self/exe"), room(5), 5);
	AUDIT(getxattr, text("/"), text("user.none"), room(100), 100);
	AUDIT(listxattr, text("/"), room(100), 100);
	AUDIT(name_to_handle_at, AT_FDCWD, text("/"), number32(0), room(8), 0);
	AUDIT(ioctl, fd, FIGETBSZ, room(16));
	AUDIT(ioctl, fd, FS_IOC_GETFLAGS, room(16));
	AUDIT(fcntl, fd, F_GETOWN_EX, room(16));
	AUDIT(mincore, (uint64_t)(uintptr_t)arena, 8192, room(64));
	close((int)fd);
	close((int)dir);
}

static void audit_processes(void)
{
	struct timespec soon = {0, 1000};

	AUDIT(uname, room(500));
	AUDIT(sysinfo, room(300));
	AUDIT(times, room(100));
	AUDIT(getrusage, RUSAGE_SELF, room(300));
	AUDIT(getrlimit, RLIMIT_STACK, room(64));
	AUDIT(prlimit64, 0, RLIMIT_STACK, 0, room(64));
	AUDIT(getresuid, room(64), room(64), room(64));
	AUDIT(getresgid, room(64), room(64), room(64));
	AUDIT(getgroups, 16, room(128));
	AUDIT(getcpu, room(8), room(8), 0);
	AUDIT(gettimeofday, room(64), room(64));
	AUDIT(clock_gettime, CLOCK_MONOTONIC, room(64));
	AUDIT(clock_getres, CLOCK_MONOTONIC, room(64));
	AUDIT(nanosleep, room_with(&soon, sizeof soon), room(64));
	AUDIT(time, room(64));
	AUDIT(sched_getaffinity, 0, 128, room(256));
	AUDIT(sched_getparam, 0, room(64));
	AUDIT(sched_getattr, 0, room(256), 56, 0);
	AUDIT(sched_rr_get_interval, 0, room(64));
	AUDIT(getitimer, ITIMER_REAL, room(64));
	AUDIT(adjtimex, room_with(&(struct timex){0}, sizeof(struct timex)));
	AUDIT(capget, room_with(&(uint32_t[2]){0x20080522}, 8), room(64));
	AUDIT(capget, room_with(&(uint32_t[2]){77}, 8), 0);
	AUDIT(rt_sigprocmask, SIG_BLOCK, 0, room(64), 8);
	AUDIT(rt_sigaction, SIGUSR1, 0, room(64), 8);
	AUDIT(rt_sigpending, room(64), 8);
	AUDIT(sigaltstack, 0, room(64));
	AUDIT(get_robust_list, 0, room(64), room(64));
	AUDIT(prctl, PR_GET_NAME, room(64));
	AUDIT(prctl, PR_GET_PDEATHSIG, room(64));
	AUDIT(prctl, PR_GET_TSC, room(64));
	AUDIT(prctl, PR_GET_TID_ADDRESS, room(64));
	AUDIT(arch_prctl, ARCH_GET_FS, room(64));
	AUDIT(getrandom, room(100), 100, 0);
	AUDIT(seccomp, SECCOMP_GET_NOTIF_SIZES, 0, room(64));
	AUDIT(waitid, P_ALL, 0, room(300), WEXITED | WNOHANG, room(300));
}

static void audit_children(void)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(3);
		if (i == 0)
			AUDIT(wait4, (uint64_t)pid, room(64), 0, room(300));
		else
			AUDIT(waitid, P_PID, (uint64_t)pid, room(300), WEXITED,
			      room(300));
	}
}

static void audit_waiting(void)
{
	struct pollfd pfd[2] = {{.fd = 0, .events = POLLOUT}, {.fd = -1}};
	struct epoll_event ev = {.events = EPOLLOUT};
	struct timespec zero = {0, 0};
	struct itimerspec soon = {{0, 0}, {100, 0}};
	uint64_t ep = (uint64_t)epoll_create1(0), sv, set[16] = {1};
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	pfd[0].fd = pair[0];
	set[0] = 1ull << pair[0];
	AUDIT(poll, room_with(pfd, sizeof pfd), 2, 0);
	AUDIT(ppoll, room_with(pfd, sizeof pfd), 2,
	      room_with(&zero, sizeof zero), 0, 8);
	AUDIT(select, 60, room_with(set, 128), room_with(set, 128), 0,
	      room_with(&zero, sizeof zero));
	AUDIT(pselect6, 60, room_with(set, 128), room_with(set, 128), 0,
	      room_with(&zero, sizeof zero), 0);
	AUDIT(epoll_ctl, ep, EPOLL_CTL_ADD, (uint64_t)pair[0],
	      room_with(&ev, sizeof ev));
	AUDIT(epoll_wait, ep, room(200), 8, 0);
	AUDIT(epoll_pwait, ep, room(200), 8, 0, 0, 8);
	AUDIT(pipe, room(64));
	AUDIT(pipe2, room(64), 0);
	sv = (uint64_t)timerfd_create(CLOCK_MONOTONIC, 0);
	AUDIT(timerfd_settime, sv, 0, room_with(&soon, sizeof soon), room(64));
	AUDIT(timerfd_gettime, sv, room(64));
	AUDIT(timer_create, CLOCK_MONOTONIC, 0, room(64));
	AUDIT(timer_gettime, 0, room(64));
	close((int)sv);
	close((int)ep);
	close(pair[0]);
	close(pair[1]);
}

static uint64_t message(uint64_t name, uint32_t namelen, uint64_t buf,
			uint64_t control)
{
	struct iovec iov = {(void *)(uintptr_t)buf, 20};
	struct msghdr m = {
		.msg_name = (void *)(uintptr_t)name,
		.msg_namelen = namelen,
		.msg_iov = (void *)(uintptr_t)room_with(&iov, sizeof iov),
		.msg_iovlen = 1,
		.msg_control = (void *)(uintptr_t)control,
		.msg_controllen = control ? 100 : 0,
	};

	return room_with(&m, sizeof m);
}

static void send_some(int fd)
{
	for (int i = 0; i < 2; i++)
		CHECK(send(fd, "0123456789", 10, 0) == 10);
}

static void audit_sockets(void)
{
	uint64_t a, b, mm;
	int pair[2], one = 1;

	AUDIT(socketpair, AF_UNIX, SOCK_DGRAM, 0, room(64));
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	a = (uint64_t)pair[0];
	b = (uint64_t)pair[1];
	setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
	AUDIT(getsockname, a, room(200), number32(100));
	AUDIT(getpeername, a, room(200), number32(1));
	AUDIT(getsockopt, a, SOL_SOCKET, SO_TYPE, room(64), number32(64));
	AUDIT(getsockopt, a, SOL_SOCKET, SO_PEERCRED, room(64), number32(64));
	send_some(pair[0]);
	AUDIT(ioctl, b, FIONREAD, room(16));
	AUDIT(recvfrom, b, room(64), 5, MSG_TRUNC, room(200), number32(100));
	AUDIT(recvmsg, b, message(room(200), 110, room(64), room(128)), 0);
	send_some(pair[0]);
	mm = room(128);
	for (unsigned i = 0; i < 2; i++)
		memcpy((void *)(uintptr_t)(mm + 64 * i), (void *)(uintptr_t)
		       message(room(200), 110, room(64), room(128)), 56);
	AUDIT(recvmmsg, b, mm, 2, MSG_DONTWAIT, 0);
	close(pair[0]);
	close(pair[1]);
}

/* Addresses of peers, over the loopback interface. */
static void audit_internet(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof at;
	int udp = socket(AF_INET, SOCK_DGRAM, 0);
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	int peer = socket(AF_INET, SOCK_STREAM, 0);
	struct {
		int len, pad;
		uint64_t buf;
	} conf = {.len = 200, .buf = room(200)};

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(bind(udp, (struct sockaddr *)&at, sizeof at) == 0);
	CHECK(getsockname(udp, (struct sockaddr *)&at, &len) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(sendto(udp, "0123456789", 10, 0, (struct sockaddr *)&at,
			     sizeof at) == 10);
	AUDIT(recvfrom, (uint64_t)udp, room(64), 20, 0, room(64), number32(40));
	CHECK(out.n == 3);
	AUDIT(recvmsg, (uint64_t)udp, message(room(64), 7, room(64), 0), 0);
	AUDIT(ioctl, (uint64_t)udp, SIOCGIFCONF, room_with(&conf, 16));
	AUDIT(ioctl, (uint64_t)udp, SIOCGIFFLAGS, room_with((char[40]){"lo"}, 40));
	CHECK(listen(tcp, 5) == 0);
	CHECK(getsockname(tcp, (struct sockaddr *)&at, &len) == 0);
	CHECK(connect(peer, (struct sockaddr *)&at, sizeof at) == 0);
	AUDIT(accept4, (uint64_t)tcp, room(64), number32(5), 0);
	AUDIT(getsockopt, (uint64_t)peer, IPPROTO_TCP, TCP_INFO, room(400),
	      number32(400));
	close(udp);
	close(tcp);
	close(peer);
}

static void audit_copies(void)
{
	int from = open("/usr/bin/env", O_RDONLY);
	int to = memfd_create("audit", 0), pipefd[2];
	uint64_t zero = 0, iov[2] = {room(100), 100};

	CHECK(pipe(pipefd) == 0);
	AUDIT(sendfile, (uint64_t)to, (uint64_t)from, room_with(&zero, 8), 50);
	AUDIT(copy_file_range, (uint64_t)from, room_with(&zero, 8),
	      (uint64_t)to, room_with(&zero, 8), 50, 0);
	AUDIT(splice, (uint64_t)from, room_with(&zero, 8), (uint64_t)pipefd[1],
	      0, 50, 0);
	AUDIT(vmsplice, (uint64_t)pipefd[0], room_with(iov, 16), 1, 0);
	iov[0] = room(100);
	AUDIT(process_vm_readv, (uint64_t)getpid(), room_with(iov, 16), 1,
	      room_with((uint64_t[2]){(uintptr_t)arena, 60}, 16), 1, 0);
	close(from);
	close(to);
	close(pipefd[0]);
	close(pipefd[1]);
}

static uint32_t words[64];

static void audit_new_calls(void)
{
	int fd = open("/usr/bin/env", O_RDONLY);
	uint64_t range[2] = {0, 4096}, request[4] = {24, ~(uint64_t)0, 0, 0};
	/* struct fiemap: a length at 8, room for three extents. */
	uint8_t map[32 + 3 * 56] = {[12] = 1, [24] = 3};
	int wd = inotify_init();

	audit("cachestat", 451, (const uint64_t[6]){
	      (uint64_t)fd, room_with(range, 16), room(64), 0});
	audit("listmount", 458, (const uint64_t[6]){
	      room_with(request, 24), room(80), 10, 0});
	audit("lsm_list_modules", 461, (const uint64_t[6]){
	      room(200), number32(200), 0});
	audit("lsm_list_modules", 461, (const uint64_t[6]){
	      room(200), number32(1), 0});
	audit("lsm_get_self_attr", 459, (const uint64_t[6]){
	      100, room(200), number32(200), 0});
	audit("file_getattr", 468, (const uint64_t[6]){
	      (uint64_t)AT_FDCWD, text("/"), room(64), 24, 0});
	audit("getxattrat", 464, (const uint64_t[6]){
	      (uint64_t)AT_FDCWD, text("/"), 0, text("user.none"),
	      room_with((uint64_t[2]){room(64), 64}, 16), 16});
	AUDIT(perf_event_open, room_with(words, sizeof words), 0,
	      (uint64_t)-1, (uint64_t)-1, 0);
	words[1] = 200;
	words[45] = 1; /* bytes the kernel does not know: E2BIG */
	AUDIT(perf_event_open, room_with(words, sizeof words), 0,
	      (uint64_t)-1, (uint64_t)-1, 0);
	AUDIT(get_mempolicy, room(8), room(200), 1025, 0, 0);
	AUDIT(move_pages, 0, 1, room_with((uint64_t[1]){(uintptr_t)arena}, 8),
	      0, room(16), 0);
	AUDIT(ioctl, (uint64_t)fd, FS_IOC_FIEMAP, room_with(map, sizeof map));
	AUDIT(ioctl, (uint64_t)wd, FIONREAD, room(16));
	AUDIT(rt_sigtimedwait, room_with((uint64_t[1]){1}, 8), room(128),
	      room_with(range, 16), 8);
	close(fd);
	close(wd);
}

static void audit_signal_wait(void)
{
	uint64_t mask = 1u << (SIGUSR1 - 1);

	AUDIT(rt_sigprocmask, SIG_BLOCK, room_with(&mask, 8), room(16), 8);
	raise(SIGUSR1);
	AUDIT(rt_sigtimedwait, room_with(&mask, 8), room(200), 0, 8);
	AUDIT(rt_sigprocmask, SIG_UNBLOCK, room_with(&mask, 8), room(16), 8);
}

static void audit_queues(void)
{
	struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = 16};
	char name[32];
	mqd_t q;

	snprintf(name, sizeof name, "/tr-test-%d", getpid());
	q = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
	if (q < 0)
		return;
	mq_unlink(name);
	CHECK(mq_send(q, "hello", 5, 3) == 0);
	AUDIT(mq_getsetattr, (uint64_t)q, 0, room(100));
	AUDIT(mq_timedreceive, (uint64_t)q, room(64), 16, room(16), 0);
	close(q);
}

static void audit_terminal(void)
{
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);

	if (fd < 0)
		return;
	AUDIT(ioctl, (uint64_t)fd, TIOCGPTN, room(64));
	AUDIT(ioctl, (uint64_t)fd, TCGETS, room(128));
	AUDIT(ioctl, (uint64_t)fd, TCGETS2, room(128));
	AUDIT(ioctl, (uint64_t)fd, TCGETA, room(128));
	AUDIT(ioctl, (uint64_t)fd, TIOCGWINSZ, room(64));
	AUDIT(ioctl, (uint64_t)fd, TIOCGPTLCK, room(64));
	AUDIT(ioctl, (uint64_t)fd, TIOCGETD, room(64));
	AUDIT(ioctl, (uint64_t)fd, TIOCOUTQ, room(64));
	close(fd);
}

static void audit_ipc(void)
{
	static const struct {
		long type;
		char text[8];
	} m = {1, "hello"};
	uint64_t shm = (uint64_t)shmget(IPC_PRIVATE, 4096, 0600);
	uint64_t sem = (uint64_t)semget(IPC_PRIVATE, 5, 0600);
	uint64_t msg = (uint64_t)msgget(IPC_PRIVATE, 0600);

	AUDIT(shmctl, shm, IPC_STAT, room(200));
	AUDIT(shmctl, 0, IPC_INFO, room(200));
	AUDIT(shmctl, 0, SHM_INFO, room(200));
	AUDIT(semctl, sem, 0, IPC_STAT, room(200));
	AUDIT(semctl, sem, 0, IPC_INFO, room(200));
	AUDIT(semctl, sem, 0, GETALL, room(64));
	AUDIT(msgctl, msg, IPC_STAT, room(200));
	AUDIT(msgctl, msg, IPC_INFO, room(200));
	AUDIT(msgsnd, msg, room_with(&m, sizeof m), 6, 0);
	AUDIT(msgrcv, msg, room(64), 20, 0, 0);
	shmctl((int)shm, IPC_RMID, NULL);
	semctl((int)sem, 0, IPC_RMID);
	msgctl((int)msg, IPC_RMID, NULL);
}

static void kernel_agrees(void)
{
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(arena != MAP_FAILED);
	audit_files();
	audit_processes();
	audit_children();
	audit_waiting();
	audit_sockets();
	audit_internet();
	audit_copies();
	audit_new_calls();
	audit_signal_wait();
	audit_queues();
	audit_terminal();
	audit_ipc();
	CHECK(audited > 70); /* or the calls did nothing */
	munmap(arena, ARENA);
}

/* The generator's refusals. */

static void write_file(const char *path, const char *content)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(content, f) >= 0);
	if (f)
		fclose(f);
}

/* First line of what the generator says about a table; "" when it is good. */
static void generate(const char *flags, const char *ioctls, const char *calls,
		     char message_out[256])
{
	char dir[] = "/tmp/test_model.XXXXXX", path[64], command[512];
	FILE *f;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/f", dir);
	write_file(path, flags);
	snprintf(path, sizeof path, "%s/i", dir);
	write_file(path, ioctls);
	snprintf(path, sizeof path, "%s/s", dir);
	write_file(path, calls);
	snprintf(command, sizeof command, "awk -f libtrace/model/generate.awk "
		 "%s/f %s/i %s/s 2>&1 >/dev/null; test $? -le 1 || echo bad; "
		 "rm -r %s", dir, dir, dir, dir);
	f = popen(command, "r");
	message_out[0] = '\0';
	CHECK(f);
	if (f && !fgets(message_out, 256, f))
		message_out[0] = '\0';
	if (f)
		pclose(f);
}

static const char good_flags[] =
	"enum errno\nENOSYS 38\nflags f\nX 1\nY 2\n";
static const char good_ioctls[] = "A_ 0x1 none\n";

static void refused(const char *flags, const char *ioctls, const char *calls,
		    const char *why)
{
	char said[256];

	generate(flags, ioctls, calls, said);
	if (*why ? strstr(said, why) != NULL : said[0] == '\0')
		return;
	printf("# wanted '%s', the generator said '%s'\n", why, said);
	check_failed_now = 1;
}

static void generator_refuses_bad_tables(void)
{
	if (access("libtrace/model/generate.awk", R_OK) < 0) {
		printf("# not run in the source tree\n");
		return;
	}
#define CALLS(text, why) refused(good_flags, good_ioctls, text, why)
	CALLS("0 read plain fd:fd\n", "");
	CALLS("0 a plain x:flags(f) y:flags(ioctl)\n1 b deny:ENOSYS\n", "");
	CALLS("0 read\n", "s:1: expected 'NR NAME");
	CALLS("# x\n0 read plain a:fd b:fd c:fd d:fd e:fd f:fd g:fd\n",
	      "s:2: expected");
	CALLS("x read plain\n", "s:1: expected");
	CALLS("0 a plain\n0 b plain\n", "s:2: number 0 is defined twice");
	CALLS("0 a plain\n1 a plain\n", "s:2: a is defined twice");
	CALLS("0 a plan\n", "s:1: unknown class 'plan'");
	CALLS("0 a deny:EFOO\n", "s:1: unknown errno 'EFOO'");
	CALLS("0 a plain x\n", "s:1: bad argument 'x'");
	CALLS("0 a plain x:foo\n", "s:1: unknown type 'foo'");
	CALLS("0 a plain x:flags(g)\n", "s:1: unknown flag set 'g'");
	CALLS("0 a plain x:out[y]\n", "s:1: no argument called 'y'");
	CALLS("0 a plain x:out[struct y]\n", "s:1: unknown struct y");
	CALLS("0 a plain x:out[y*0] y:int\n", "s:1: bad size '0'");
	CALLS("0 a plain x:in[y<=y] y:int\n", "s:1: only a result");
	CALLS("0 a plain x:in![4]\n", "s:1: unknown type");
	CALLS("0 a plain x:int x:int\n", "s:1: two arguments called 'x'");
	CALLS("struct a\n", "s:1: expected 'struct NAME SIZE'");
	CALLS("struct a 4\nstruct a 4\n", "s:2: struct a is defined twice");
	refused("flags f\nX 0\n", good_ioctls, "", "f:2: X needs a mask");
	refused("flags f\nX 1\nX 2\n", good_ioctls, "", "f:3: X is twice");
	refused("enum f\nX 1\nY 1\n", good_ioctls, "", "f:3: value 1 is twice");
	refused("flags f\nflags f\n", good_ioctls, "", "f:2: set f is");
	refused("flags f\nX zz\n", good_ioctls, "", "f:2: bad value");
	refused("X 1\n", good_ioctls, "", "f:1: a member before");
	refused(good_flags, "A_ 1 none\n", "", "i:1: ioctl numbers are hexa");
	refused(good_flags, "A_ 0x1 none\nB_ 0x01 none\n", "",
		"i:2: ioctl 0x01 is defined twice");
	refused(good_flags, "A_ 0x1 both[4]\n", "", "i:1: bad effect");
#undef CALLS
}

int main(void)
{
	RUN(values_agree_with_headers);
	RUN(numbers_agree_with_headers);
	RUN(every_number_has_a_row);
	RUN(lookup_finds_what_is_there);
	RUN(every_computed_size_has_code);
	RUN(structures_have_the_kernels_sizes);
	RUN(plain_buffers);
	RUN(null_and_missing_memory);
	RUN(strings);
	RUN(results_with_limits);
	RUN(value_result_lengths);
	RUN(written_on_error);
	RUN(descriptor_sets);
	RUN(vectors);
	RUN(messages);
	RUN(commands);
	RUN(tracers);
	RUN(futexes);
	RUN(other_irregular_calls);
	RUN(what_is_not_modelled);
	RUN(output_descriptors);
	RUN(kernel_agrees);
	RUN(generator_refuses_bad_tables);
	tr_ranges_release(&in);
	tr_ranges_release(&out);
	return check_status();
}
