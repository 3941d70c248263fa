/*
 * The memory effects of one call, collected as ranges.  The same description
 * of a call runs twice, at entry and at exit; each function here knows at
 * which of the two it has something to say.  Internal to libtrace/model.
 */
#ifndef TR_MODEL_EFFECTS_H
#define TR_MODEL_EFFECTS_H

#include "libtrace/model/syscalls.h"

struct tr_fx {
	struct tr_call *call;
	struct tr_ranges *ranges; /* where to append */
	bool exit;
	bool most; /* as at exit, but for the most that can come */
	bool unprobed; /* and whether or not it is readable */
};

/* At exit, and the call returned an error. */
bool tr_fx_failed(const struct tr_fx *fx);
/* At exit, and the call did not fail. */
bool tr_fx_ok(const struct tr_fx *fx);

/* Memory the kernel reads. */
void tr_fx_in(struct tr_fx *fx, unsigned arg, uint64_t addr, uint64_t len);
/* Memory the kernel may write when the call succeeds. */
void tr_fx_out(struct tr_fx *fx, unsigned arg, uint64_t addr, uint64_t len);
/* Memory the kernel may write whatever the result. */
void tr_fx_out_always(struct tr_fx *fx, unsigned arg, uint64_t addr,
		      uint64_t len);
/* Memory the kernel wrote to its last byte: not probed. */
void tr_fx_out_exact(struct tr_fx *fx, unsigned arg, uint64_t addr,
		     uint64_t len);
/* A NUL-terminated string the kernel reads; an array of them. */
void tr_fx_string(struct tr_fx *fx, unsigned arg, uint64_t addr);
void tr_fx_strings(struct tr_fx *fx, unsigned arg, uint64_t addr);
/* The buffers of `count` struct iovec: all of each when read, the first
 * `limit` bytes of them together when written. */
void tr_fx_iovec(struct tr_fx *fx, unsigned arg, uint64_t addr, uint64_t count,
		 enum tr_dir dir, uint64_t limit);
/* A struct msghdr, its name, control data and buffers.  namelen is
 * msg_namelen at entry. */
void tr_fx_msg(struct tr_fx *fx, unsigned arg, uint64_t addr, enum tr_dir dir,
	       uint64_t limit, uint32_t namelen);

/* The buffers alone that such an array, or a message, names for the kernel to
 * read. */
void tr_fx_iovec_data(struct tr_fx *fx, unsigned arg, uint64_t addr,
		      uint64_t count);
void tr_fx_msg_data(struct tr_fx *fx, unsigned arg, uint64_t addr);

/* Numbers in the caller's memory; false when unreadable or addr is 0. */
bool tr_fx_u32(const struct tr_fx *fx, uint64_t addr, uint32_t *v);
bool tr_fx_u64(const struct tr_fx *fx, uint64_t addr, uint64_t *v);

#endif
