/* The syscall model: look-up, and memory effects by the table. */
#include "libtrace/model/syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "libtrace/model/effects.h"
#include "libtrace/model/irregular.h"
#include "libtrace/model/tables.h"

const struct tr_sys *tr_sys_lookup(uint64_t nr)
{
	return nr < tr_sys_table_n && tr_sys_table[nr].name
	       ? &tr_sys_table[nr] : NULL;
}

const struct tr_sys *tr_sys_by_name(const char *name)
{
	for (size_t i = 0; i < tr_sys_table_n; i++)
		if (tr_sys_table[i].name &&
		    strcmp(tr_sys_table[i].name, name) == 0)
			return &tr_sys_table[i];
	return NULL;
}

size_t tr_sys_count(void)
{
	return tr_sys_table_n;
}

const struct tr_flag_set *tr_flag_set_find(const char *name)
{
	for (size_t i = 0; i < tr_flag_sets_n; i++)
		if (strcmp(tr_flag_sets[i].name, name) == 0)
			return &tr_flag_sets[i];
	return NULL;
}

const char *tr_flag_name(const struct tr_flag_set *set, uint64_t v)
{
	for (size_t i = 0; i < set->n; i++)
		if (((uint32_t)v & set->flags[i].mask) == set->flags[i].value)
			return set->flags[i].name;
	return NULL;
}

const char *tr_errno_name(int e)
{
	return tr_flag_name(tr_flag_set_find("errno"), (uint32_t)e);
}

const char *tr_signal_name(int sig)
{
	return tr_flag_name(tr_flag_set_find("signal"), (uint32_t)sig);
}

void tr_ranges_release(struct tr_ranges *rs)
{
	free(rs->r);
	*rs = (struct tr_ranges){0};
}

/* An argument as a count: 32-bit ones have garbage above. */
static uint64_t count_arg(const struct tr_sys *sys, const struct tr_call *c,
			  unsigned i)
{
	switch (sys->arg[i].type) {
	case TR_ARG_INT:
		return (int32_t)c->args[i] < 0 ? 0 : (uint32_t)c->args[i];
	case TR_ARG_UINT:
		return (uint32_t)c->args[i];
	default:
		return c->args[i];
	}
}

static uint64_t scaled(uint64_t n, uint32_t scale)
{
	return scale > 1 && n > UINT64_MAX / scale ? UINT64_MAX : n * scale;
}

static uint64_t result_bytes(const struct tr_sys *sys, const struct tr_call *c,
			     const struct tr_size_rule *rule)
{
	uint64_t n = c->result > 0 ? (uint64_t)c->result : 0;

	if (rule->limit) {
		uint64_t most = count_arg(sys, c, rule->limit - 1u);

		n = n < most ? n : most;
	}
	return scaled(n, rule->scale);
}

/* The smaller of a value-result length at entry and now. */
static uint64_t deref_bytes(const struct tr_fx *fx,
			    const struct tr_size_rule *rule)
{
	const struct tr_call *c = fx->call;
	uint64_t before = c->entry_len[rule->arg];
	uint32_t now;

	if (!tr_fx_u32(fx, c->args[rule->arg], &now))
		return 0;
	return scaled(fx->exit && now > before ? before : now, rule->scale);
}

static uint64_t buffer_bytes(const struct tr_fx *fx, const struct tr_sys *sys,
			     const struct tr_size_rule *rule)
{
	switch (rule->kind) {
	case TR_SIZE_CONST:
		return rule->scale;
	case TR_SIZE_ARG:
		return scaled(count_arg(sys, fx->call, rule->arg), rule->scale);
	case TR_SIZE_RESULT:
		return result_bytes(sys, fx->call, rule);
	case TR_SIZE_DEREF32:
		return deref_bytes(fx, rule);
	case TR_SIZE_CODE:
		break;
	}
	return 0;
}

static void buffer(struct tr_fx *fx, const struct tr_sys *sys, unsigned i)
{
	const struct tr_sys_arg *a = &sys->arg[i];
	uint64_t addr = fx->call->args[i];
	uint64_t len;

	if (addr == 0 || a->size.kind == TR_SIZE_CODE)
		return;
	len = buffer_bytes(fx, sys, &a->size);
	if (a->dir & TR_DIR_IN)
		tr_fx_in(fx, i, addr, len);
	if (!(a->dir & TR_DIR_OUT))
		return;
	if (a->even_on_error)
		tr_fx_out_always(fx, i, addr, len);
	else if (a->size.kind == TR_SIZE_RESULT && !fx->most)
		tr_fx_out_exact(fx, i, addr, len);
	else
		tr_fx_out(fx, i, addr, len);
}

static void argument(struct tr_fx *fx, const struct tr_sys *sys, unsigned i)
{
	const struct tr_sys_arg *a = &sys->arg[i];
	const struct tr_call *c = fx->call;
	uint64_t addr = c->args[i];
	uint64_t limit = fx->exit && c->result > 0 ? (uint64_t)c->result : 0;

	switch (a->type) {
	case TR_ARG_PATH:
		tr_fx_string(fx, i, addr);
		break;
	case TR_ARG_STRV:
		tr_fx_strings(fx, i, addr);
		break;
	case TR_ARG_BUF:
		buffer(fx, sys, i);
		break;
	case TR_ARG_IOVEC:
		tr_fx_iovec(fx, i, addr, count_arg(sys, c, a->size.arg),
			    a->dir, limit);
		break;
	case TR_ARG_MSG:
		tr_fx_msg(fx, i, addr, a->dir, limit,
			  (uint32_t)c->entry_len[i]);
		break;
	default:
		break;
	}
}

/* Lengths that the kernel will overwrite. */
static void note_lengths(struct tr_fx *fx, const struct tr_sys *sys)
{
	struct tr_call *c = fx->call;
	uint32_t len;

	memset(c->entry_len, 0, sizeof c->entry_len);
	for (unsigned i = 0; i < sys->nargs; i++) {
		const struct tr_sys_arg *a = &sys->arg[i];
		unsigned at = a->size.arg;

		if (a->type == TR_ARG_BUF &&
		    a->size.kind == TR_SIZE_DEREF32 &&
		    tr_fx_u32(fx, c->args[at], &len))
			c->entry_len[at] = len;
		if (a->type == TR_ARG_MSG && c->args[i] != 0 &&
		    tr_fx_u32(fx, c->args[i] + 8, &len)) /* msg_namelen */
			c->entry_len[i] = len;
	}
}

void tr_call_enter(struct tr_call *c, struct tr_ranges *in)
{
	const struct tr_sys *sys = tr_sys_lookup(c->nr);
	struct tr_fx fx = {.call = c, .ranges = in};

	if (!sys)
		return;
	note_lengths(&fx, sys);
	for (unsigned i = 0; i < sys->nargs; i++)
		argument(&fx, sys, i);
	tr_irregular(&fx);
}

/* Calls without a model that failed before they could do anything. */
static bool had_no_effect(int64_t result)
{
	return result == -ENOSYS || result == -EPERM;
}

/* The most that the call can write, or could have. */
static bool written_at_most(const struct tr_sys *sys, const struct tr_call *c,
			    bool unprobed, struct tr_ranges *out)
{
	struct tr_call most = *c;
	struct tr_fx fx = {.call = &most, .ranges = out, .exit = true,
			   .most = true, .unprobed = unprobed};

	most.result = INT64_MAX;
	for (unsigned i = 0; i < sys->nargs; i++)
		argument(&fx, sys, i);
	return tr_irregular(&fx);
}

bool tr_call_exit(struct tr_call *c, struct tr_ranges *out)
{
	const struct tr_sys *sys = tr_sys_lookup(c->nr);
	struct tr_fx fx = {.call = c, .ranges = out, .exit = true};

	if (!sys || sys->class == TR_SYS_UNMODELLED)
		return had_no_effect(c->result);
	if (sys->class == TR_SYS_DENY)
		return true;
	/* It wrote up to where it could not. */
	if (c->result == -EFAULT && sys->class == TR_SYS_PLAIN) {
		written_at_most(sys, c, false, out);
		return true;
	}
	for (unsigned i = 0; i < sys->nargs; i++)
		argument(&fx, sys, i);
	return tr_irregular(&fx);
}

bool tr_call_may_write(const struct tr_call *c, struct tr_ranges *out)
{
	const struct tr_sys *sys = tr_sys_lookup(c->nr);

	return sys && sys->class == TR_SYS_PLAIN &&
	       written_at_most(sys, c, true, out);
}

int tr_sys_kernel_copy_fd(uint64_t nr)
{
	switch (nr) {
	case __NR_sendfile:
	case __NR_vmsplice:
		return 0;
	case __NR_tee:
		return 1;
	case __NR_splice:
	case __NR_copy_file_range:
		return 2;
	default:
		return -1;
	}
}

int tr_sys_write_fd(uint64_t nr)
{
	switch (nr) {
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
	case __NR_sendto:
	case __NR_sendmsg:
		return 0;
	default:
		return -1;
	}
}

void tr_call_written(struct tr_call *c, struct tr_ranges *data)
{
	struct tr_fx fx = {.call = c, .ranges = data};

	switch (c->nr) {
	case __NR_write:
	case __NR_pwrite64:
	case __NR_sendto:
		tr_fx_in(&fx, 1, c->args[1], c->args[2]);
		break;
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
		tr_fx_iovec_data(&fx, 1, c->args[1], c->args[2]);
		break;
	case __NR_sendmsg:
		tr_fx_msg_data(&fx, 1, c->args[1]);
		break;
	}
}

bool tr_sys_may_block(uint64_t nr)
{
	static const uint16_t calls[] = {
		SYS_read, SYS_readv, SYS_pread64, SYS_preadv, SYS_preadv2,
		SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2,
		SYS_open, SYS_openat, SYS_openat2, SYS_creat, SYS_close,
		SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait,
		SYS_epoll_pwait, SYS_epoll_pwait2, SYS_futex, SYS_futex_waitv,
		SYS_nanosleep, SYS_clock_nanosleep, SYS_pause, SYS_wait4,
		SYS_waitid, SYS_accept, SYS_accept4, SYS_connect, SYS_recvfrom,
		SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg,
		SYS_sendmmsg, SYS_flock, SYS_fcntl, SYS_ioctl,
		SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_msgsnd, SYS_msgrcv,
		SYS_semop, SYS_semtimedop, SYS_mq_timedsend,
		SYS_mq_timedreceive, SYS_io_getevents, SYS_splice, SYS_tee,
		SYS_vmsplice, SYS_sendfile, SYS_copy_file_range, SYS_fsync,
		SYS_fdatasync, SYS_sync, SYS_syncfs, SYS_msync, SYS_getrandom,
		SYS_restart_syscall,
		455, 456, /* futex_wait, futex_requeue: newer than the headers */
	};

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i] == nr)
			return true;
	return !tr_sys_lookup(nr);
}
