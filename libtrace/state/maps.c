/* The mappings of a process. */
#include "libtrace/state/maps.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"

void tr_vmas_release(struct tr_vmas *vmas)
{
	for (size_t i = 0; i < vmas->n; i++)
		free(vmas->v[i].name);
	free(vmas->v);
	*vmas = (struct tr_vmas){0};
}

/* One line: START-END PERMS OFFSET MAJOR:MINOR INODE [NAME], proc(5). */
static int parse_line(char *line, struct tr_vma *v)
{
	char perms[5];
	int name = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64
		   " %x:%x %" SCNu64 " %n", &v->start, &v->end, perms,
		   &v->offset, &v->major, &v->minor, &v->ino, &name) < 7)
		return -1;
	v->prot = (perms[0] == 'r' ? PROT_READ : 0u) |
		  (perms[1] == 'w' ? PROT_WRITE : 0u) |
		  (perms[2] == 'x' ? PROT_EXEC : 0u);
	v->flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	v->name = tr_strdup(name ? line + name : "");
	return 0;
}

int tr_vmas_read(pid_t pid, struct tr_vmas *vmas, struct tr_error *err)
{
	TR_AUTOFREE char *path = tr_printf("/proc/%d/maps", (int)pid);
	TR_AUTOBUF struct tr_buf text = {0};
	char *save = NULL;

	if (tr_read_file(AT_FDCWD, path, 64u << 20, &text, err) < 0)
		return -1;
	tr_buf_put_u8(&text, '\0');
	for (char *line = strtok_r((char *)text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct tr_vma v = {0};

		if (parse_line(line, &v) < 0)
			return tr_fail(err, TR_ESYS, "%s: unexpected line", path);
		TR_GROW(vmas->v, vmas->n, vmas->cap);
		vmas->v[vmas->n++] = v;
	}
	return 0;
}

const struct tr_vma *tr_vmas_find(const struct tr_vmas *vmas, uint64_t addr)
{
	for (size_t i = 0; i < vmas->n; i++)
		if (addr >= vmas->v[i].start && addr < vmas->v[i].end)
			return &vmas->v[i];
	return NULL;
}
