/* Source lines, read with libdwfl. */
#include "libtrace/state/source.h"

#include <elfutils/libdwfl.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"

/* By build id below /usr/lib/debug; servers (debuginfod) are not asked. */
static char *debug_path; /* libdwfl's default */
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_build_id_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debug_path,
};

static char *line_of(Dwfl_Module *module, Dwarf_Addr addr)
{
	Dwfl_Line *line = dwfl_module_getsrc(module, addr);
	const char *file;
	int number;

	file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL)
		    : NULL;
	return file ? tr_printf("%s:%d", file, number) : NULL;
}

char *tr_source_at(int fd, uint64_t addr)
{
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwfl_Module *module;
	GElf_Addr bias;
	char *text = NULL;
	int own = dup(fd);

	if (!dwfl || own < 0)
		goto out;
	dwfl_report_begin(dwfl);
	module = dwfl_report_offline(dwfl, "stored", "stored", own);
	if (!module)
		goto out;
	own = -1; /* libdwfl's now */
	dwfl_report_end(dwfl, NULL, NULL);
	if (dwfl_module_getelf(module, &bias))
		text = line_of(module, addr + bias);
out:
	if (own >= 0)
		close(own);
	if (dwfl)
		dwfl_end(dwfl);
	return text;
}
