/* Events as text and JSON: what people and pipes see, to the letter. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "libtrace/model/describe.h"
#include "tests/unit/check.h"

/* One event at a time is under construction. */
static struct tr_event ev;
static struct tr_arg args[8];
static struct tr_mem mems[8];
static struct tr_map maps[2];

static void begin(enum tr_event_type type)
{
	ev = (struct tr_event){
		.type = type, .number = 12, .stream = 1, .task = 2,
		.time = 123456, .arg = args, .mem = mems, .map = maps,
	};
}

static void begin_call(uint64_t nr, int64_t result, const uint64_t a[6])
{
	begin(TR_EV_SYSCALL);
	tr_event_set(&ev, TR_F_NR, nr);
	tr_event_set(&ev, TR_F_RESULT, (uint64_t)result);
	tr_event_mark(&ev, TR_F_REGS);
	ev.regs.rdi = a[0];
	ev.regs.rsi = a[1];
	ev.regs.rdx = a[2];
	ev.regs.r10 = a[3];
	ev.regs.r8 = a[4];
	ev.regs.r9 = a[5];
}

#define CALL(result, nr, ...) \
	begin_call(SYS_##nr, result, (const uint64_t[6]){__VA_ARGS__})
#define ERR(e) (-(int64_t)(e))

static void read_string(uint8_t index, uint64_t addr, const char *s)
{
	args[ev.narg++] = (struct tr_arg){
		.index = index, .is_string = 1, .addr = addr,
		.len = strlen(s), .bytes = {s, strlen(s)},
	};
	tr_event_mark(&ev, TR_F_ARG);
}

/* A buffer of `len` bytes, of which the event has at most the first 64. */
static void read_bytes(uint8_t index, uint64_t addr, const void *p, size_t len)
{
	args[ev.narg++] = (struct tr_arg){
		.index = index, .addr = addr, .len = len,
		.bytes = {p, len < TR_ARG_PREFIX_MAX ? len : TR_ARG_PREFIX_MAX},
	};
	tr_event_mark(&ev, TR_F_ARG);
}

static void wrote(uint64_t addr, const void *p, size_t len)
{
	mems[ev.nmem++] = (struct tr_mem){addr, {p, len}};
	tr_event_mark(&ev, TR_F_MEM);
}

static void differs(const char *got, const char *wanted)
{
	if (strcmp(got, wanted) == 0)
		return;
	printf("# wanted %s\n# got    %s\n", wanted, got);
	check_failed_now = 1;
}

static void text_is(const char *wanted)
{
	struct tr_buf b = {0};

	tr_describe_text(&ev, false, &b);
	tr_buf_put_u8(&b, 0);
	differs((const char *)b.data, wanted);
	tr_buf_release(&b);
}

/* `wanted` without the members that every event begins with. */
static void json_is(const char *type, const char *wanted)
{
	struct tr_json *j = tr_describe_json(&ev, false);
	char *got = tr_json_dump(j), expected[2048];

	snprintf(expected, sizeof expected, "{\"type\":\"%s\",\"event\":12,"
		 "\"task\":2,\"stream\":1,\"time\":123456%s%s}", type,
		 *wanted ? "," : "", wanted);
	differs(got, expected);
	free(got);
	tr_json_free(j);
}

static void paths_and_flags(void)
{
	CALL(3, openat, (uint32_t)AT_FDCWD, 0x1000, O_RDONLY | O_CLOEXEC);
	read_string(1, 0x1000, "/etc/passwd");
	tr_event_set(&ev, TR_F_DURATION, 4100);
	text_is("openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_CLOEXEC) = 3");
	json_is("syscall", "\"name\":\"openat\",\"nr\":257,\"args\":{"
		"\"dfd\":\"AT_FDCWD\",\"filename\":\"/etc/passwd\","
		"\"flags\":\"O_RDONLY|O_CLOEXEC\",\"mode\":0},\"result\":3,"
		"\"duration\":4100");
	CALL(ERR(ENOENT), open, 0x1000, O_WRONLY | O_CREAT | O_SYNC, 0644);
	read_string(0, 0x1000, "a\"b\n\x01");
	text_is("open(\"a\\\"b\\n\\1\", O_WRONLY|O_CREAT|O_SYNC, 0644) = "
		"-1 ENOENT");
	json_is("syscall", "\"name\":\"open\",\"nr\":2,\"args\":{"
		"\"filename\":\"a\\\"b\\n\\u0001\","
		"\"flags\":\"O_WRONLY|O_CREAT|O_SYNC\",\"mode\":420},"
		"\"result\":-2,\"errno\":\"ENOENT\"");
	/* The kernel could not read the path, nor can we. */
	CALL(ERR(EFAULT), chdir, 0x10);
	text_is("chdir(0x10) = -1 EFAULT");
	CALL(ERR(EFAULT), chdir, 0);
	text_is("chdir(NULL) = -1 EFAULT");
	CALL(0x7f0000000000, mmap, 0, 4096, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS, (uint32_t)-1, 0);
	text_is("mmap(NULL, 4096, PROT_READ|PROT_WRITE, "
		"MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000");
	json_is("syscall", "\"name\":\"mmap\",\"nr\":9,\"args\":{\"addr\":null,"
		"\"length\":4096,\"prot\":\"PROT_READ|PROT_WRITE\","
		"\"flags\":\"MAP_PRIVATE|MAP_ANONYMOUS\",\"fd\":-1,"
		"\"offset\":0},\"result\":\"0x7f0000000000\"");
	CALL(ERR(EINVAL), mprotect, 0x1000, ~(uint64_t)0, 0x80);
	text_is("mprotect(0x1000, 18446744073709551615, 0x80) = "
		"-1 EINVAL");
	json_is("syscall", "\"name\":\"mprotect\",\"nr\":10,\"args\":{"
		"\"addr\":\"0x1000\",\"len\":\"0xffffffffffffffff\","
		"\"prot\":\"0x80\"},\"result\":-22,"
		"\"errno\":\"EINVAL\"");
	CALL(0, lseek, 3, 0, SEEK_END);
	text_is("lseek(3, 0, SEEK_END) = 0");
	CALL(ERR(EINVAL), lseek, 3, (uint64_t)-5, 77);
	text_is("lseek(3, -5, 77) = -1 EINVAL");
	CALL(5, clone, 0x01200011, 0, 0, 0, 0);
	text_is("clone(CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, "
		"NULL, NULL, NULL, NULL) = 5");
}

static void buffers(void)
{
	static const char data[] =
		"The quick brown fox jumps over the lazy dog";
	static const uint8_t binary[] = {0x7f, 'E', 'L', 'F', 0, '1', 0xff};

	CALL(5, read, 3, 0x2000, 100);
	wrote(0x2000, "hello", 5);
	text_is("read(3, \"hello\", 100) = 5");
	json_is("syscall", "\"name\":\"read\",\"nr\":0,\"args\":{\"fd\":3,"
		"\"buf\":{\"addr\":\"0x2000\",\"size\":5,\"data\":\"hello\"},"
		"\"count\":100},\"result\":5");
	CALL(43, read, 3, 0x2000, 100);
	wrote(0x2000, data, 43);
	text_is("read(3, \"The quick brown fox jumps over t\"..., 100) = 43");
	CALL(7, read, 3, 0x2000, 100);
	wrote(0x2000, binary, 7);
	text_is("read(3, \"\\177ELF\\0001\\377\", 100) = 7");
	json_is("syscall", "\"name\":\"read\",\"nr\":0,\"args\":{\"fd\":3,"
		"\"buf\":{\"addr\":\"0x2000\",\"size\":7,"
		"\"data\":{\"hex\":\"7f454c460031ff\"}},"
		"\"count\":100},\"result\":7");
	/* The recorded memory goes on after the buffer. */
	CALL(3, read, 3, 0x2000, 3);
	wrote(0x1ff0, "................abcdef", 22);
	text_is("read(3, \"abc\", 3) = 3");
	/* Not recorded here. */
	CALL(3, read, 3, 0x2000, 3);
	text_is("read(3, 0x2000, 3) = 3");
	CALL(43, write, 1, 0x2000, 43);
	read_bytes(1, 0x2000, data, 43);
	text_is("write(1, \"The quick brown fox jumps over t\"..., 43) = 43");
	/* A cut inside a character leaves text. */
	CALL(40, write, 1, 0x2000, 40);
	read_bytes(1, 0x2000, "1234567890123456789012345678901"
		   "\xc3\xa9.......", 40);
	json_is("syscall", "\"name\":\"write\",\"nr\":1,\"args\":{\"fd\":1,"
		"\"buf\":{\"addr\":\"0x2000\",\"size\":40,"
		"\"data\":\"1234567890123456789012345678901\"},\"count\":40},"
		"\"result\":40");
	CALL(8, getcwd, 0x2000, 100);
	wrote(0x2000, "/a/path\0", 8);
	text_is("getcwd(\"/a/path\", 100) = 8");
}

static void vectors(void)
{
	uint64_t iov[6] = {0x2000, 5, 0x3000, 50, 0, 0};
	uint64_t msg[7] = {0x5000, 16, 0x4000, 1, 0, 0, 0};
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(80),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	CALL(7, writev, 1, 0x4000, 3);
	read_bytes(1, 0x4000, iov, sizeof iov);
	read_bytes(1, 0x2000, "hello", 5);
	text_is("writev(1, [{iov_base=\"hello\", iov_len=5}, "
		"{iov_base=0x3000, iov_len=50}, {iov_base=NULL, iov_len=0}], "
		"3) = 7");
	CALL(7, readv, 0, 0x4000, 2);
	read_bytes(1, 0x4000, iov, 32);
	wrote(0x2000, "hello", 5);
	wrote(0x3000, "yz", 2);
	text_is("readv(0, [{iov_base=\"hello\", iov_len=5}, "
		"{iov_base=\"yz\", iov_len=50}], 2) = 7");
	json_is("syscall", "\"name\":\"readv\",\"nr\":19,\"args\":{\"fd\":0,"
		"\"iov\":[{\"addr\":\"0x2000\",\"size\":5,\"data\":\"hello\"},"
		"{\"addr\":\"0x3000\",\"size\":2,\"data\":\"yz\"}],"
		"\"iovcnt\":2},\"result\":7");
	CALL(5, sendmsg, 3, 0x6000, MSG_NOSIGNAL);
	read_bytes(1, 0x6000, msg, sizeof msg);
	read_bytes(1, 0x4000, iov, 16);
	read_bytes(1, 0x2000, "hello", 5);
	read_bytes(1, 0x5000, &sin, sizeof sin);
	text_is("sendmsg(3, {msg_name={sa_family=AF_INET, sin_port=80, "
		"sin_addr=\"127.0.0.1\"}, msg_iov=[{iov_base=\"hello\", "
		"iov_len=5}], msg_controllen=0, msg_flags=0}, MSG_NOSIGNAL) "
		"= 5");
}

static void structures(void)
{
	struct stat st = {.st_mode = S_IFREG | 0644, .st_size = 123};
	struct pollfd in = {.fd = 3, .events = POLLIN};
	struct pollfd out = {.fd = 3, .events = POLLIN, .revents = POLLIN};
	struct timespec ts = {1, 500};
	uint32_t status = 0x300, len = 16;
	int pair[2] = {3, 4};
	uint64_t set[1] = {0x0a}, mask = 1 << (SIGINT - 1);
	uint64_t act[4] = {0x401000, SA_RESTART | 0x04000000, 0x402000, 0};
	struct sockaddr sun = {AF_UNIX, "/run/x\0......."};

	CALL(0, fstat, 3, 0x2000);
	wrote(0x2000, &st, sizeof st);
	text_is("fstat(3, {st_mode=S_IFREG|0644, st_size=123}) = 0");
	json_is("syscall", "\"name\":\"fstat\",\"nr\":5,\"args\":{\"fd\":3,"
		"\"statbuf\":{\"st_mode\":\"S_IFREG|0644\",\"st_size\":123}},"
		"\"result\":0");
	CALL(12, wait4, (uint64_t)-1, 0x2000, 0, 0);
	wrote(0x2000, &status, 4);
	text_is("wait4(-1, {exit_code=3}, 0, NULL) = 12");
	CALL(0, pipe2, 0x2000, O_CLOEXEC);
	wrote(0x2000, pair, 8);
	text_is("pipe2([3, 4], O_CLOEXEC) = 0");
	CALL(1, poll, 0x2000, 1, (uint32_t)-1);
	read_bytes(0, 0x2000, &in, 8);
	wrote(0x2000, &out, 8);
	text_is("poll([{fd=3, events=POLLIN, revents=POLLIN}], 1, -1) = 1");
	CALL(1, select, 4, 0x2000, 0, 0, 0);
	wrote(0x2000, set, 8);
	text_is("select(4, [1, 3], NULL, NULL, NULL) = 1");
	CALL(ERR(EINTR), nanosleep, 0x2000, 0);
	read_bytes(0, 0x2000, &ts, 16);
	text_is("nanosleep({tv_sec=1, tv_nsec=500}, NULL) = -1 EINTR");
	CALL(0, rt_sigprocmask, SIG_BLOCK, 0x2000, 0, 8);
	read_bytes(1, 0x2000, &mask, 8);
	text_is("rt_sigprocmask(SIG_BLOCK, [SIGINT], NULL, 8) = 0");
	CALL(0, rt_sigaction, SIGUSR1, 0x2000, 0, 8);
	read_bytes(1, 0x2000, act, 32);
	text_is("rt_sigaction(SIGUSR1, {sa_handler=0x401000, sa_mask=[], "
		"sa_flags=SA_RESTART|SA_RESTORER}, NULL, 8) = 0");
	CALL(4, accept, 3, 0x2000, 0x3000);
	read_bytes(2, 0x3000, &len, 4);
	wrote(0x2000, &sun, 16);
	wrote(0x3000, &len, 4);
	text_is("accept(3, {sa_family=AF_UNIX, sun_path=\"/run/x\"}, [16]) "
		"= 4");
}

static void commands(void)
{
	uint32_t n = 17;

	CALL(0, ioctl, 0, 0x541b, 0x2000);
	wrote(0x2000, &n, 4);
	text_is("ioctl(0, FIONREAD, [17]) = 0");
	CALL(0, ioctl, 9, 0x40049409, 3);
	text_is("ioctl(9, FICLONE, 3) = 0");
	CALL(ERR(ENOTTY), ioctl, 0, 0x12345678, 0x2000);
	text_is("ioctl(0, 0x12345678, 8192) = -1 ENOTTY");
	CALL(0, fcntl, 3, F_SETFD, FD_CLOEXEC);
	text_is("fcntl(3, F_SETFD, FD_CLOEXEC) = 0");
	CALL(1, fcntl, 3, F_GETFD, 77);
	text_is("fcntl(3, F_GETFD) = 1");
	CALL(0, futex, 0x2000, 0x80, 17, 0);
	read_bytes(0, 0x2000, &n, 4);
	text_is("futex(0x2000, FUTEX_WAIT|FUTEX_PRIVATE_FLAG, 17, NULL, NULL, "
		"0) = 0");
	CALL(0, prctl, 15, 0x2000);
	read_string(1, 0x2000, "worker");
	text_is("prctl(PR_SET_NAME, \"worker\", 0, 0, 0) = 0");
}

static void executions(void)
{
	CALL(0, execve, 0x1000, 0x2000, 0x3000);
	read_string(0, 0x1000, "/bin/sh");
	read_string(1, 0x1100, "sh");
	read_string(1, 0x1200, "-c");
	read_string(2, 0x1300, "A=1");
	text_is("execve(\"/bin/sh\", [\"sh\", \"-c\"], 0x3000 /* 1 vars */) "
		"= 0");
	json_is("syscall", "\"name\":\"execve\",\"nr\":59,\"args\":{"
		"\"filename\":\"/bin/sh\",\"argv\":[\"sh\",\"-c\"],"
		"\"envp\":\"0x3000 /* 1 vars */\"},\"result\":0");
	CALL(0, exit_group, 3);
	ev.has &= ~((uint64_t)1 << TR_F_RESULT);
	text_is("exit_group(3) = ?");
}

static void origins_and_unknown_calls(void)
{
	CALL(ERR(ENOSYS), rseq, 0x1000, 32, 0, 0x53053053);
	tr_event_set(&ev, TR_F_ORIGIN, TR_ORIGIN_DENIED);
	text_is("rseq(0x1000, 32, 0, 1392848979) = -1 ENOSYS (denied)");
	json_is("syscall", "\"name\":\"rseq\",\"nr\":334,\"args\":{"
		"\"rseq\":\"0x1000\",\"rseq_len\":32,\"flags\":0,"
		"\"sig\":1392848979},\"result\":-38,\"errno\":\"ENOSYS\","
		"\"origin\":\"denied\"");
	begin_call(999, -ENOSYS, (const uint64_t[6]){1, 2});
	text_is("syscall_999(0x1, 0x2, 0x0, 0x0, 0x0, 0x0) = -1 ENOSYS");
	CALL(ERR(512), read, 0, 0x1000, 5);
	text_is("read(0, 0x1000, 5) = ? ERESTARTSYS");
	ev.type = TR_EV_ENTER;
	text_is("read(0, 0x1000, 5 <unfinished ...>");
	CALL(0, fork, 0);
	ev.type = TR_EV_CLONE;
	tr_event_set(&ev, TR_F_CHILD, 3);
	text_is("fork( <unfinished ...> makes task 3");
	/* An event without registers. */
	begin(TR_EV_SYSCALL);
	tr_event_set(&ev, TR_F_NR, SYS_read);
	text_is("read(...) = ?");
	json_is("syscall", "\"name\":\"read\",\"nr\":0,\"args\":{}");
}

static void signals(void)
{
	uint32_t info[32] = {SIGCHLD, 0, CLD_EXITED, 0, 12, 1000, 7};
	uint32_t fault[32] = {SIGSEGV, 0, SEGV_MAPERR, 0, 0x1234};
	uint32_t sent[32] = {SIGTERM, 0, 0, 0, 5, 6};

	begin(TR_EV_SIGNAL);
	tr_event_set(&ev, TR_F_SIGNO, SIGCHLD);
	tr_event_set(&ev, TR_F_ACTION, TR_SIG_HANDLER);
	ev.siginfo = (struct tr_bytes){info, sizeof info};
	tr_event_mark(&ev, TR_F_SIGINFO);
	text_is("--- SIGCHLD {si_code=CLD_EXITED, si_pid=12, si_uid=1000, "
		"si_status=7} (handler) ---");
	json_is("signal", "\"name\":\"SIGCHLD\",\"siginfo\":{"
		"\"si_code\":\"CLD_EXITED\",\"si_pid\":12,\"si_uid\":1000,"
		"\"si_status\":7},\"signo\":17,\"action\":\"handler\"");
	tr_event_set(&ev, TR_F_SIGNO, SIGSEGV);
	tr_event_set(&ev, TR_F_ACTION, TR_SIG_FATAL);
	ev.siginfo.data = fault;
	text_is("--- SIGSEGV {si_code=SEGV_MAPERR, si_addr=0x1234} (fatal) "
		"---");
	tr_event_set(&ev, TR_F_SIGNO, SIGTERM);
	tr_event_set(&ev, TR_F_ACTION, TR_SIG_NONE);
	ev.siginfo.data = sent;
	text_is("--- SIGTERM {si_code=SI_USER, si_pid=5, si_uid=6} (none) ---");
	/* Damaged: too short. */
	ev.siginfo.len = 12;
	text_is("--- SIGTERM {} (none) ---");
}

static void ends(void)
{
	begin(TR_EV_EXIT);
	tr_event_set(&ev, TR_F_STATUS, 0x300);
	text_is("+++ exited with 3 +++");
	json_is("exit", "\"exit_code\":3,\"status\":768");
	tr_event_set(&ev, TR_F_STATUS, 0x80 | SIGSEGV);
	text_is("+++ killed by SIGSEGV (core dumped) +++");
	json_is("exit", "\"signal\":\"SIGSEGV\",\"core\":true,\"status\":139");
	begin(TR_EV_END);
	tr_event_set(&ev, TR_F_EVENTS, 12);
	tr_event_set(&ev, TR_F_TASKS, 2);
	text_is("end of the recording: 12 events, 2 tasks");
	json_is("end", "\"events\":12,\"tasks\":2");
}

static void catalogue(void)
{
	static const uint8_t digest[32] = {0xab, 0xcd};

	begin(TR_EV_FILE);
	tr_event_set(&ev, TR_F_FILE, 4);
	tr_event_set(&ev, TR_F_METHOD, TR_STORE_LINK);
	tr_event_set(&ev, TR_F_SIZE, 1000);
	tr_event_set(&ev, TR_F_DEV, 0x801);
	ev.text = (struct tr_bytes){"/lib/libc.so", 12};
	tr_event_mark(&ev, TR_F_TEXT);
	text_is("file 4 \"/lib/libc.so\", link, 1000 bytes");
	json_is("file", "\"file\":4,\"method\":\"link\",\"dev\":\"0x801\","
		"\"size\":1000,\"text\":\"/lib/libc.so\"");
	begin(TR_EV_NOTE);
	tr_event_set(&ev, TR_F_CODE, TR_NOTE_UNMODELLED);
	ev.text = (struct tr_bytes){"bpf", 3};
	tr_event_mark(&ev, TR_F_TEXT);
	text_is("note unmodelled: \"bpf\"");
	json_is("note", "\"code\":\"unmodelled\",\"text\":\"bpf\"");
	begin(TR_EV_DIGEST);
	tr_event_set(&ev, TR_F_FILE, 4);
	ev.sha256 = (struct tr_bytes){digest, 32};
	tr_event_mark(&ev, TR_F_SHA256);
	text_is("sha256 of file 4 is abcd00000000000000000000000000000000000000"
		"0000000000000000000000");
	begin(TR_EV_IMAGE);
	ev.text = (struct tr_bytes){"/bin/true", 9};
	tr_event_mark(&ev, TR_F_TEXT);
	ev.nmap = 1;
	maps[0] = (struct tr_map){.start = 0x1000, .end = 0x2000,
				  .prot = PROT_READ | PROT_EXEC,
				  .flags = MAP_PRIVATE, .file = 4,
				  .offset = 0x1000, .name = {"/bin/true", 9}};
	text_is("=== image \"/bin/true\", 1 mapping ===");
	json_is("image", "\"maps\":1,\"text\":\"/bin/true\"");
	begin(TR_EV_START);
	tr_event_set(&ev, TR_F_PID, 100);
	tr_event_set(&ev, TR_F_TID, 101);
	tr_event_set(&ev, TR_F_PARENT, 1);
	text_is("=== start of process 100, thread 101, made by task 1 ===");
	begin(TR_EV_INSN);
	tr_event_set(&ev, TR_F_INSN, TR_INSN_RDTSC);
	ev.regs.rip = 0x401000;
	ev.regs_after.rdx = 1;
	ev.regs_after.rax = 0xffffffff;
	tr_event_mark(&ev, TR_F_REGS);
	tr_event_mark(&ev, TR_F_REGS_AFTER);
	text_is("rdtsc at 0x401000 = 0x1ffffffff");
	begin(TR_EV_STOP);
	tr_event_set(&ev, TR_F_SIGNO, SIGTRAP);
	tr_event_set(&ev, TR_F_PLACE, TR_PLACE_STEP);
	ev.regs.rip = 0x401000;
	tr_event_mark(&ev, TR_F_REGS);
	text_is("held by its tracer: SIGTRAP at 0x401000, a step");
	begin(TR_EV_POKE);
	tr_event_set(&ev, TR_F_DEBUG_REGISTER, 7);
	tr_event_set(&ev, TR_F_VALUE, 0x90001);
	ev.regs_after.rip = 0x401001;
	tr_event_mark(&ev, TR_F_REGS_AFTER);
	text_is("changed by another task: registers, at 0x401001 now "
		"debug register 7 = 0x90001");
}

static bool verbose_has(const char *part, bool json)
{
	struct tr_buf b = {0};
	struct tr_json *j = tr_describe_json(&ev, true);
	char *dump = tr_json_dump(j);
	bool found;

	tr_describe_text(&ev, true, &b);
	tr_buf_put_u8(&b, 0);
	found = strstr(json ? dump : (const char *)b.data, part);
	if (!found)
		printf("# %s\n", json ? dump : (const char *)b.data);
	tr_buf_release(&b);
	free(dump);
	tr_json_free(j);
	return found;
}

static void details(void)
{
	CALL(5, read, 3, 0x2000, 100);
	wrote(0x2000, "hello", 5);
	read_bytes(1, 0x2000, "x", 1);
	ev.nmap = 1;
	maps[0] = (struct tr_map){.start = 0x1000, .end = 0x2000,
				  .prot = PROT_READ | PROT_EXEC,
				  .flags = MAP_PRIVATE, .file = 4,
				  .offset = 0x1000, .name = {"/bin/true", 9}};
	CHECK(verbose_has("\n  wrote 0x2000 +5 \"hello\"", false));
	CHECK(verbose_has("\n  map 0x1000-0x2000 r-xp file 4 at 0x1000 "
			  "\"/bin/true\"", false));
	CHECK(verbose_has(" rsi=0x2000", false));
	CHECK(verbose_has("\"regs\":{\"r15\":\"0x0\"", true));
	CHECK(verbose_has("\"mem\":[{\"addr\":\"0x2000\",\"size\":5,"
			  "\"data\":\"hello\"}]", true));
	CHECK(verbose_has("\"map\":[{\"start\":\"0x1000\",\"end\":\"0x2000\","
			  "\"prot\":5,\"flags\":2,\"file\":4,\"offset\":4096,"
			  "\"name\":\"/bin/true\"}]", true));
	CHECK(verbose_has("\"arg\":[{\"index\":1,\"string\":false,"
			  "\"addr\":\"0x2000\",\"size\":1,\"hash\":\"0x0\","
			  "\"data\":\"x\"}]", true));
}

/* Events of a damaged or hostile trace hold anything. */
static void any_event_is_described(void)
{
	static uint8_t noise[300];
	uint64_t seed = 1;

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t a[6];
		struct tr_buf b = {0};

		for (size_t k = 0; k < sizeof noise; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			noise[k] = (uint8_t)(seed >> 56);
		}
		for (unsigned k = 0; k < 6; k++)
			a[k] = noise[k] & 1 ? 0x1000u * (k + 1) : seed >> k;
		begin_call(noise[10] | (noise[11] & 1u) << 8,
			   noise[12] & 3 ? noise[13] : (int64_t)seed, a);
		for (uint8_t k = 0; k < 6; k++)
			read_bytes(k, 0x1000u * (k + 1u), noise + k,
				   noise[20 + k]);
		for (uint8_t k = 0; k < 6; k++)
			wrote(0x1000u * (k + 1u), noise + k, noise[30 + k]);
		tr_describe_text(&ev, noise[40] & 1, &b);
		CHECK(b.len > 0);
		tr_buf_release(&b);
		tr_json_free(tr_describe_json(&ev, noise[40] & 1));
	}
}

int main(void)
{
	RUN(paths_and_flags);
	RUN(buffers);
	RUN(vectors);
	RUN(structures);
	RUN(commands);
	RUN(executions);
	RUN(origins_and_unknown_calls);
	RUN(signals);
	RUN(ends);
	RUN(catalogue);
	RUN(details);
	RUN(any_event_is_described);
	return check_status();
}
