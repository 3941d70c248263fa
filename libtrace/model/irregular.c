/*
 * Memory effects that depend on a command, on other memory or on arithmetic a
 * table cannot say.  Each handler runs at entry and at exit: the functions of
 * effects.h ignore what does not belong to the moment.
 *
 * A handler returns false when the call succeeded and did something the model
 * does not know; a call that failed has no other effects than those listed.
 */
#include "libtrace/model/irregular.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "libtrace/model/msghdr.h"
#include "libtrace/model/tables.h"

typedef bool handler(struct tr_fx *fx);

#define ARG(i) (fx->call->args[i])
#define ARG32(i) ((uint32_t)fx->call->args[i])

/* The result as a length of at most `most`. */
static uint64_t result_upto(const struct tr_fx *fx, uint64_t most)
{
	uint64_t n = fx->call->result > 0 ? (uint64_t)fx->call->result : 0;

	return n < most ? n : most;
}

static void inout(struct tr_fx *fx, unsigned arg, uint64_t addr, uint64_t len)
{
	tr_fx_in(fx, arg, addr, len);
	tr_fx_out(fx, arg, addr, len);
}

/* What to answer for a command the model does not know. */
static bool unknown(const struct tr_fx *fx)
{
	return !tr_fx_ok(fx);
}

/* A command's memory: which bytes, in which direction. */
struct command {
	uint32_t cmd;
	enum tr_dir dir; /* 0: no memory */
	uint32_t size;
};

static bool by_command(struct tr_fx *fx, unsigned arg, uint32_t cmd,
		       const struct command *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (c[i].cmd != cmd)
			continue;
		if (c[i].dir & TR_DIR_IN)
			tr_fx_in(fx, arg, ARG(arg), c[i].size);
		if (c[i].dir & TR_DIR_OUT)
			tr_fx_out(fx, arg, ARG(arg), c[i].size);
		return true;
	}
	return unknown(fx);
}

#define BY_COMMAND(fx, arg, cmd, table) \
	by_command(fx, arg, cmd, table, sizeof(table) / sizeof *(table))

/*
 * fd_set in whole longs.  select(2) leaves the sets alone when it fails, and
 * looks at no more descriptors than the process can have: what is not
 * readable was not touched.
 */
static void fd_sets(struct tr_fx *fx)
{
	int32_t nfds = (int32_t)ARG(0);
	uint64_t len = nfds <= 0 ? 0 : ((uint64_t)nfds + 63) / 64 * 8;

	if (len > 131072) /* fs.nr_open bits */
		len = 131072;
	for (unsigned i = 1; i <= 3; i++)
		inout(fx, i, ARG(i), len);
}

static bool do_select(struct tr_fx *fx)
{
	fd_sets(fx);
	return true;
}

/* The sixth argument points to the address and size of the signal mask. */
static bool do_pselect6(struct tr_fx *fx)
{
	uint64_t mask, size;

	fd_sets(fx);
	tr_fx_in(fx, 5, ARG(5), 16);
	if (ARG(5) && tr_fx_u64(fx, ARG(5), &mask) &&
	    tr_fx_u64(fx, ARG(5) + 8, &size) && size <= 128)
		tr_fx_in(fx, 5, mask, size);
	return true;
}

static bool do_mincore(struct tr_fx *fx)
{
	tr_fx_out(fx, 2, ARG(2), (ARG(1) >> 12) + (ARG(1) % 4096 != 0));
	return true;
}

static bool do_getsockopt(struct tr_fx *fx)
{
	enum { SOL_SOCKET_ = 1, SO_GET_FILTER_ = 26, SOL_TCP_ = 6,
	       TCP_ZEROCOPY_RECEIVE_ = 35 };
	uint32_t level = ARG32(1), name = ARG32(2), now;
	uint64_t len;

	if (!tr_fx_u32(fx, ARG(4), &now))
		return true;
	if (!fx->exit) {
		fx->call->entry_len[4] = now;
		return true;
	}
	if (level == SOL_TCP_ && name == TCP_ZEROCOPY_RECEIVE_)
		return unknown(fx); /* maps pages */
	len = now < fx->call->entry_len[4] ? now : fx->call->entry_len[4];
	if (level == SOL_SOCKET_ && name == SO_GET_FILTER_)
		len *= 8; /* counted in instructions: socket(7) */
	tr_fx_out(fx, 3, ARG(3), len);
	return true;
}

/* CLONE_PIDFD and CLONE_PARENT_SETTID share the argument, clone(2). */
static bool do_clone(struct tr_fx *fx)
{
	if (ARG(0) & (0x00001000u | 0x00100000u))
		tr_fx_out(fx, 2, ARG(2), 4);
	return true;
}

static bool do_shmctl(struct tr_fx *fx)
{
	static const struct command table[] = {
		{0, 0, 0}, {1, TR_DIR_IN, 112}, {2, TR_DIR_OUT, 112},
		{3, TR_DIR_OUT, 72}, {11, 0, 0}, {12, 0, 0},
		{13, TR_DIR_OUT, 112}, {14, TR_DIR_OUT, 48},
		{15, TR_DIR_OUT, 112},
	};

	return BY_COMMAND(fx, 2, ARG32(1), table);
}

static bool do_msgctl(struct tr_fx *fx)
{
	static const struct command table[] = {
		{0, 0, 0}, {1, TR_DIR_IN, 120}, {2, TR_DIR_OUT, 120},
		{3, TR_DIR_OUT, 32}, {11, TR_DIR_OUT, 120},
		{12, TR_DIR_OUT, 32}, {13, TR_DIR_OUT, 120},
	};

	return BY_COMMAND(fx, 2, ARG32(1), table);
}

/*
 * GETALL fills one short per semaphore of the set; how many those are is not
 * in the caller's memory, so that as many as a set can have (SEMMSL) are
 * listed.
 */
static bool do_semctl(struct tr_fx *fx)
{
	static const struct command table[] = {
		{0, 0, 0}, {1, TR_DIR_IN, 104}, {2, TR_DIR_OUT, 104},
		{3, TR_DIR_OUT, 40}, {11, 0, 0}, {12, 0, 0},
		{13, TR_DIR_OUT, 2 * 32000}, {14, 0, 0}, {15, 0, 0},
		{16, 0, 0}, {17, 0, 0}, {18, TR_DIR_OUT, 104},
		{19, TR_DIR_OUT, 40}, {20, TR_DIR_OUT, 104},
	};

	return BY_COMMAND(fx, 3, ARG32(2), table);
}

/* struct msgbuf begins with a long that the size does not count. */
static bool do_msgsnd(struct tr_fx *fx)
{
	if (ARG(2) <= INT32_MAX)
		tr_fx_in(fx, 1, ARG(1), 8 + ARG(2));
	return true;
}

static bool do_msgrcv(struct tr_fx *fx)
{
	if (fx->call->result >= 0)
		tr_fx_out(fx, 1, ARG(1), 8 + result_upto(fx, ARG(2)));
	return true;
}

static bool do_fcntl(struct tr_fx *fx)
{
	static const struct command table[] = {
		{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {4, 0, 0},
		{5, TR_DIR_INOUT, 32},       /* F_GETLK */
		{6, TR_DIR_IN, 32},          /* F_SETLK */
		{7, TR_DIR_IN, 32},          /* F_SETLKW */
		{8, 0, 0}, {9, 0, 0}, {10, 0, 0}, {11, 0, 0},
		{15, TR_DIR_IN, 8},          /* F_SETOWN_EX */
		{16, TR_DIR_OUT, 8},         /* F_GETOWN_EX */
		{17, TR_DIR_OUT, 8},         /* F_GETOWNER_UIDS */
		{36, TR_DIR_INOUT, 32},      /* F_OFD_GETLK */
		{37, TR_DIR_IN, 32},         /* F_OFD_SETLK */
		{38, TR_DIR_IN, 32},         /* F_OFD_SETLKW */
		{1024, 0, 0}, {1025, 0, 0},  /* leases */
		{1026, 0, 0},                /* F_NOTIFY */
		{1027, 0, 0}, {1028, 0, 0},  /* F_DUPFD_QUERY, F_CREATED_ */
		{1029, TR_DIR_IN, 32},       /* F_CANCELLK */
		{1030, 0, 0},                /* F_DUPFD_CLOEXEC */
		{1031, 0, 0}, {1032, 0, 0},  /* pipe sizes */
		{1033, 0, 0}, {1034, 0, 0},  /* seals */
		{1035, TR_DIR_OUT, 8}, {1036, TR_DIR_IN, 8}, /* hints */
		{1037, TR_DIR_OUT, 8}, {1038, TR_DIR_IN, 8},
	};

	return BY_COMMAND(fx, 2, ARG32(1), table);
}

/* The action decides whether there is a buffer, syslog(2). */
static bool do_syslog(struct tr_fx *fx)
{
	if (ARG32(0) >= 2 && ARG32(0) <= 4)
		tr_fx_out(fx, 1, ARG(1), result_upto(fx, ARG32(2)));
	return true;
}

/* One or two sets of three words, by the version in the header. */
static uint64_t capability_bytes(const struct tr_fx *fx)
{
	uint32_t version;

	if (!tr_fx_u32(fx, ARG(0), &version))
		return 0;
	return version == 0x19980330 ? 12 : 24;
}

static bool do_capget(struct tr_fx *fx)
{
	tr_fx_out(fx, 1, ARG(1), capability_bytes(fx));
	return true;
}

static bool do_capset(struct tr_fx *fx)
{
	tr_fx_in(fx, 1, ARG(1), capability_bytes(fx));
	return true;
}

/* Option 2 copies a filesystem's name, sysfs(2). */
static bool do_sysfs(struct tr_fx *fx)
{
	if (ARG32(0) == 1)
		tr_fx_string(fx, 1, ARG(1));
	if (ARG32(0) == 2)
		tr_fx_out(fx, 2, ARG(2), 64);
	return true;
}

static bool prctl_without_memory(uint32_t option)
{
	static const uint32_t options[] = {
		1, 3, 4, 7, 8,          /* death signal, dumpable, keepcaps */
		21,                     /* PR_GET_SECCOMP */
		23, 24, 27, 28, 29, 30, /* capability bounds, securebits, slack */
		31, 32, 33, 34,         /* perf events, machine checks */
		36, 38, 39, 41, 42,     /* subreaper, no_new_privs, THP */
		47,                     /* PR_CAP_AMBIENT */
		52, 53, 57, 58,         /* speculation, I/O flusher */
		65, 66, 67, 68, 77, 78, /* MDWE, KSM, timer ids, futex hash */
		0x59616d61,             /* PR_SET_PTRACER */
	};

	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (options[i] == option)
			return true;
	return false;
}

static bool do_prctl(struct tr_fx *fx)
{
	switch (ARG32(0)) {
	case 2:  /* PR_GET_PDEATHSIG */
	case 25: /* PR_GET_TSC */
	case 37: /* PR_GET_CHILD_SUBREAPER */
		tr_fx_out(fx, 1, ARG(1), 4);
		return true;
	case 15: /* PR_SET_NAME */
		tr_fx_string(fx, 1, ARG(1));
		return true;
	case 16: /* PR_GET_NAME */
		tr_fx_out(fx, 1, ARG(1), 16);
		return true;
	case 40: /* PR_GET_TID_ADDRESS */
		tr_fx_out(fx, 1, ARG(1), 8);
		return true;
	case 62: /* PR_SCHED_CORE: PR_SCHED_CORE_GET gives a cookie */
		if (ARG32(1) == 0)
			tr_fx_out(fx, 4, ARG(4), 8);
		return true;
	case 0x53564d41: /* PR_SET_VMA: PR_SET_VMA_ANON_NAME */
		tr_fx_string(fx, 4, ARG(4));
		return true;
	case 0x41555856: /* PR_GET_AUXV: the whole length is returned */
		tr_fx_out(fx, 1, ARG(1), result_upto(fx, ARG(2)));
		return true;
	default:
		return prctl_without_memory(ARG32(0)) || unknown(fx);
	}
}

/*
 * The fs and gs bases are registers, which the event holds.  What would have
 * to be done again (CPUID faulting, vdso mappings, AMX permission, pointer
 * tagging, shadow stacks) is not known.
 */
static bool do_arch_prctl(struct tr_fx *fx)
{
	static const struct command table[] = {
		{0x1001, 0, 0}, {0x1002, 0, 0}, /* ARCH_SET_GS, _FS */
		{0x1003, TR_DIR_OUT, 8},        /* ARCH_GET_FS */
		{0x1004, TR_DIR_OUT, 8},        /* ARCH_GET_GS */
		{0x1011, 0, 0},                 /* ARCH_GET_CPUID */
		{0x1021, TR_DIR_OUT, 8},        /* ARCH_GET_XCOMP_SUPP */
		{0x1022, TR_DIR_OUT, 8},        /* ARCH_GET_XCOMP_PERM */
		{0x1024, TR_DIR_OUT, 8},        /* .._GUEST_PERM */
		{0x4001, TR_DIR_OUT, 8},        /* ARCH_GET_UNTAG_MASK */
		{0x4003, TR_DIR_OUT, 8},        /* ARCH_GET_MAX_TAG_BITS */
		{0x5005, TR_DIR_OUT, 8},        /* ARCH_SHSTK_STATUS */
	};

	return BY_COMMAND(fx, 1, ARG32(0), table);
}

/* Commands of quotactl(2), without the quota type in the low byte. */
static bool quota(struct tr_fx *fx, uint32_t cmd)
{
	static const struct command table[] = {
		{0x800001, 0, 0},              /* Q_SYNC */
		{0x800003, 0, 0},              /* Q_QUOTAOFF */
		{0x800004, TR_DIR_OUT, 4},     /* Q_GETFMT */
		{0x800005, TR_DIR_OUT, 24},    /* Q_GETINFO */
		{0x800006, TR_DIR_IN, 24},     /* Q_SETINFO */
		{0x800007, TR_DIR_OUT, 72},    /* Q_GETQUOTA */
		{0x800008, TR_DIR_IN, 72},     /* Q_SETQUOTA */
		{0x800009, TR_DIR_OUT, 72},    /* Q_GETNEXTQUOTA */
		{0x5801, TR_DIR_IN, 4},        /* Q_XQUOTAON */
		{0x5802, TR_DIR_IN, 4},        /* Q_XQUOTAOFF */
		{0x5803, TR_DIR_OUT, 112},     /* Q_XGETQUOTA */
		{0x5804, TR_DIR_IN, 112},      /* Q_XSETQLIM */
		{0x5805, TR_DIR_OUT, 80},      /* Q_XGETQSTAT */
		{0x5806, TR_DIR_IN, 4},        /* Q_XQUOTARM */
		{0x5807, 0, 0},                /* Q_XQUOTASYNC */
		{0x5809, TR_DIR_OUT, 112},     /* Q_XGETNEXTQUOTA */
	};

	if (cmd >> 8 == 0x800002) { /* Q_QUOTAON */
		tr_fx_string(fx, 3, ARG(3));
		return true;
	}
	return BY_COMMAND(fx, 3, cmd >> 8, table);
}

static bool do_quotactl(struct tr_fx *fx)
{
	return quota(fx, ARG32(0));
}

static bool do_quotactl_fd(struct tr_fx *fx)
{
	return quota(fx, ARG32(1));
}

/*
 * futex(2): the priority-inheritance operations write owner and waiter bits
 * into the word even when they fail; FUTEX_WAKE_OP changes the second word.
 * The fourth argument is a number for operations that do not wait.
 */
static bool do_futex(struct tr_fx *fx)
{
	switch (ARG32(1) & 0x7f) {
	case 0: /* FUTEX_WAIT */
	case 9: /* FUTEX_WAIT_BITSET */
		tr_fx_in(fx, 0, ARG(0), 4);
		tr_fx_in(fx, 3, ARG(3), 16);
		return true;
	case 1:  /* FUTEX_WAKE */
	case 3:  /* FUTEX_REQUEUE */
	case 4:  /* FUTEX_CMP_REQUEUE */
	case 10: /* FUTEX_WAKE_BITSET */
		return true;
	case 6:  /* FUTEX_LOCK_PI */
	case 13: /* FUTEX_LOCK_PI2 */
		tr_fx_in(fx, 3, ARG(3), 16);
		tr_fx_out_always(fx, 0, ARG(0), 4);
		return true;
	case 7: /* FUTEX_UNLOCK_PI */
	case 8: /* FUTEX_TRYLOCK_PI */
		tr_fx_out_always(fx, 0, ARG(0), 4);
		return true;
	case 11: /* FUTEX_WAIT_REQUEUE_PI */
		tr_fx_in(fx, 3, ARG(3), 16);
		tr_fx_out_always(fx, 4, ARG(4), 4);
		return true;
	case 5:  /* FUTEX_WAKE_OP */
	case 12: /* FUTEX_CMP_REQUEUE_PI */
		tr_fx_out_always(fx, 4, ARG(4), 4);
		return true;
	default:
		return unknown(fx);
	}
}

/* A node mask of maxnode bits, in whole longs. */
static uint64_t node_bytes(uint64_t maxnode)
{
	return maxnode > 8 * 4096 ? 4096 : (maxnode + 63) / 64 * 8;
}

static bool do_mbind(struct tr_fx *fx)
{
	tr_fx_in(fx, 3, ARG(3), node_bytes(ARG(4)));
	return true;
}

static bool do_set_mempolicy(struct tr_fx *fx)
{
	tr_fx_in(fx, 1, ARG(1), node_bytes(ARG(2)));
	return true;
}

static bool do_get_mempolicy(struct tr_fx *fx)
{
	tr_fx_out(fx, 1, ARG(1), node_bytes(ARG(2)));
	return true;
}

static bool do_migrate_pages(struct tr_fx *fx)
{
	tr_fx_in(fx, 2, ARG(2), node_bytes(ARG(1)));
	tr_fx_in(fx, 3, ARG(3), node_bytes(ARG(1)));
	return true;
}

/* Operations of keyctl(2) that only take numbers, or nothing. */
static bool keyctl_without_memory(uint32_t op)
{
	switch (op) {
	case 0: case 3: case 4: case 5: case 7: case 8: case 9: case 13:
	case 14: case 15: case 16: case 18: case 19: case 21: case 22: case 30:
		return true;
	default:
		return false;
	}
}

static bool do_keyctl(struct tr_fx *fx)
{
	switch (ARG32(0)) {
	case 1: /* KEYCTL_JOIN_SESSION_KEYRING */
		tr_fx_string(fx, 1, ARG(1));
		return true;
	case 2:  /* KEYCTL_UPDATE */
	case 12: /* KEYCTL_INSTANTIATE */
		tr_fx_in(fx, 2, ARG(2), ARG(3));
		return true;
	case 10: /* KEYCTL_SEARCH */
	case 29: /* KEYCTL_RESTRICT_KEYRING */
		tr_fx_string(fx, 2, ARG(2));
		tr_fx_string(fx, 3, ARG(3));
		return true;
	case 6:  /* KEYCTL_DESCRIBE */
	case 11: /* KEYCTL_READ */
	case 17: /* KEYCTL_GET_SECURITY */
	case 23: /* KEYCTL_DH_COMPUTE */
		tr_fx_out(fx, 2, ARG(2), result_upto(fx, ARG(3)));
		return true;
	case 31: /* KEYCTL_CAPABILITIES */
		tr_fx_out(fx, 1, ARG(1), result_upto(fx, ARG(2)));
		return true;
	default:
		return keyctl_without_memory(ARG32(0)) || unknown(fx);
	}
}

/*
 * vmsplice(2) reads the buffers when the descriptor is the write end of a
 * pipe and fills them when it is the read end.
 */
static bool do_vmsplice(struct tr_fx *fx)
{
	tr_fx_iovec(fx, 1, ARG(1), ARG(2), TR_DIR_INOUT, result_upto(fx, ~0ul));
	return true;
}

/* The structure holds its size; E2BIG writes the one the kernel has. */
static bool do_perf_event_open(struct tr_fx *fx)
{
	uint32_t size;

	if (ARG(0) && tr_fx_u32(fx, ARG(0) + 4, &size))
		tr_fx_in(fx, 0, ARG(0), size ? size : 64);
	tr_fx_out_always(fx, 0, ARG(0), 8);
	return true;
}

static bool do_sched_setattr(struct tr_fx *fx)
{
	uint32_t size;

	if (tr_fx_u32(fx, ARG(1), &size))
		tr_fx_in(fx, 1, ARG(1), size ? size : 48);
	tr_fx_out_always(fx, 1, ARG(1), 4);
	return true;
}

#define MAX_MSG 0x7ffff000u

/* Each element is a struct msghdr and the bytes it took. */
static bool do_sendmmsg(struct tr_fx *fx)
{
	uint64_t n = ARG32(2) < 1024 ? ARG32(2) : 1024; /* UIO_MAXIOV */

	if (fx->exit)
		n = result_upto(fx, n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = ARG(1) + i * MMSG_SIZE;

		if (!fx->exit)
			tr_fx_msg(fx, 1, at, TR_DIR_IN, 0, 0);
		tr_fx_out(fx, 1, at + MMSG_LEN, 4);
	}
	return true;
}

static bool do_recvmmsg(struct tr_fx *fx)
{
	uint64_t n = ARG32(2) < 1024 ? ARG32(2) : 1024;
	uint32_t len;

	if (fx->exit)
		n = result_upto(fx, n);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = ARG(1) + i * MMSG_SIZE;

		if (!tr_fx_u32(fx, at + MMSG_LEN, &len))
			break;
		/* No name is longer than a sockaddr_storage. */
		tr_fx_msg(fx, 1, at, TR_DIR_OUT,
			  fx->most ? MAX_MSG : fx->exit ? len : 0, 128);
		tr_fx_out(fx, 1, at + MMSG_LEN, 4);
	}
	return true;
}

/* EOVERFLOW writes the size that is needed, name_to_handle_at(2). */
static bool do_name_to_handle_at(struct tr_fx *fx)
{
	enum { AT_HANDLE_MNT_ID_UNIQUE_ = 1 };
	uint32_t bytes;

	if (!fx->exit && tr_fx_u32(fx, ARG(2), &bytes))
		fx->call->entry_len[2] = bytes < 128 ? bytes : 128;
	tr_fx_in(fx, 2, ARG(2), 8);
	tr_fx_out_always(fx, 2, ARG(2), 8 + fx->call->entry_len[2]);
	tr_fx_out_always(fx, 3, ARG(3),
			 ARG32(4) & AT_HANDLE_MNT_ID_UNIQUE_ ? 8 : 4);
	return true;
}

static bool do_open_by_handle_at(struct tr_fx *fx)
{
	uint32_t bytes;

	if (tr_fx_u32(fx, ARG(1), &bytes) && bytes <= 128)
		tr_fx_in(fx, 1, ARG(1), 8 + bytes);
	return true;
}

/* A filter would act on the engine's own calls in the tracee. */
static bool do_seccomp(struct tr_fx *fx)
{
	static const struct command table[] = {
		{2, TR_DIR_IN, 4},  /* SECCOMP_GET_ACTION_AVAIL */
		{3, TR_DIR_OUT, 6}, /* SECCOMP_GET_NOTIF_SIZES */
	};

	return BY_COMMAND(fx, 2, ARG32(0), table);
}

/* struct mnt_id_req begins with its size. */
static bool do_mnt_id_req(struct tr_fx *fx)
{
	uint32_t size;

	if (tr_fx_u32(fx, ARG(0), &size) && size <= 4096)
		tr_fx_in(fx, 0, ARG(0), size);
	return true;
}

/* struct xattr_args: address and size of the value. */
static bool do_setxattrat(struct tr_fx *fx)
{
	uint64_t value;
	uint32_t size;

	tr_fx_in(fx, 4, ARG(4), 16);
	if (ARG(4) && tr_fx_u64(fx, ARG(4), &value) &&
	    tr_fx_u32(fx, ARG(4) + 8, &size) && size <= 65536)
		tr_fx_in(fx, 4, value, size);
	return true;
}

static bool do_getxattrat(struct tr_fx *fx)
{
	uint64_t value;
	uint32_t size;

	tr_fx_in(fx, 4, ARG(4), 16);
	if (ARG(4) && tr_fx_u64(fx, ARG(4), &value) &&
	    tr_fx_u32(fx, ARG(4) + 8, &size))
		tr_fx_out(fx, 4, value, result_upto(fx, size));
	return true;
}

/* struct ifconf: the buffer's length and address, netdevice(7). */
static bool ioctl_ifconf(struct tr_fx *fx)
{
	uint64_t buf;
	uint32_t len;

	inout(fx, 2, ARG(2), 16);
	if (ARG(2) && tr_fx_u32(fx, ARG(2), &len) &&
	    tr_fx_u64(fx, ARG(2) + 8, &buf) && len <= INT32_MAX)
		tr_fx_out(fx, 2, buf, len);
	return true;
}

/*
 * A header of 32 bytes with the number of extents of 56 bytes found, which is
 * written when the filesystem reports an error, too (ioctl_fiemap in
 * fs/ioctl.c).  When it was refused earlier, the number is the program's own.
 */
static bool ioctl_fiemap(struct tr_fx *fx)
{
	uint32_t found, room;

	tr_fx_in(fx, 2, ARG(2), 32);
	tr_fx_out_always(fx, 2, ARG(2), 32);
	if (!ARG(2) || !tr_fx_u32(fx, ARG(2) + 20, &found) ||
	    !tr_fx_u32(fx, ARG(2) + 24, &room))
		return true;
	if (tr_fx_failed(fx) && found > 4096)
		found = 0;
	tr_fx_out_always(fx, 2, ARG(2) + 32,
			 56 * (uint64_t)(found < room ? found : room));
	return true;
}

/* A header of 24 bytes with the number of destinations of 32 bytes. */
static bool ioctl_dedupe(struct tr_fx *fx)
{
	uint32_t count;

	if (ARG(2) && tr_fx_u32(fx, ARG(2) + 16, &count))
		inout(fx, 2, ARG(2), 24 + 32 * (uint64_t)(count & 0xffff));
	return true;
}

static const struct tr_ioctl *find_ioctl(uint32_t cmd)
{
	for (size_t i = 0; i < tr_ioctl_table_n; i++)
		if (tr_ioctl_table[i].cmd == cmd)
			return &tr_ioctl_table[i];
	return NULL;
}

/*
 * Types of ioctl whose structures hold addresses or are followed by further
 * data, so that the size in the number does not tell the whole effect.
 */
static bool has_addresses(uint32_t cmd)
{
	static const uint8_t types[] = {
		'!', ';', 'A', 'B', 'N', 'U', 'V', 'b', 'd', 'f', '|',
		0x22, 0x94, 0xaa, 0xae, 0xb3, 0xe5, 0xfd,
	};

	return memchr(types, (int)(cmd >> 8 & 0xff), sizeof types) != NULL;
}

/* ioctl(2), _IOC: bits 30 and 31 give the direction, 16 to 29 the size. */
static bool ioctl_by_number(struct tr_fx *fx, uint32_t cmd)
{
	uint32_t dir = cmd >> 30, size = cmd >> 16 & 0x3fff;
	int64_t result = fx->call->result;

	if (fx->exit && (result == -ENOTTY || result == -EBADF ||
			 result == -ENOSYS))
		return true;
	if (dir == 0 || size == 0 || has_addresses(cmd))
		return false;
	if (dir & 1) /* _IOC_WRITE: the kernel reads */
		tr_fx_in(fx, 2, ARG(2), size);
	if (dir & 2)
		tr_fx_out_always(fx, 2, ARG(2), size);
	return true;
}

static bool do_ioctl(struct tr_fx *fx)
{
	uint32_t cmd = ARG32(1);
	const struct tr_ioctl *row = find_ioctl(cmd);

	if (!row)
		return ioctl_by_number(fx, cmd);
	if (row->code && strcmp(row->name, "SIOCGIFCONF") == 0)
		return ioctl_ifconf(fx);
	if (row->code && strcmp(row->name, "FS_IOC_FIEMAP") == 0)
		return ioctl_fiemap(fx);
	if (row->code && strcmp(row->name, "FIDEDUPERANGE") == 0)
		return ioctl_dedupe(fx);
	if (row->dir & TR_DIR_IN)
		tr_fx_in(fx, 2, ARG(2), row->size);
	if (row->dir & TR_DIR_OUT && row->even_on_error)
		tr_fx_out_always(fx, 2, ARG(2), row->size);
	else if (row->dir & TR_DIR_OUT)
		tr_fx_out(fx, 2, ARG(2), row->size);
	return !row->code;
}

/* GETREGSET and SETREGSET: data is the address of a struct iovec, whose length
 * GETREGSET makes that of what it wrote. */
static void ptrace_regset(struct tr_fx *fx, bool get)
{
	uint64_t base, len;

	tr_fx_in(fx, 3, ARG(3), 16);
	if (!tr_fx_u64(fx, ARG(3), &base) || !tr_fx_u64(fx, ARG(3) + 8, &len) ||
	    len > 65536)
		return;
	if (get) {
		tr_fx_out(fx, 3, ARG(3), 16);
		tr_fx_out(fx, 3, base, len);
	} else {
		tr_fx_in(fx, 3, base, len);
	}
}

/* PTRACE_ARCH_PRCTL: like arch_prctl(2), with the address in addr. */
static void ptrace_arch_prctl(struct tr_fx *fx)
{
	enum { ARCH_GET_FS_ = 0x1003, ARCH_GET_GS_ = 0x1004 };

	if (ARG32(3) == ARCH_GET_FS_ || ARG32(3) == ARCH_GET_GS_)
		tr_fx_out(fx, 2, ARG(2), 8);
}

/* What a tracer reads and writes of its own memory, ptrace(2); what it changes
 * in its tracee is the tracee's matter. */
static bool do_ptrace(struct tr_fx *fx)
{
	static const struct command table[] = {
		{1, TR_DIR_OUT, 8},        /* PTRACE_PEEKTEXT */
		{2, TR_DIR_OUT, 8},        /* PTRACE_PEEKDATA */
		{3, TR_DIR_OUT, 8},        /* PTRACE_PEEKUSER */
		{12, TR_DIR_OUT, 216},     /* PTRACE_GETREGS */
		{13, TR_DIR_IN, 216},      /* PTRACE_SETREGS */
		{14, TR_DIR_OUT, 512},     /* PTRACE_GETFPREGS */
		{15, TR_DIR_IN, 512},      /* PTRACE_SETFPREGS */
		{0x4201, TR_DIR_OUT, 8},   /* PTRACE_GETEVENTMSG */
		{0x4202, TR_DIR_OUT, 128}, /* PTRACE_GETSIGINFO */
		{0x4203, TR_DIR_IN, 128},  /* PTRACE_SETSIGINFO */
		{0x420a, TR_DIR_OUT, 8},   /* PTRACE_GETSIGMASK */
		{0x420b, TR_DIR_IN, 8},    /* PTRACE_SETSIGMASK */
	};

	switch (ARG32(0)) {
	case 30:
		ptrace_arch_prctl(fx);
		return true;
	case 0x4204:
	case 0x4205:
		ptrace_regset(fx, ARG32(0) == 0x4204);
		return true;
	case 0x4209: /* PTRACE_PEEKSIGINFO: how many siginfo_t */
		tr_fx_in(fx, 2, ARG(2), 16);
		tr_fx_out(fx, 3, ARG(3), 128 * result_upto(fx, 1024));
		return true;
	case 0x420e: /* PTRACE_GET_SYSCALL_INFO: addr is the room */
	case 0x420f: /* PTRACE_GET_RSEQ_CONFIGURATION */
		tr_fx_out(fx, 3, ARG(3), result_upto(fx, ARG(2)));
		return true;
	default:
		by_command(fx, 3, ARG32(0), table,
			   sizeof table / sizeof *table);
		return true; /* the others write nothing */
	}
}

/* Numbers that older headers lack are written out. */
static handler *const handlers[] = {
	[__NR_ioctl] = do_ioctl,
	[__NR_select] = do_select,
	[__NR_mincore] = do_mincore,
	[__NR_shmctl] = do_shmctl,
	[__NR_getsockopt] = do_getsockopt,
	[__NR_clone] = do_clone,
	[__NR_semctl] = do_semctl,
	[__NR_msgsnd] = do_msgsnd,
	[__NR_msgrcv] = do_msgrcv,
	[__NR_msgctl] = do_msgctl,
	[__NR_fcntl] = do_fcntl,
	[__NR_syslog] = do_syslog,
	[__NR_capget] = do_capget,
	[__NR_capset] = do_capset,
	[__NR_sysfs] = do_sysfs,
	[__NR_prctl] = do_prctl,
	[__NR_ptrace] = do_ptrace,
	[__NR_arch_prctl] = do_arch_prctl,
	[__NR_quotactl] = do_quotactl,
	[__NR_futex] = do_futex,
	[__NR_mbind] = do_mbind,
	[__NR_set_mempolicy] = do_set_mempolicy,
	[__NR_get_mempolicy] = do_get_mempolicy,
	[__NR_keyctl] = do_keyctl,
	[__NR_migrate_pages] = do_migrate_pages,
	[__NR_pselect6] = do_pselect6,
	[__NR_vmsplice] = do_vmsplice,
	[__NR_perf_event_open] = do_perf_event_open,
	[__NR_recvmmsg] = do_recvmmsg,
	[__NR_name_to_handle_at] = do_name_to_handle_at,
	[__NR_open_by_handle_at] = do_open_by_handle_at,
	[__NR_sendmmsg] = do_sendmmsg,
	[__NR_sched_setattr] = do_sched_setattr,
	[__NR_seccomp] = do_seccomp,
	[443] = do_quotactl_fd,
	[457] = do_mnt_id_req, /* statmount */
	[458] = do_mnt_id_req, /* listmount */
	[463] = do_setxattrat,
	[464] = do_getxattrat,
};

bool tr_irregular_has(uint64_t nr)
{
	return nr < sizeof handlers / sizeof *handlers && handlers[nr];
}

bool tr_irregular(struct tr_fx *fx)
{
	uint64_t nr = fx->call->nr;

	return tr_irregular_has(nr) ? handlers[nr](fx) : true;
}
