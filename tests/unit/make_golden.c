/* Write the golden trace into the new directory named by the argument. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/golden.h"

int main(int argc, char **argv)
{
	TR_AUTOCLOSE int dirfd = -1;
	struct tr_error err;

	if (argc != 2) {
		fprintf(stderr, "usage: make_golden NEW-DIRECTORY\n");
		return 2;
	}
	if (mkdir(argv[1], 0755) < 0) {
		perror(argv[1]);
		return 2;
	}
	dirfd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0 || write_golden(dirfd, &err) < 0) {
		fprintf(stderr, "make_golden: %s\n",
			dirfd < 0 ? argv[1] : err.text);
		return 2;
	}
	return 0;
}
