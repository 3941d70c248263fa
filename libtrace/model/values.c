/* Numbers with names, and structures of the kernel's interface. */
#include "libtrace/model/values.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "libtrace/model/tables.h"

static uint32_t u32(const uint8_t *p)
{
	return tr_get_le32(p);
}

static int32_t i32(const uint8_t *p)
{
	return (int32_t)tr_get_le32(p);
}

static uint64_t u64(const uint8_t *p)
{
	return tr_get_le64(p);
}

static int64_t i64(const uint8_t *p)
{
	return (int64_t)tr_get_le64(p);
}

/* Flags. */

static void enum_name(struct tr_sink *s, const struct tr_flag_set *set,
		      uint32_t v)
{
	const char *name = tr_flag_name(set, v);

	if (name)
		tr_sink_symbol(s, "%s", name);
	else if (v < 4096 || v > UINT32_MAX - 4096)
		tr_sink_symbol(s, "%" PRId32, (int32_t)v);
	else
		tr_sink_symbol(s, "0x%" PRIx32, v);
}

void tr_show_flags(struct tr_sink *s, const struct tr_flag_set *set, uint32_t v)
{
	char text[1024];
	size_t len = 0;
	uint32_t rest = v;

	if (set->is_enum) {
		enum_name(s, set, v);
		return;
	}
	text[0] = '\0';
	for (size_t i = 0; i < set->n && len < sizeof text - 64; i++) {
		const struct tr_flag *f = &set->flags[i];

		/* Bits that an earlier member used are not shown twice. */
		if ((v & f->mask) != f->value || (rest & f->value) != f->value)
			continue;
		rest &= ~(uint32_t)f->mask;
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
					len ? "|" : "", f->name);
	}
	if (rest || !len)
		snprintf(text + len, sizeof text - len,
			 rest ? "%s0x%" PRIx32 : "%s%" PRIu32,
			 len ? "|" : "", rest);
	tr_sink_symbol(s, "%s", text);
}

void tr_show_named_flags(struct tr_sink *s, const char *name, uint32_t v)
{
	const struct tr_flag_set *set = tr_flag_set_find(name);

	if (set)
		tr_show_flags(s, set, v);
	else
		tr_sink_hex(s, v);
}

/* Signals from 32 on have no names of their own: signal(7). */
void tr_show_signal(struct tr_sink *s, int sig)
{
	const char *name = tr_signal_name(sig);

	if (name)
		tr_sink_symbol(s, "%s", name);
	else if (sig >= 32 && sig <= 64)
		tr_sink_symbol(s, "SIGRT_%d", sig - 32);
	else
		tr_sink_int(s, sig);
}

void tr_show_status(struct tr_sink *s, uint32_t status)
{
	int st = (int)status;

	tr_sink_object(s);
	if (WIFEXITED(st)) {
		tr_sink_int(tr_sink_key(s, "exit_code"), WEXITSTATUS(st));
	} else if (WIFSTOPPED(st)) {
		tr_show_signal(tr_sink_key(s, "stopped"), WSTOPSIG(st));
	} else if (WIFCONTINUED(st)) {
		tr_sink_symbol(tr_sink_key(s, "continued"), "SIGCONT");
	} else {
		tr_show_signal(tr_sink_key(s, "signal"), WTERMSIG(st));
		if (WCOREDUMP(st))
			tr_sink_int(tr_sink_key(s, "core"), 1);
	}
	tr_sink_end(s);
}

/* Signal information. */

static const char *code_set(int signo)
{
	switch (signo) {
	case SIGILL:
		return "si_code_ill";
	case SIGFPE:
		return "si_code_fpe";
	case SIGSEGV:
		return "si_code_segv";
	case SIGBUS:
		return "si_code_bus";
	case SIGTRAP:
		return "si_code_trap";
	case SIGCHLD:
		return "si_code_cld";
	case SIGPOLL:
		return "si_code_poll";
	case SIGSYS:
		return "si_code_sys";
	default:
		return NULL;
	}
}

/* Codes above 0 other than SI_KERNEL mean something by signal only. */
static void show_code(struct tr_sink *s, int signo, int code)
{
	const char *set = code > 0 && code < SI_KERNEL ? code_set(signo) : NULL;

	tr_show_named_flags(tr_sink_key(s, "si_code"), set ? set : "si_code",
			    (uint32_t)code);
}

static void sender(struct tr_sink *s, const uint8_t *p)
{
	tr_sink_int(tr_sink_key(s, "si_pid"), i32(p + 16));
	tr_sink_int(tr_sink_key(s, "si_uid"), i32(p + 20));
}

static void show_child(struct tr_sink *s, const uint8_t *p, int code)
{
	sender(s, p);
	tr_sink_key(s, "si_status");
	if (code == CLD_EXITED)
		tr_sink_int(s, i32(p + 24));
	else
		tr_show_signal(s, i32(p + 24));
}

static void show_trap(struct tr_sink *s, const uint8_t *p)
{
	tr_sink_hex(tr_sink_key(s, "si_call_addr"), u64(p + 16));
	tr_sink_int(tr_sink_key(s, "si_syscall"), i32(p + 24));
}

/* Codes up to 0 are made by processes; they have the same shape whatever the
 * signal, sigaction(2). */
static void show_made(struct tr_sink *s, const uint8_t *p, int code)
{
	if (code == SI_TIMER) {
		tr_sink_int(tr_sink_key(s, "si_timerid"), i32(p + 16));
		tr_sink_int(tr_sink_key(s, "si_overrun"), i32(p + 20));
	} else {
		sender(s, p);
	}
	if (code == SI_QUEUE || code == SI_TIMER || code == SI_MESGQ)
		tr_sink_hex(tr_sink_key(s, "si_value"), u64(p + 24));
}

void tr_show_siginfo(struct tr_sink *s, const uint8_t *p, size_t n)
{
	int signo, code;

	tr_sink_object(s);
	if (n >= 48) {
		signo = i32(p);
		code = i32(p + 8);
		show_code(s, signo, code);
		if (code <= 0)
			show_made(s, p, code);
		else if (code == SI_KERNEL)
			;
		else if (signo == SIGCHLD)
			show_child(s, p, code);
		else if (signo == SIGSYS)
			show_trap(s, p);
		else if (signo == SIGPOLL)
			tr_sink_int(tr_sink_key(s, "si_fd"), i32(p + 24));
		else if (code_set(signo))
			tr_sink_hex(tr_sink_key(s, "si_addr"), u64(p + 16));
	}
	tr_sink_end(s);
}

/* Structures. */

static void show_int(struct tr_sink *s, const uint8_t *p, size_t n,
		     uint64_t whole)
{
	(void)n;
	(void)whole;
	tr_sink_array(s);
	tr_sink_int(s, i32(p));
	tr_sink_end(s);
}

static void show_fdpair(struct tr_sink *s, const uint8_t *p, size_t n,
			uint64_t whole)
{
	(void)n;
	(void)whole;
	tr_sink_array(s);
	tr_sink_int(s, i32(p));
	tr_sink_int(s, i32(p + 4));
	tr_sink_end(s);
}

static void show_wstatus(struct tr_sink *s, const uint8_t *p, size_t n,
			 uint64_t whole)
{
	(void)n;
	(void)whole;
	tr_show_status(s, u32(p));
}

static void show_text(struct tr_sink *s, const uint8_t *p, size_t n,
		      uint64_t whole)
{
	const uint8_t *nul = memchr(p, 0, n);

	if (nul)
		n = whole = (uint64_t)(nul - p);
	tr_sink_bytes(s, p, n, whole);
}

/* A text field of fixed size in a structure. */
static void text_field(struct tr_sink *s, const char *key, const uint8_t *p,
		       size_t size)
{
	tr_sink_key(s, key);
	show_text(s, p, size, size);
}

static void two_numbers(struct tr_sink *s, const char *first, int64_t a,
			const char *second, int64_t b)
{
	tr_sink_object(s);
	tr_sink_int(tr_sink_key(s, first), a);
	tr_sink_int(tr_sink_key(s, second), b);
	tr_sink_end(s);
}

static void show_timespec(struct tr_sink *s, const uint8_t *p, size_t n,
			  uint64_t whole)
{
	(void)n;
	(void)whole;
	two_numbers(s, "tv_sec", i64(p), "tv_nsec", i64(p + 8));
}

static void show_timeval(struct tr_sink *s, const uint8_t *p, size_t n,
			 uint64_t whole)
{
	(void)n;
	(void)whole;
	two_numbers(s, "tv_sec", i64(p), "tv_usec", i64(p + 8));
}

static void show_timespecs(struct tr_sink *s, const uint8_t *p, size_t n,
			   uint64_t whole)
{
	tr_sink_array(s);
	show_timespec(s, p, n, whole);
	show_timespec(s, p + 16, n, whole);
	tr_sink_end(s);
}

static void show_timevals(struct tr_sink *s, const uint8_t *p, size_t n,
			  uint64_t whole)
{
	tr_sink_array(s);
	show_timeval(s, p, n, whole);
	show_timeval(s, p + 16, n, whole);
	tr_sink_end(s);
}

static void show_itimerspec(struct tr_sink *s, const uint8_t *p, size_t n,
			    uint64_t whole)
{
	tr_sink_object(s);
	tr_sink_key(s, "it_interval");
	show_timespec(s, p, n, whole);
	tr_sink_key(s, "it_value");
	show_timespec(s, p + 16, n, whole);
	tr_sink_end(s);
}

static void show_itimerval(struct tr_sink *s, const uint8_t *p, size_t n,
			   uint64_t whole)
{
	tr_sink_object(s);
	tr_sink_key(s, "it_interval");
	show_timeval(s, p, n, whole);
	tr_sink_key(s, "it_value");
	show_timeval(s, p + 16, n, whole);
	tr_sink_end(s);
}

static void limit_value(struct tr_sink *s, const char *key, uint64_t v)
{
	tr_sink_key(s, key);
	if (v == UINT64_MAX)
		tr_sink_symbol(s, "RLIM64_INFINITY");
	else
		tr_sink_uint(s, v);
}

static void show_rlimit(struct tr_sink *s, const uint8_t *p, size_t n,
			uint64_t whole)
{
	(void)n;
	(void)whole;
	tr_sink_object(s);
	limit_value(s, "rlim_cur", u64(p));
	limit_value(s, "rlim_max", u64(p + 8));
	tr_sink_end(s);
}

/* Type and permissions, as "S_IFREG|0644". */
static void file_mode(struct tr_sink *s, const char *key, uint32_t mode)
{
	static const struct {
		uint32_t value;
		const char *name;
	} types[] = {
		{S_IFREG, "S_IFREG"}, {S_IFDIR, "S_IFDIR"},
		{S_IFLNK, "S_IFLNK"}, {S_IFCHR, "S_IFCHR"},
		{S_IFBLK, "S_IFBLK"}, {S_IFIFO, "S_IFIFO"},
		{S_IFSOCK, "S_IFSOCK"},
	};

	tr_sink_key(s, key);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (types[i].value == (mode & S_IFMT)) {
			tr_sink_symbol(s, "%s|%04" PRIo32, types[i].name,
				       mode & ~(uint32_t)S_IFMT);
			return;
		}
	}
	tr_sink_octal(s, mode);
}

/* struct stat of x86-64: mode at 24, size at 48. */
static void show_stat(struct tr_sink *s, const uint8_t *p, size_t n,
		      uint64_t whole)
{
	(void)n;
	(void)whole;
	tr_sink_object(s);
	file_mode(s, "st_mode", u32(p + 24));
	tr_sink_int(tr_sink_key(s, "st_size"), i64(p + 48));
	tr_sink_end(s);
}

static void show_statx(struct tr_sink *s, const uint8_t *p, size_t n,
		       uint64_t whole)
{
	(void)n;
	(void)whole;
	tr_sink_object(s);
	tr_show_named_flags(tr_sink_key(s, "stx_mask"), "statx", u32(p));
	file_mode(s, "stx_mode", tr_get_le16(p + 28));
	tr_sink_uint(tr_sink_key(s, "stx_size"), u64(p + 40));
	tr_sink_end(s);
}

static void show_utsname(struct tr_sink *s, const uint8_t *p, size_t n,
			 uint64_t whole)
{
	(void)n;
	(void)whole;
	tr_sink_object(s);
	text_field(s, "sysname", p, 65);
	text_field(s, "nodename", p + 65, 65);
	text_field(s, "release", p + 130, 65);
	tr_sink_end(s);
}

/* Arrays show as many elements as there are bytes, and say how many not. */
#define MAX_ELEMENTS 16u

static void array(struct tr_sink *s, const uint8_t *p, size_t n, uint64_t whole,
		  size_t size, void (*element)(struct tr_sink *,
					       const uint8_t *))
{
	size_t shown = n / size;

	if (shown > MAX_ELEMENTS)
		shown = MAX_ELEMENTS;
	tr_sink_array(s);
	for (size_t i = 0; i < shown; i++)
		element(s, p + i * size);
	if (whole / size > shown)
		tr_sink_symbol(s, "... %" PRIu64 " more", whole / size - shown);
	tr_sink_end(s);
}

static void pollfd(struct tr_sink *s, const uint8_t *p)
{
	tr_sink_object(s);
	tr_sink_int(tr_sink_key(s, "fd"), i32(p));
	tr_show_named_flags(tr_sink_key(s, "events"), "poll",
			    tr_get_le16(p + 4));
	if (tr_get_le16(p + 6))
		tr_show_named_flags(tr_sink_key(s, "revents"), "poll",
				    tr_get_le16(p + 6));
	tr_sink_end(s);
}

static void show_pollfd(struct tr_sink *s, const uint8_t *p, size_t n,
			uint64_t whole)
{
	array(s, p, n, whole, 8, pollfd);
}

static void epoll_event(struct tr_sink *s, const uint8_t *p)
{
	tr_sink_object(s);
	tr_show_named_flags(tr_sink_key(s, "events"), "epoll", u32(p));
	tr_sink_hex(tr_sink_key(s, "data"), u64(p + 4));
	tr_sink_end(s);
}

static void show_epoll_event(struct tr_sink *s, const uint8_t *p, size_t n,
			     uint64_t whole)
{
	array(s, p, n, whole, 12, epoll_event);
}

static void signal_mask(struct tr_sink *s, uint64_t mask)
{
	tr_sink_array(s);
	if (mask == UINT64_MAX) {
		tr_sink_symbol(s, "ALL");
	} else {
		for (int sig = 1; sig <= 64; sig++)
			if (mask >> (sig - 1) & 1)
				tr_show_signal(s, sig);
	}
	tr_sink_end(s);
}

static void show_sigset(struct tr_sink *s, const uint8_t *p, size_t n,
			uint64_t whole)
{
	(void)n;
	(void)whole;
	signal_mask(s, u64(p));
}

/* The kernel's structure: handler, flags, restorer, mask. */
static void show_sigaction(struct tr_sink *s, const uint8_t *p, size_t n,
			   uint64_t whole)
{
	uint64_t act = u64(p);

	(void)n;
	(void)whole;
	tr_sink_object(s);
	tr_sink_key(s, "sa_handler");
	if (act <= 1)
		tr_sink_symbol(s, act ? "SIG_IGN" : "SIG_DFL");
	else
		tr_sink_hex(s, act);
	tr_sink_key(s, "sa_mask");
	signal_mask(s, u64(p + 24));
	tr_show_named_flags(tr_sink_key(s, "sa_flags"), "sigaction",
			    u32(p + 8));
	tr_sink_end(s);
}

static void show_siginfo(struct tr_sink *s, const uint8_t *p, size_t n,
			 uint64_t whole)
{
	(void)whole;
	if (u32(p) == 0) { /* waitid(2) found nobody */
		tr_sink_object(s);
		tr_sink_end(s);
		return;
	}
	tr_show_siginfo(s, p, n);
}

static void show_open_how(struct tr_sink *s, const uint8_t *p, size_t n,
			  uint64_t whole)
{
	(void)n;
	(void)whole;
	tr_sink_object(s);
	tr_show_named_flags(tr_sink_key(s, "flags"), "open", u32(p));
	tr_sink_octal(tr_sink_key(s, "mode"), u64(p + 8));
	tr_sink_hex(tr_sink_key(s, "resolve"), u64(p + 16));
	tr_sink_end(s);
}

/* A descriptor set of select(2): the descriptors in it. */
static void show_fdset(struct tr_sink *s, const uint8_t *p, size_t n,
		       uint64_t whole)
{
	unsigned shown = 0;

	(void)whole;
	tr_sink_array(s);
	for (size_t bit = 0; bit < 8 * n && shown < 2 * MAX_ELEMENTS; bit++) {
		if (p[bit / 8] >> (bit % 8) & 1) {
			tr_sink_uint(s, bit);
			shown++;
		}
	}
	tr_sink_end(s);
}

/* Socket addresses. */

static void inet_address(struct tr_sink *s, int family, const uint8_t *addr)
{
	char text[INET6_ADDRSTRLEN];

	tr_sink_key(s, family == AF_INET ? "sin_addr" : "sin6_addr");
	if (inet_ntop(family, addr, text, sizeof text))
		tr_sink_bytes(s, text, strlen(text), strlen(text));
	else
		tr_sink_null(s);
}

static unsigned port(const uint8_t *p)
{
	return (unsigned)p[2] << 8 | p[3];
}

/* A path, or after a NUL byte an abstract name: unix(7). */
static void unix_address(struct tr_sink *s, const uint8_t *p, size_t n,
			 uint64_t whole)
{
	if (n <= 2)
		return;
	tr_sink_key(s, "sun_path");
	if (p[2] == 0)
		tr_sink_bytes(s, p + 2, n - 2, whole - 2);
	else
		show_text(s, p + 2, n - 2, whole - 2);
}

static void show_sockaddr(struct tr_sink *s, const uint8_t *p, size_t n,
			  uint64_t whole)
{
	uint32_t family = tr_get_le16(p);

	tr_sink_object(s);
	tr_show_named_flags(tr_sink_key(s, "sa_family"), "socket_domain",
			    family);
	if (family == AF_UNIX) {
		unix_address(s, p, n, whole);
	} else if (family == AF_INET && n >= 8) {
		tr_sink_uint(tr_sink_key(s, "sin_port"), port(p));
		inet_address(s, AF_INET, p + 4);
	} else if (family == AF_INET6 && n >= 24) {
		tr_sink_uint(tr_sink_key(s, "sin6_port"), port(p));
		inet_address(s, AF_INET6, p + 8);
	} else if (family == AF_NETLINK && n >= 12) {
		tr_sink_uint(tr_sink_key(s, "nl_pid"), u32(p + 4));
		tr_sink_hex(tr_sink_key(s, "nl_groups"), u32(p + 8));
	} else if (n > 2) {
		tr_sink_bytes(tr_sink_key(s, "sa_data"), p + 2, n - 2,
			      whole - 2);
	}
	tr_sink_end(s);
}

static const struct {
	const char *name;
	size_t min; /* bytes needed */
	void (*show)(struct tr_sink *s, const uint8_t *p, size_t n,
		     uint64_t whole);
} structs[] = {
	{"int", 4, show_int},
	{"timerid", 4, show_int},
	{"fdpair", 8, show_fdpair},
	{"wstatus", 4, show_wstatus},
	{"text", 0, show_text},
	{"timespec", 16, show_timespec},
	{"timeval", 16, show_timeval},
	{"timespecs", 32, show_timespecs},
	{"timevals", 32, show_timevals},
	{"itimerspec", 32, show_itimerspec},
	{"itimerval", 32, show_itimerval},
	{"rlimit", 16, show_rlimit},
	{"stat", 144, show_stat},
	{"statx", 256, show_statx},
	{"utsname", 390, show_utsname},
	{"pollfd", 0, show_pollfd},
	{"epoll_event", 0, show_epoll_event},
	{"sigset", 8, show_sigset},
	{"sigaction", 32, show_sigaction},
	{"siginfo", 48, show_siginfo},
	{"open_how", 24, show_open_how},
	{"fdset", 0, show_fdset},
	{"sockaddr", 2, show_sockaddr},
};

bool tr_show_struct(struct tr_sink *s, const char *name, const uint8_t *p,
		    size_t n, uint64_t whole)
{
	for (size_t i = 0; i < sizeof structs / sizeof *structs; i++) {
		if (strcmp(structs[i].name, name) != 0)
			continue;
		if (n < structs[i].min)
			return false;
		structs[i].show(s, p, n, whole < n ? n : whole);
		return true;
	}
	return false;
}
