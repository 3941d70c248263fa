/*
 * Entry to and exit from the injected code that makes system calls in the
 * program's stead.
 *
 * Stubs jump to `enter` with rcx the address after the program's syscall
 * instruction and r11 that of the stub's; see abi.h.  The program's stack is
 * not touched: there may be none, and the red zone is in use.  Vector
 * registers are not touched either.  Everything but rax, rcx and r11 is left
 * as the kernel leaves it.
 */
#include "libtrace/intercept/layout.h"

#define CONTROL TR_LAYOUT_CONTROL
#define FRAME (TR_LAYOUT_STACK_TOP - 128)

	/* All that was pushed but the flags; changes no flag. */
	.macro pop_registers
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	pop	%r9
	pop	%r8
	pop	%r10
	pop	%rdx
	pop	%rsi
	pop	%rdi
	pop	%rax
	pop	%r11
	pop	%rcx
	.endm

	.macro push_more
	push	%rdx
	push	%r10
	push	%r8
	push	%r9
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	.endm

	.text
	.globl tr_calls_start
	.globl tr_calls_enter, tr_calls_go_traced, tr_calls_abandon
	.globl tr_calls_syscall, tr_calls_after_syscall, tr_calls_after_leave
	.globl tr_calls_after_shown
	.globl tr_calls_make, tr_calls_settle, tr_calls_insn
tr_calls_start:
tr_calls_enter:
	mov	%rsp, CONTROL + 24
	mov	$TR_LAYOUT_STACK_TOP, %esp
	pushfq
	push	%rcx
	push	%r11
	push	%rax
	push	%rdi
	push	%rsi
	push_more
	movl	$1, CONTROL + 20
	cld
	mov	%rsp, %rdi
	call	tr_calls_call
	cmp	$1, %eax
	je	tr_calls_go_traced
	jb	leave
	/* The tracer finds it in the log.  No trap: a SIGTRAP that is blocked
	 * and pending would be taken for it. */
	mov	$-1, %eax
	syscall
tr_calls_after_shown:
leave:
	mov	$FRAME, %esp
	movl	$0, CONTROL + 20
	cmpl	$0, CONTROL + 16
	pop_registers
	jne	leave_traced
	mov	(%rsp), %r11
	popfq
	mov	CONTROL + 24, %rsp
	jmp	*%rcx

	/* The tracer wants to see the task at the call's end.  It knows the
	 * call's registers from the log. */
leave_traced:
	popfq
	mov	CONTROL + 24, %rsp
	syscall
tr_calls_after_leave:
	ud2

	/* Nothing has been done: let the tracer see the call. */
tr_calls_go_traced:
	mov	$FRAME, %esp
	movl	$0, CONTROL + 20
	pop_registers
	popfq
	mov	CONTROL + 24, %rsp
	jmp	*%r11

	/* The call was made and its effects could not be read: the tracer has
	 * noted that; the program gets its result. */
tr_calls_abandon:
	mov	CONTROL + 32, %rax
	mov	$FRAME, %esp
	mov	%rax, 96(%rsp)
	jmp	leave

	/* From the stub of an XSAVEC, with rsi its tail. */
tr_calls_settle:
	push	%rdi
	push	%rax
	push	%rcx
	push	%rdx
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	mov	8(%rsi), %rax
	mov	%rax, CONTROL + 72
	mov	(%rsi), %rdi
	add	CONTROL + 24, %rdi
	cld
	call	tr_calls_settle_area
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdx
	pop	%rcx
	pop	%rax
	pop	%rdi
	pop	%rsi
	popfq
	mov	CONTROL + 24, %rsp
	jmp	*CONTROL + 72

	/* From the stub of an instruction, with rsi its tail: done, it goes on
	 * behind the instruction, or traps. */
tr_calls_insn:
	pushfq
	push	%rcx
	push	%r11
	push	%rax
	push	%rdi
	push	CONTROL + 80
	push_more
	cld
	mov	%rsp, %rdi
	call	tr_calls_do_insn
	mov	$FRAME, %esp
	pop_registers
	popfq
	mov	CONTROL + 24, %rsp
	jmp	*CONTROL + 72

	/* int64_t tr_calls_make(const struct tr_call_frame *f) */
tr_calls_make:
	mov	%rdi, %r11
	mov	96(%r11), %rax
	mov	48(%r11), %r9
	mov	56(%r11), %r8
	mov	64(%r11), %r10
	mov	72(%r11), %rdx
	mov	80(%r11), %rsi
	mov	88(%r11), %rdi
tr_calls_syscall:
	syscall
tr_calls_after_syscall:
	mov	%rax, CONTROL + 32
	movl	$2, CONTROL + 20
	ret
	.section .note.GNU-stack, "", @progbits
