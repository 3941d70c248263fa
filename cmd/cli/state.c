/* The state of a replayed task. */
#include "cmd/cli/state.h"

#include "cmd/cli/output.h"
#include "libtrace/base/alloc.h"
#include "libtrace/base/table.h"

static struct tr_table paths; /* of stored files, by id */

struct place {
	uint64_t event;
	uint32_t task;
};

void cli_state_learn(const struct tr_event *ev)
{
	uint64_t id = tr_event_get(ev, TR_F_FILE);

	if (ev->type == TR_EV_FILE && !tr_table_get(&paths, id))
		tr_table_set(&paths, id, tr_strndup(ev->text.data ?
						    ev->text.data : "",
						    ev->text.len));
}

static struct tr_json *start(const struct place *p, const char *type)
{
	struct tr_json *j = tr_json_object();

	tr_json_set(j, "type", tr_json_string(type));
	tr_json_set(j, "event", tr_json_int((int64_t)p->event));
	tr_json_set(j, "task", tr_json_int(p->task));
	return j;
}

static void print_registers(void *ctx, const struct tr_regs *regs)
{
	struct tr_json *j = start(ctx, "registers");

#define X(name) tr_json_set(j, #name, tr_json_hex(regs->name));
	TR_REGS(X)
#undef X
	cli_json_line(j);
}

static void print_mapping(void *ctx, const struct tr_state_mapping *m)
{
	struct tr_json *j = start(ctx, "mapping");
	const char permissions[] = {m->prot & 1 ? 'r' : '-',
				    m->prot & 2 ? 'w' : '-',
				    m->prot & 4 ? 'x' : '-',
				    m->flags & 1 ? 's' : 'p', '\0'};
	const char *path = m->file ? tr_table_get(&paths, m->file) : NULL;

	tr_json_set(j, "start", tr_json_hex(m->start));
	tr_json_set(j, "end", tr_json_hex(m->end));
	tr_json_set(j, "permissions", tr_json_string(permissions));
	tr_json_set(j, "file", tr_json_int(m->file));
	tr_json_set(j, "offset", tr_json_int((int64_t)m->offset));
	tr_json_set(j, "name", tr_json_string(path ? path : m->name));
	cli_json_line(j);
}

static void print_page(void *ctx, uint64_t addr, uint64_t hash,
		       const uint8_t *bytes)
{
	struct tr_json *j = start(ctx, "page");

	tr_json_set(j, "addr", tr_json_hex(addr));
	tr_json_set(j, "hash", tr_json_hex(hash));
	if (bytes)
		tr_json_set(j, "data", tr_json_hex_bytes(bytes, 4096));
	cli_json_line(j);
}

int cli_state_print(struct tr_replay *r, const struct tr_event *ev,
		    bool contents, struct tr_error *err)
{
	struct place p = {ev->number, ev->task};
	const struct tr_state_visitor v = {&p, print_registers, print_mapping,
					   print_page};

	return tr_replay_inspect(r, ev->task, contents, &v, err);
}
