/* The seccomp filter of traced tasks. */
#include "libtrace/tracee/filter.h"

#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#include "libtrace/intercept/abi.h"

/*
 * The injected code's instructions are below 4 GiB.  seccomp(2):
 * instruction_pointer is the address after the syscall instruction; the most
 * restrictive of all filters wins, so a filter of the program's own still
 * applies.
 */
void tr_filter_fill(struct sock_filter to[TR_FILTER_LEN])
{
	const uint64_t engine = tr_inject_address(tr_inject_after_syscall);
	const uint64_t calls = tr_calls_address(tr_calls_after_syscall);
	const struct sock_filter code[TR_FILTER_LEN] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)engine, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | TR_FILTER_DATA),
	};

	memcpy(to, code, sizeof code);
}
