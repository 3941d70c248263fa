/*
 * Comparing two executions: from the events of one side to items.
 *
 * A side is read in its global order and reduced to items: a hash of what
 * counts of an event, and its number.
 */
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/format/event_copy.h"
#include "libtrace/format/manifest.h"
#include "libtrace/model/compare_impl.h"
#include "libtrace/model/describe.h"
#include "libtrace/model/parse.h"

/* A call that has begun. */
struct begun {
	uint64_t hash, number; /* number 0: none */
	uint32_t key;
	char *line;
};

struct tr_compare_side {
	struct tr_compare_input in;
	tr_compare_take *take;
	void *ctx;
	bool states;
	struct tr_canon canon;
	struct tr_cursor *cursor;
	/* Of lines. */
	char *line;
	size_t line_size;
	uint64_t line_number;
	/* The event under way, and its line and value when it is one. */
	struct tr_event parsed;
	const struct tr_event *ev;
	struct tr_json *json;
	char *text;
	bool held; /* it has not been taken yet */
	struct tr_table begun; /* struct begun by task */
	uint64_t read;         /* events so far */
	/* The event whose `more` records are awaited. */
	bool open;
	struct tr_event *call; /* a copy, while it reads data in parts */
	uint64_t task;         /* name */
	struct tr_compare_item item;
	bool last;             /* of its task */
	uint64_t parts;
	XXH3_state_t *data;
};

struct tr_compare_side *tr_compare_side_new(const struct tr_compare_input *in,
					    unsigned ignore,
					    tr_compare_take *take, void *ctx)
{
	struct tr_compare_side *s = tr_alloc(sizeof *s);

	s->in = *in;
	s->take = take;
	s->ctx = ctx;
	s->canon.ignore = ignore;
	if (in->reader)
		s->cursor = tr_cursor_all(in->reader);
	s->data = tr_need(XXH3_createState());
	return s;
}

static void forget_event(struct tr_compare_side *s)
{
	if (s->json)
		tr_json_free(s->json);
	s->json = NULL;
	free(s->text);
	s->text = NULL;
}

void tr_compare_side_free(struct tr_compare_side *s)
{
	if (!s)
		return;
	if (s->cursor)
		tr_cursor_free(s->cursor);
	forget_event(s);
	free(s->line);
	free(s->item.line);
	tr_canon_release(&s->canon);
	TR_TABLE_EACH(&s->begun, slot) {
		struct begun *b = slot->value;

		free(b->line);
		free(b);
	}
	tr_table_release(&s->begun);
	tr_event_free(s->call);
	XXH3_freeState(s->data);
	free(s);
}

uint64_t tr_compare_side_read(const struct tr_compare_side *s)
{
	return s->read;
}

const struct tr_canon *tr_compare_side_canon(const struct tr_compare_side *s)
{
	return &s->canon;
}

void tr_compare_side_set(struct tr_compare_side *s, bool described,
			 bool states)
{
	s->canon.described = described;
	s->states = states;
}

void tr_compare_side_kin(struct tr_compare_side *s,
			 const struct tr_table *ordinals)
{
	s->canon.ordinals = ordinals;
}

/* ---- hashes ---- */

static uint64_t combine(uint64_t a, uint64_t b)
{
	const uint64_t both[2] = {a, b};

	return XXH3_64bits(both, sizeof both);
}

static void hash_field(void *arg, const struct tr_canon_field *f)
{
	uint64_t *h = arg;

	*h = combine(*h, f->value);
}

/* The member `args` of an event's description; `owned` is to be freed. */
static const struct tr_json *args_of(const struct tr_compare_side *s,
				     const struct tr_event *ev,
				     struct tr_json **owned)
{
	*owned = s->json ? NULL : tr_describe_json(ev, false);
	return tr_json_get(s->json ? s->json : *owned, "args");
}

static uint64_t hash_call(const struct tr_compare_side *s,
			  const struct tr_event *ev)
{
	uint64_t h = TR_EV_SYSCALL;
	struct tr_json *owned;

	if (!s->canon.described) {
		tr_canon_call(&s->canon, ev, hash_field, &h);
		return h;
	}
	tr_canon_described(&s->canon, ev, args_of(s, ev, &owned), false,
			   hash_field, &h);
	if (owned)
		tr_json_free(owned);
	return h;
}

/* What a call has read, as far as it is described. */
static uint64_t hash_described_data(const struct tr_compare_side *s,
				    const struct tr_event *ev)
{
	uint64_t h = 0;
	struct tr_json *owned;

	tr_canon_described(&s->canon, ev, args_of(s, ev, &owned), true,
			   hash_field, &h);
	if (owned)
		tr_json_free(owned);
	return h;
}

static uint32_t key_of(const struct tr_event *ev)
{
	uint64_t what = tr_event_get(ev, ev->type == TR_EV_SIGNAL ? TR_F_SIGNO :
				     ev->type == TR_EV_INSN ? TR_F_INSN :
				     TR_F_NR);
	unsigned type = ev->type;

	if (type == TR_EV_ENTER || type == TR_EV_CLONE)
		type = TR_EV_SYSCALL;
	return (uint32_t)combine(type, what) & 0xffffff;
}

/* ---- calls that have begun ---- */

static struct begun *begun_of(struct tr_compare_side *s, uint32_t task)
{
	struct begun *b = tr_table_get(&s->begun, task);

	if (!b) {
		b = tr_alloc(sizeof *b);
		tr_table_set(&s->begun, task, b);
	}
	return b;
}

/* A clone event after an enter event says nothing new about the call. */
static void begin_call(struct tr_compare_side *s, const struct tr_event *ev)
{
	struct begun *b = begun_of(s, ev->task);

	if (b->number)
		return;
	b->hash = hash_call(s, ev);
	b->number = ev->number;
	b->key = key_of(ev);
	b->line = s->json ? tr_strdup(s->line) : NULL;
}

/* A call that never returned: execve, exit, or one the task died in. */
static void unfinished_call(struct tr_compare_side *s,
			    const struct tr_event *ev)
{
	struct begun *b = begun_of(s, ev->task);
	struct tr_compare_item it = {.hash = combine(b->hash, 0),
				     .number = b->number & ((1ull << 40) - 1),
				     .key = b->key & 0xffffff,
				     .line = b->line};

	if (!b->number)
		return;
	b->number = 0;
	b->line = NULL;
	s->take(s->ctx, tr_canon_task(&s->canon, ev->task), &it, false);
}

/* ---- items ---- */

static void add_data(struct tr_compare_side *s, const struct tr_event *call,
		     const struct tr_event *ev)
{
	TR_AUTOBUF struct tr_buf names = {0};

	for (size_t i = 0; i < ev->nmem; i++) {
		struct tr_bytes d = tr_canon_data(&s->canon, call, &ev->mem[i]);

		names.len = 0;
		if (d.len && tr_canon_is_dirents(call))
			d = tr_compare_dirents(d, &names);
		if (d.len)
			XXH3_64bits_update(s->data, d.data, d.len);
	}
}

static void close_item(struct tr_compare_side *s)
{
	s->open = false;
	s->item.hash = combine(s->item.hash, XXH3_64bits_digest(s->data));
	s->take(s->ctx, s->task, &s->item, s->last);
	s->item.line = NULL;
	tr_event_free(s->call);
	s->call = NULL;
}

static char *join_lines(char *first, const char *second)
{
	char *both = first ? tr_printf("%s\n%s", first, second)
			   : tr_strdup(second);

	free(first);
	return both;
}

static uint64_t hash_event(struct tr_compare_side *s, const struct tr_event *ev)
{
	struct begun *b = begun_of(s, ev->task);
	uint64_t h = ev->type;

	s->item.enter = 0;
	s->item.line = s->json ? tr_strdup(s->line) : NULL;
	if (ev->type == TR_EV_SYSCALL) {
		h = b->number ? b->hash : hash_call(s, ev);
		s->item.enter = b->number;
		if (b->number && s->json) {
			free(s->item.line);
			s->item.line = join_lines(b->line, s->line);
			b->line = NULL;
		}
		b->number = 0;
		if (s->canon.described)
			h = combine(h, hash_described_data(s, ev));
	}
	tr_canon_rest(&s->canon, ev, hash_field, &h);
	return h;
}

static void open_item(struct tr_compare_side *s, const struct tr_event *ev)
{
	s->item.hash = hash_event(s, ev);
	s->item.number = ev->number & ((1ull << 40) - 1);
	s->item.key = key_of(ev) & 0xffffff;
	s->task = tr_canon_task(&s->canon, ev->task);
	s->last = ev->type == TR_EV_EXIT;
	s->parts = s->json ? 0 : tr_event_get(ev, TR_F_PARTS);
	s->open = true;
	XXH3_64bits_reset(s->data);
	add_data(s, ev, ev);
	if (s->parts == 0) {
		close_item(s);
		return;
	}
	/* Of the call only registers and result are needed from now on. */
	struct tr_event head = *ev;

	head.xstate = head.siginfo = head.text = head.sha256 =
		(struct tr_bytes){NULL, 0};
	head.nmem = head.nmap = head.narg = 0;
	s->call = tr_event_copy(&head);
}

static void take_event(struct tr_compare_side *s, const struct tr_event *ev)
{
	if (ev->type == TR_EV_MORE) {
		if (!s->open || ev->number != s->item.number)
			return;
		add_data(s, s->call, ev);
		if (--s->parts == 0)
			close_item(s);
		return;
	}
	if (s->open) /* its last parts are lost */
		close_item(s);
	/* A pipe of states has no other events to learn tasks from. */
	if (!s->states || ev->type == TR_EV_STATE)
		tr_canon_learn(&s->canon, ev);
	if (s->states ? ev->type != TR_EV_STATE : tr_canon_ignores(&s->canon, ev))
		return;
	if (ev->type == TR_EV_ENTER || ev->type == TR_EV_CLONE) {
		begin_call(s, ev);
		return;
	}
	if (ev->type == TR_EV_IMAGE || ev->type == TR_EV_EXIT)
		unfinished_call(s, ev);
	open_item(s, ev);
}

/* ---- reading ---- */

/* The next line that is an event: 1, or 0 at the end. */
static int next_line(struct tr_compare_side *s, struct tr_error *err)
{
	ssize_t n;
	int r;

	while ((n = getline(&s->line, &s->line_size, s->in.lines)) > 0) {
		forget_event(s);
		s->line_number++;
		if (s->line[n - 1] == '\n')
			s->line[--n] = '\0';
		if (n == 0)
			continue;
		s->json = tr_json_parse(s->line, (size_t)n, s->in.name, err);
		r = s->json ? tr_event_parse(s->json, &s->parsed, &s->text, err)
			    : -1;
		if (r < 0)
			return tr_error_prefix(err, "%s: line %" PRIu64,
					       s->in.name, s->line_number);
		s->ev = &s->parsed;
		if (r > 0)
			return 1;
	}
	if (ferror(s->in.lines))
		return tr_fail_errno(err, "%s", s->in.name);
	return 0;
}

static int read_event(struct tr_compare_side *s, struct tr_error *err)
{
	int r;

	if (s->held) {
		s->held = false;
		return s->ev != NULL;
	}
	if (!s->cursor)
		return next_line(s, err);
	r = tr_cursor_next(s->cursor, &s->ev, err);
	return r < 0 ? tr_error_prefix(err, "%s", s->in.name) : r;
}

/* Digests of stored files come after the events that map them. */
static int learn_contents(struct tr_compare_side *s, struct tr_error *err)
{
	const struct tr_manifest *m = tr_reader_manifest(s->in.reader);
	struct tr_cursor *cur = tr_cursor_stream(s->in.reader, 0);
	const struct tr_event *ev;
	int r;

	while ((r = tr_cursor_next(cur, &ev, err)) > 0)
		if (ev->type == TR_EV_DIGEST && ev->sha256.len == 32)
			tr_canon_content(&s->canon,
					 tr_event_get(ev, TR_F_FILE),
					 ev->sha256.data);
	tr_cursor_free(cur);
	for (size_t i = 0; i < m->ndigests; i++)
		tr_canon_content(&s->canon, m->digests[i].file,
				 m->digests[i].sha256);
	return r < 0 ? tr_error_prefix(err, "%s", s->in.name) : 0;
}

int tr_compare_side_begin(struct tr_compare_side *s, bool *state,
			  struct tr_error *err)
{
	int r = read_event(s, err);

	if (r < 0 || (s->in.reader && !(s->canon.ignore & TR_IGNORE_FILES) &&
		      learn_contents(s, err) < 0))
		return -1;
	if (r == 0 && s->in.lines)
		return tr_fail(err, TR_ECORRUPT, "%s: no event in it",
			       s->in.name);
	if (r == 0)
		s->ev = NULL;
	s->held = true;
	*state = r > 0 && s->ev->type == TR_EV_STATE;
	return 0;
}

int tr_compare_side_next(struct tr_compare_side *s, struct tr_error *err)
{
	int r = read_event(s, err);

	if (r > 0) {
		s->read++;
		take_event(s, s->ev);
	} else if (r == 0 && s->open) {
		close_item(s);
	}
	return r;
}
