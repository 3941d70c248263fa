/* Linked last. */
	.text
	.globl tr_calls_end
tr_calls_end:
	.section .note.GNU-stack, "", @progbits
