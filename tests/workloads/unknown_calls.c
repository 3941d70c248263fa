/* Calls a syscall model is likely not to know, with results in memory. */
#include <linux/ethtool.h>
#include <linux/keyctl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Is the loopback interface there?  Its state comes by way of an address in
 * the structure: 7 when the call failed. */
static unsigned link_state(void)
{
	struct ethtool_value v = {.cmd = ETHTOOL_GLINK, .data = 7};
	struct ifreq ifr = {.ifr_name = "lo", .ifr_data = (char *)&v};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ioctl(fd, SIOCETHTOOL, &ifr);
	close(fd);
	return v.data;
}

int main(void)
{
	char to[64] = "unset", from[] = "from afar", text[256];
	struct iovec l = {from, sizeof from}, r = {to, sizeof from};
	long n = syscall(SYS_process_vm_writev, getpid(), &l, 1, &r, 1, 0);

	if (n == sizeof from && strcmp(to, from) != 0)
		return 1;
	n = syscall(SYS_keyctl, KEYCTL_DESCRIBE, KEY_SPEC_SESSION_KEYRING, text,
		    sizeof text);
	printf("%u %s %s\n", link_state(), to, n > 0 && n < (long)sizeof text ? text : "-");
	return 0;
}
