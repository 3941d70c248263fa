/*
 * Calls that the recorder answers in the kernel's place.
 *
 * An extension that the engine cannot support does not exist: the program gets
 * the errno of a kernel without it, and takes its other way.  Whole calls of
 * this kind are `deny` in formats/syscalls.tbl; here are single requests of
 * calls.  What would take the recorder's own access away is only pretended.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "libtrace/record/recorder.h"

struct refusal {
	uint16_t nr;
	uint8_t arg;
	uint32_t mask, value;
	int error;
};

#define ALL UINT32_MAX

static const struct refusal refusals[] = {
	/* When the kernel frees the pages is not determined: as before 4.5. */
	{SYS_madvise, 2, ALL, 8, EINVAL},          /* MADV_FREE */
	/* Discards memory as madvise(2) does: as before 6.13. */
	{SYS_process_madvise, 3, ALL, 4, EINVAL},  /* MADV_DONTNEED */
	{SYS_process_madvise, 3, ALL, 8, EINVAL},  /* MADV_FREE */
	{SYS_process_madvise, 3, ALL, 24, EINVAL}, /* MADV_DONTNEED_LOCKED */
	{SYS_process_madvise, 3, ALL, 102, EINVAL}, /* MADV_GUARD_INSTALL */
	{SYS_process_madvise, 3, ALL, 103, EINVAL}, /* MADV_GUARD_REMOVE */
	/* Pages that the kernel may zero at any time: as before 6.11. */
	{SYS_mmap, 3, 0xf, 8, EINVAL},             /* MAP_DROPPABLE */
	/* The trap on the time stamp counter is the recorder's. */
	{SYS_prctl, 0, ALL, 26, EINVAL},           /* PR_SET_TSC */
	/* Signals in place of calls, which replay does not make: as before
	 * 5.11. */
	{SYS_prctl, 0, ALL, 59, EINVAL}, /* PR_SET_SYSCALL_USER_DISPATCH */
	/* Moves the heap's end and more: as without CAP_SYS_RESOURCE. */
	{SYS_prctl, 0, ALL, 35, EPERM},            /* PR_SET_MM */
	/* Processors without the feature: CPUID faults, AMX, LAM. */
	{SYS_arch_prctl, 0, ALL, 0x1012, ENODEV},  /* ARCH_SET_CPUID */
	{SYS_arch_prctl, 0, ALL, 0x1023, EOPNOTSUPP}, /* ARCH_REQ_XCOMP_PERM */
	{SYS_arch_prctl, 0, ALL, 0x1025, EOPNOTSUPP}, /* .._GUEST_PERM */
	{SYS_arch_prctl, 0, ALL, 0x4002, ENODEV},  /* ARCH_ENABLE_TAGGED_ADDR */
	/* A vdso that is mapped again: as without CONFIG_CHECKPOINT_RESTORE.
	 * Shadow stacks, 0x5001 to 0x5004: as before 6.6. */
	{SYS_arch_prctl, 0, 0xfffffffc, 0x2000, EINVAL}, /* ARCH_MAP_VDSO_* */
	{SYS_arch_prctl, 0, ALL, 0x5001, EINVAL},  /* ARCH_SHSTK_ENABLE */
	{SYS_arch_prctl, 0, ALL, 0x5002, EINVAL},  /* ARCH_SHSTK_DISABLE */
	{SYS_arch_prctl, 0, ALL, 0x5003, EINVAL},  /* ARCH_SHSTK_LOCK */
	{SYS_arch_prctl, 0, ALL, 0x5004, EINVAL},  /* ARCH_SHSTK_UNLOCK */
	/* A userfaultfd from the device, whose call is denied. */
	{SYS_ioctl, 1, ALL, 0xaa00, ENOTTY},       /* USERFAULTFD_IOC_NEW */
};

int rec_refusal(const struct tr_call *c)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *f = &refusals[i];

		if (c->nr == f->nr &&
		    ((uint32_t)c->args[f->arg] & f->mask) == f->value)
			return f->error;
	}
	return 0;
}

/*
 * A process that is not dumpable can be looked into by none but a privileged
 * tracer (ptrace_access_vm in kernel/ptrace.c).  Programs that hold keys ask
 * for that; it is what they are told.
 */
bool rec_pretend(struct task *t, int64_t *result)
{
	const struct tr_call *c = &t->fl.call;

	if (c->nr != SYS_prctl)
		return false;
	if ((int)c->args[0] == PR_SET_DUMPABLE)
		t->as->undumpable = c->args[1] == 0;
	else if ((int)c->args[0] != PR_GET_DUMPABLE)
		return false;
	*result = 0;
	return t->as->undumpable;
}
