/* View: the mappings that images and system calls make. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "cmd/cli/output.h"
#include "cmd/cli/views.h"
#include "libtrace/base/alloc.h"

struct state {
	bool json;
};

static void *maps_open(bool json)
{
	struct state *s = tr_alloc(sizeof *s);

	s->json = json;
	return s;
}

/* As the second column of /proc/PID/maps. */
static void permissions(const struct tr_map *m, char out[5])
{
	out[0] = m->prot & PROT_READ ? 'r' : '-';
	out[1] = m->prot & PROT_WRITE ? 'w' : '-';
	out[2] = m->prot & PROT_EXEC ? 'x' : '-';
	out[3] = m->flags & MAP_SHARED ? 's' : 'p';
	out[4] = '\0';
}

static void map_json(const struct tr_event *ev, const struct tr_map *m)
{
	struct tr_json *j = tr_json_object();
	char perm[5];

	permissions(m, perm);
	tr_json_set(j, "type", tr_json_string("map"));
	tr_json_set(j, "event", tr_json_int((int64_t)ev->number));
	tr_json_set(j, "task", tr_json_int(ev->task));
	tr_json_set(j, "stream", tr_json_int(ev->stream));
	tr_json_set(j, "start", tr_json_hex(m->start));
	tr_json_set(j, "end", tr_json_hex(m->end));
	tr_json_set(j, "permissions", tr_json_string(perm));
	tr_json_set(j, "file", tr_json_int(m->file));
	tr_json_set(j, "offset", tr_json_int((int64_t)m->offset));
	tr_json_set(j, "name", tr_json_bytes(m->name.data, m->name.len));
	cli_json_line(j);
}

static void map_text(const struct tr_event *ev, const struct tr_map *m)
{
	char perm[5];

	permissions(m, perm);
	printf("%8" PRIu64 " %4" PRIu32 "  %012" PRIx64 "-%012" PRIx64
	       " %s %08" PRIx64, ev->number, ev->task, m->start, m->end, perm,
	       m->offset);
	if (m->file)
		printf(" file %" PRIu32, m->file);
	putchar(' ');
	cli_put_escaped(m->name.data, m->name.len);
	putchar('\n');
}

static void maps_add(void *state, const struct tr_event *ev)
{
	const struct state *s = state;

	/* A state lists what there is, not what is made. */
	for (size_t i = 0; ev->type != TR_EV_STATE && i < ev->nmap; i++) {
		if (s->json)
			map_json(ev, &ev->map[i]);
		else
			map_text(ev, &ev->map[i]);
	}
}

static void maps_close(void *state, const struct tr_reader *reader)
{
	(void)reader;
	free(state);
}

const struct cli_view cli_view_maps = {maps_open, maps_add, maps_close};
