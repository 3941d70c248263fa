/*
 * The injected code page: executes system calls for the engine.
 *
 * batch: rbx points to an array of struct tr_inject_call, r12 holds their
 * number.  single: the call's number and arguments are in registers already,
 * rbx points to a free slot, r12 is 1, the result is left in rax.  Both end
 * in int3, which stops the task for the tracer.  All registers are the
 * tracer's to save and restore.
 */
	.section .rodata
	.globl tr_inject_start, tr_inject_end
	.globl tr_inject_batch, tr_inject_single, tr_inject_after_syscall
tr_inject_start:
tr_inject_batch:
	mov	(%rbx), %rax
	mov	8(%rbx), %rdi
	mov	16(%rbx), %rsi
	mov	24(%rbx), %rdx
	mov	32(%rbx), %r10
	mov	40(%rbx), %r8
	mov	48(%rbx), %r9
tr_inject_single:
	syscall
tr_inject_after_syscall:
	mov	%rax, 56(%rbx)
	add	$64, %rbx
	dec	%r12
	jnz	tr_inject_batch
	int3
tr_inject_end:
	.section .note.GNU-stack, "", @progbits
