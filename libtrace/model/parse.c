/* Events from JSON. */
#include "libtrace/model/parse.h"

#include <inttypes.h>
#include <string.h>

/* Event numbers are counted one by one: none is ever this large. */
#define MAX_NUMBER (INT64_C(1) << 40)

static bool get_number(const struct tr_json *j, uint64_t *v)
{
	int64_t n;

	if (tr_json_get_hex(j, v))
		return true;
	if (!tr_json_get_int(j, &n))
		return false;
	*v = (uint64_t)n;
	return true;
}

typedef const char *namer(uint64_t v);

static const char *action_name(uint64_t v)
{
	static const char *const names[] = {
		[TR_SIG_HANDLER] = "handler", [TR_SIG_FATAL] = "fatal",
		[TR_SIG_NONE] = "none",
	};

	return v >= TR_SIG_HANDLER && v <= TR_SIG_NONE ? names[v] : "?";
}

/* The small number that has this name. */
static uint64_t by_name(namer *name, const char *s)
{
	for (uint64_t v = 1; v < 64; v++)
		if (strcmp(name(v), s) == 0)
			return v;
	return 0;
}

static void set_scalar(struct tr_event *ev, enum tr_field f,
		       const struct tr_json *j)
{
	const char *s;
	uint64_t v;

	if (get_number(j, &v)) {
		tr_event_set(ev, f, v);
		return;
	}
	if (!tr_json_get_string(j, &s))
		return;
	if (f == TR_F_ACTION)
		tr_event_set(ev, f, by_name(action_name, s));
	else if (f == TR_F_INSN)
		tr_event_set(ev, f, by_name(tr_insn_name, s));
	else if (f == TR_F_CODE)
		tr_event_set(ev, f, by_name(tr_note_name, s));
}

static int parse_head(const struct tr_json *j, struct tr_event *ev,
		      struct tr_error *err)
{
	int64_t number, task, stream = 1, time = 0;

	if (!tr_json_get_int(tr_json_get(j, "event"), &number) ||
	    !tr_json_get_int(tr_json_get(j, "task"), &task))
		return 0;
	tr_json_get_int(tr_json_get(j, "stream"), &stream);
	tr_json_get_int(tr_json_get(j, "time"), &time);
	if (number < 1 || number > MAX_NUMBER || task < 0 ||
	    task > UINT32_MAX || stream < 0 || stream > UINT32_MAX)
		return tr_fail(err, TR_ECORRUPT, "event %" PRId64 ", task %"
			       PRId64 ": no event has such numbers", number,
			       task);
	ev->number = (uint64_t)number;
	ev->task = (uint32_t)task;
	ev->stream = (uint32_t)stream;
	ev->time = (uint64_t)time;
	return 1;
}

int tr_event_parse(const struct tr_json *j, struct tr_event *ev, char **text,
		   struct tr_error *err)
{
	const char *type;
	size_t n;
	int r;

	*ev = (struct tr_event){0};
	*text = NULL;
	if (!tr_json_get_string(tr_json_get(j, "type"), &type))
		return 0;
	ev->type = (enum tr_event_type)tr_event_type_by_name(type);
	if (!ev->type)
		return 0;
	r = parse_head(j, ev, err);
	if (r <= 0)
		return r;
#define X(NAME, tag, name, sign, form)                                         \
	set_scalar(ev, TR_F_##NAME, tr_json_get(j, name));
	TR_SCALAR_FIELDS(X)
#undef X
	if (tr_json_get_bytes(tr_json_get(j, "text"), text, &n)) {
		ev->text = (struct tr_bytes){*text, n};
		tr_event_mark(ev, TR_F_TEXT);
	}
	return 1;
}
