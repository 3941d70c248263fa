/* Removing a trace directory. */
#include "libtrace/store/remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void tr_remove_dir(int at, const char *name, int depth)
{
	int fd = openat(at, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	while (d && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, e->d_name, 0) < 0 && depth > 0)
			tr_remove_dir(fd, e->d_name, depth - 1);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	unlinkat(at, name, AT_REMOVEDIR);
}
