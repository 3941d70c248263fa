/* Calls a syscall model is likely not to know, with results in memory. */
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int main(void)
{
	char to[64] = "unset", from[] = "from afar", text[256];
	struct iovec l = {from, sizeof from}, r = {to, sizeof from};
	long n = syscall(SYS_process_vm_writev, getpid(), &l, 1, &r, 1, 0);

	if (n == sizeof from && strcmp(to, from) != 0)
		return 1;
	n = syscall(SYS_keyctl, KEYCTL_DESCRIBE, KEY_SPEC_SESSION_KEYRING, text,
		    sizeof text);
	printf("%s %s\n", to, n > 0 && n < (long)sizeof text ? text : "-");
	return 0;
}
