/* Collecting the memory effects of a call as ranges. */
#include "libtrace/model/effects.h"

#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/buf.h"
#include "libtrace/model/msghdr.h"

#define PAGE 4096u
#define MAX_STRING 131072u /* MAX_ARG_STRLEN: execve(2) */
#define MAX_STRINGS 65536u
#define MAX_RW 0x7ffff000u /* what read(2) and write(2) move at most */
#define IOV_BATCH 64u

bool tr_fx_failed(const struct tr_fx *fx)
{
	return fx->exit && fx->call->result < 0 && fx->call->result >= -4095;
}

bool tr_fx_ok(const struct tr_fx *fx)
{
	return fx->exit && !tr_fx_failed(fx);
}

static bool get(const struct tr_fx *fx, uint64_t addr, void *buf, size_t n)
{
	return addr != 0 && addr + n >= addr &&
	       fx->call->read(fx->call->ctx, addr, buf, n);
}

bool tr_fx_u32(const struct tr_fx *fx, uint64_t addr, uint32_t *v)
{
	return get(fx, addr, v, sizeof *v);
}

bool tr_fx_u64(const struct tr_fx *fx, uint64_t addr, uint64_t *v)
{
	return get(fx, addr, v, sizeof *v);
}

static bool readable(const struct tr_fx *fx, uint64_t addr)
{
	uint8_t byte;

	return get(fx, addr, &byte, 1);
}

/* How many of the len bytes from addr on can be read, page by page. */
static uint64_t readable_bytes(const struct tr_fx *fx, uint64_t addr,
			       uint64_t len)
{
	uint64_t n = 0;

	if (addr + len < addr)
		len = -addr;
	while (n < len && readable(fx, addr + n))
		n += PAGE - (addr + n) % PAGE;
	return n < len ? n : len;
}

static void append(struct tr_fx *fx, unsigned arg, uint64_t addr, uint64_t len,
		   bool is_string)
{
	struct tr_ranges *rs = fx->ranges;

	TR_GROW(rs->r, rs->n, rs->cap);
	rs->r[rs->n++] = (struct tr_range){
		.arg = (uint8_t)arg,
		.is_string = is_string,
		.addr = addr,
		.len = len,
	};
}

static void append_readable(struct tr_fx *fx, unsigned arg, uint64_t addr,
			    uint64_t len)
{
	len = readable_bytes(fx, addr, len);
	if (len)
		append(fx, arg, addr, len, false);
}

/*
 * Buffers of write(2) can be large and their middle is hardly ever missing, so
 * that the pages between are probed only when the last byte cannot be read.
 */
void tr_fx_in(struct tr_fx *fx, unsigned arg, uint64_t addr, uint64_t len)
{
	if (fx->exit || addr == 0 || len == 0)
		return;
	if (len > MAX_RW)
		len = MAX_RW;
	if (readable(fx, addr) && readable(fx, addr + len - 1))
		append(fx, arg, addr, len, false);
	else
		append_readable(fx, arg, addr, len);
}

void tr_fx_out_always(struct tr_fx *fx, unsigned arg, uint64_t addr,
		      uint64_t len)
{
	if (!fx->exit || addr == 0 || len == 0)
		return;
	if (fx->unprobed)
		append(fx, arg, addr, len, false);
	else
		append_readable(fx, arg, addr, len);
}

void tr_fx_out(struct tr_fx *fx, unsigned arg, uint64_t addr, uint64_t len)
{
	if (!tr_fx_failed(fx))
		tr_fx_out_always(fx, arg, addr, len);
}

void tr_fx_out_exact(struct tr_fx *fx, unsigned arg, uint64_t addr,
		     uint64_t len)
{
	if (tr_fx_ok(fx) && addr != 0 && len != 0)
		append(fx, arg, addr, len, false);
}

/* Length of the string at addr, or -1 when its end cannot be found. */
static int64_t string_length(const struct tr_fx *fx, uint64_t addr)
{
	uint64_t n = 0;

	while (n < MAX_STRING) {
		char chunk[256];
		uint64_t left = PAGE - (addr + n) % PAGE;
		size_t want = left < sizeof chunk ? left : sizeof chunk;
		const char *nul;

		if (!get(fx, addr + n, chunk, want))
			return -1;
		nul = memchr(chunk, 0, want);
		if (nul)
			return (int64_t)n + (nul - chunk);
		n += want;
	}
	return -1;
}

void tr_fx_string(struct tr_fx *fx, unsigned arg, uint64_t addr)
{
	int64_t len;

	if (fx->exit || addr == 0)
		return;
	len = string_length(fx, addr);
	if (len >= 0)
		append(fx, arg, addr, (uint64_t)len, true);
}

void tr_fx_strings(struct tr_fx *fx, unsigned arg, uint64_t addr)
{
	uint64_t p;

	if (fx->exit)
		return;
	for (unsigned i = 0; i < MAX_STRINGS; i++, addr += sizeof p) {
		if (!tr_fx_u64(fx, addr, &p) || p == 0)
			return;
		tr_fx_string(fx, arg, p);
	}
}

/* One buffer of an array; takes what it holds from the limit. */
static void iovec_buffer(struct tr_fx *fx, unsigned arg,
			 const struct iovec *iov, enum tr_dir dir,
			 uint64_t *limit)
{
	uint64_t addr = (uint64_t)(uintptr_t)iov->iov_base;
	uint64_t len = iov->iov_len;

	if (dir & TR_DIR_IN)
		tr_fx_in(fx, arg, addr, len);
	if (len > *limit)
		len = *limit;
	*limit -= len;
	if (dir & TR_DIR_OUT)
		tr_fx_out(fx, arg, addr, len);
}

/* The buffers alone. */
static void iovec_buffers(struct tr_fx *fx, unsigned arg, uint64_t addr,
			  uint64_t count, enum tr_dir dir, uint64_t limit)
{
	struct iovec iov[IOV_BATCH];

	if (count > IOV_MAX || (fx->exit && !(dir & TR_DIR_OUT)))
		return; /* more than IOV_MAX is EINVAL */
	while (count > 0) {
		uint64_t n = count < IOV_BATCH ? count : IOV_BATCH;

		if (!get(fx, addr, iov, n * sizeof *iov))
			return;
		for (uint64_t i = 0; i < n; i++)
			iovec_buffer(fx, arg, &iov[i], dir, &limit);
		addr += n * sizeof *iov;
		count -= n;
	}
}

void tr_fx_iovec(struct tr_fx *fx, unsigned arg, uint64_t addr, uint64_t count,
		 enum tr_dir dir, uint64_t limit)
{
	if (count <= IOV_MAX)
		tr_fx_in(fx, arg, addr, count * sizeof(struct iovec));
	iovec_buffers(fx, arg, addr, count, dir, limit);
}

void tr_fx_iovec_data(struct tr_fx *fx, unsigned arg, uint64_t addr,
		      uint64_t count)
{
	iovec_buffers(fx, arg, addr, count, TR_DIR_IN, 0);
}

void tr_fx_msg_data(struct tr_fx *fx, unsigned arg, uint64_t addr)
{
	uint64_t iov, count;

	if (tr_fx_u64(fx, addr + MSG_IOV, &iov) &&
	    tr_fx_u64(fx, addr + MSG_IOVLEN, &count))
		tr_fx_iovec_data(fx, arg, iov, count);
}

/*
 * recvmsg(2) replaces msg_namelen by the sender's whole length, even when the
 * buffer was shorter, and msg_controllen by what it wrote.
 */
void tr_fx_msg(struct tr_fx *fx, unsigned arg, uint64_t addr, enum tr_dir dir,
	       uint64_t limit, uint32_t namelen)
{
	uint8_t msg[MSG_SIZE];
	uint64_t name, iov, control;
	uint32_t len;

	if (!get(fx, addr, msg, sizeof msg))
		return;
	name = tr_get_le64(msg + MSG_NAME);
	len = tr_get_le32(msg + MSG_NAMELEN);
	iov = tr_get_le64(msg + MSG_IOV);
	control = tr_get_le64(msg + MSG_CONTROL);
	tr_fx_in(fx, arg, addr, sizeof msg);
	tr_fx_iovec(fx, arg, iov, tr_get_le64(msg + MSG_IOVLEN), dir, limit);
	if (dir == TR_DIR_IN) {
		tr_fx_in(fx, arg, name, len);
		tr_fx_in(fx, arg, control,
			 tr_get_le64(msg + MSG_CONTROLLEN));
		return;
	}
	tr_fx_out(fx, arg, addr, sizeof msg);
	tr_fx_out(fx, arg, name, len < namelen ? len : namelen);
	tr_fx_out(fx, arg, control, tr_get_le64(msg + MSG_CONTROLLEN));
}
