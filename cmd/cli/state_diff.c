/*
 * How the states of two traces differ.
 *
 * Both replays run at the same time and tell their pages in ascending order,
 * so that one page of each is held.  A page that is not told holds zeros.
 */
#include "cmd/cli/state_diff.h"

#include <inttypes.h>
#include <string.h>

#include "cmd/cli/output.h"
#include "libtrace/base/alloc.h"

enum { LEFT, RIGHT };

#define PAGE sizeof ((struct cli_replayed *)0)->bytes
#define GAP 8   /* equal bytes that do not end a piece */
#define LINE 16 /* bytes of a line in text */

struct diff {
	struct cli_replayed *side;
	bool json;
	uint64_t most;
	uint64_t pieces, pages, bytes;
};

static const char *const side_names[] = {"left", "right"};

static struct tr_json *text_json(const char *s)
{
	return s ? tr_json_string(s) : tr_json_null();
}

static void set_location(struct tr_json *j, const struct cli_location *l)
{
	tr_json_set(j, "mapping", text_json(l->mapping));
	tr_json_set(j, "symbol", text_json(l->symbol));
}

/* " name+0x12 in /path (prog.c:12)" */
static void print_location(const struct cli_location *l)
{
	if (l->symbol)
		printf(" %s%s", l->symbol, l->mapping ? " in" : "");
	if (l->mapping) {
		putchar(' ');
		cli_put_escaped(l->mapping, strlen(l->mapping));
	}
	if (l->source) {
		fputs(" (", stdout);
		cli_put_escaped(l->source, strlen(l->source));
		putchar(')');
	}
}

/* ---- places and registers ---- */

static void print_place(const struct diff *d, int which)
{
	const struct cli_replayed *r = &d->side[which];
	struct cli_location l = cli_replayed_locate(r, r->regs.rip, true);
	struct tr_json *j;

	if (d->json) {
		j = tr_json_object();
		tr_json_set(j, "type", tr_json_string("place"));
		tr_json_set(j, "side", tr_json_string(side_names[which]));
		tr_json_set(j, "event", tr_json_int((int64_t)r->event));
		tr_json_set(j, "task", tr_json_int(r->task));
		tr_json_set(j, "rip", tr_json_hex(r->regs.rip));
		set_location(j, &l);
		tr_json_set(j, "source", text_json(l.source));
		cli_json_line(j);
	} else {
		printf("%c%s after event %" PRIu64 ", task %" PRIu32 ", at 0x%"
		       PRIx64, which == LEFT ? '-' : '+', r->trace, r->event,
		       r->task, r->regs.rip);
		print_location(&l);
		putchar('\n');
	}
	cli_location_release(&l);
}

static void print_register(const struct diff *d, const char *name, uint64_t l,
			   uint64_t r)
{
	struct tr_json *j;

	if (l == r)
		return;
	if (!d->json) {
		printf("-%-8s 0x%016" PRIx64 "\n+%-8s 0x%016" PRIx64 "\n", name,
		       l, name, r);
		return;
	}
	j = tr_json_object();
	tr_json_set(j, "type", tr_json_string("register"));
	tr_json_set(j, "name", tr_json_string(name));
	tr_json_set(j, "left", tr_json_hex(l));
	tr_json_set(j, "right", tr_json_hex(r));
	cli_json_line(j);
}

static void print_registers(const struct diff *d)
{
	struct tr_regs l = d->side[LEFT].regs, r = d->side[RIGHT].regs;

	l.orig_rax = r.orig_rax = 0; /* no program sees it: state/regs.h */
#define X(name) print_register(d, #name, l.name, r.name);
	TR_REGS(X)
#undef X
}

/* ---- mappings ---- */

static void print_mapping(const struct diff *d, int which,
			  const struct cli_mapping *m)
{
	struct tr_json *j;

	if (!d->json) {
		printf("%c0x%" PRIx64 "-0x%" PRIx64 " %s ",
		       which == LEFT ? '-' : '+', m->start, m->end,
		       m->permissions);
		cli_put_escaped(m->name, strlen(m->name));
		putchar('\n');
		return;
	}
	j = tr_json_object();
	tr_json_set(j, "type", tr_json_string("layout"));
	tr_json_set(j, "side", tr_json_string(side_names[which]));
	tr_json_set(j, "start", tr_json_hex(m->start));
	tr_json_set(j, "end", tr_json_hex(m->end));
	tr_json_set(j, "permissions", tr_json_string(m->permissions));
	tr_json_set(j, "name", tr_json_bytes(m->name, strlen(m->name)));
	cli_json_line(j);
}

/* Ids of stored files are the trace's own: the name counts. */
static int compare_mappings(const struct cli_mapping *a,
			    const struct cli_mapping *b)
{
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	if (strcmp(a->permissions, b->permissions) != 0)
		return strcmp(a->permissions, b->permissions);
	return strcmp(a->name, b->name);
}

static void print_mappings(const struct diff *d)
{
	const struct cli_replayed *l = &d->side[LEFT], *r = &d->side[RIGHT];
	size_t i = 0, k = 0;

	while (i < l->nmaps || k < r->nmaps) {
		int order = i == l->nmaps ? 1 : k == r->nmaps ? -1 :
			    compare_mappings(&l->map[i], &r->map[k]);

		if (order < 0)
			print_mapping(d, LEFT, &l->map[i]);
		else if (order > 0)
			print_mapping(d, RIGHT, &r->map[k]);
		i += order <= 0;
		k += order >= 0;
	}
}

/* ---- memory ---- */

static void print_bytes(char sign, uint64_t addr, const uint8_t *p, size_t n)
{
	printf("%c%12" PRIx64 " ", sign, addr);
	for (size_t i = 0; i < LINE; i++)
		if (i < n)
			printf(" %02x", p[i]);
		else
			fputs("   ", stdout);
	fputs("  ", stdout);
	for (size_t i = 0; i < n; i++)
		putchar(p[i] >= 0x20 && p[i] < 0x7f ? p[i] : '.');
	putchar('\n');
}

static void print_piece_text(const struct cli_location *l, uint64_t addr,
			     const uint8_t *left, const uint8_t *right,
			     size_t n)
{
	printf("@@ memory: %zu byte%s at 0x%" PRIx64, n, n == 1 ? "" : "s",
	       addr);
	print_location(l);
	puts(" @@");
	for (size_t i = 0; i < n; i += LINE)
		print_bytes('-', addr + i, left + i, n - i < LINE ? n - i : LINE);
	for (size_t i = 0; i < n; i += LINE)
		print_bytes('+', addr + i, right + i,
			    n - i < LINE ? n - i : LINE);
}

static void print_piece(struct diff *d, uint64_t addr, const uint8_t *left,
			const uint8_t *right, size_t n)
{
	struct cli_location l;
	struct tr_json *j;

	if (d->most && d->pieces++ >= d->most)
		return;
	l = cli_replayed_locate(&d->side[LEFT], addr, false);
	if (!l.mapping)
		l = cli_replayed_locate(&d->side[RIGHT], addr, false);
	if (d->json) {
		j = tr_json_object();
		tr_json_set(j, "type", tr_json_string("memory"));
		tr_json_set(j, "addr", tr_json_hex(addr));
		tr_json_set(j, "size", tr_json_int((int64_t)n));
		set_location(j, &l);
		tr_json_set(j, "left", tr_json_hex_bytes(left, n));
		tr_json_set(j, "right", tr_json_hex_bytes(right, n));
		cli_json_line(j);
	} else {
		print_piece_text(&l, addr, left, right, n);
	}
	cli_location_release(&l);
}

static void compare_bytes(struct diff *d, uint64_t addr, const uint8_t *left,
			  const uint8_t *right)
{
	size_t i = 0;

	d->pages++;
	while (i < PAGE) {
		size_t start, end;

		while (i < PAGE && left[i] == right[i])
			i++;
		if (i == PAGE)
			return;
		for (start = end = i; i < PAGE && i < end + GAP; i++) {
			if (left[i] == right[i])
				continue;
			end = i + 1;
			d->bytes++;
		}
		print_piece(d, addr + start, left + start, right + start,
			    end - start);
	}
}

static int compare_pages(struct diff *d, struct tr_error *err)
{
	static const uint8_t zeros[PAGE];
	struct cli_replayed *l = &d->side[LEFT], *r = &d->side[RIGHT];

	while ((l->at_page || r->at_page) && cli_output_ok()) {
		bool left = l->at_page && (!r->at_page || l->addr <= r->addr);
		bool right = r->at_page && (!l->at_page || r->addr <= l->addr);
		uint64_t addr = left ? l->addr : r->addr;

		if (!left || !right || l->hash != r->hash)
			compare_bytes(d, addr, left ? l->bytes : zeros,
				      right ? r->bytes : zeros);
		if ((left && cli_replayed_page(l, err) < 0) ||
		    (right && cli_replayed_page(r, err) < 0))
			return -1;
	}
	return 0;
}

static void print_totals(const struct diff *d)
{
	struct tr_json *j;

	if (!d->json) {
		printf("%" PRIu64 " bytes of memory in %" PRIu64
		       " pages differ\n", d->bytes, d->pages);
		if (d->most && d->pieces > d->most)
			printf("?%" PRIu64 " more pieces (--max)\n",
			       d->pieces - d->most);
		return;
	}
	j = tr_json_object();
	tr_json_set(j, "type", tr_json_string("states"));
	tr_json_set(j, "pages", tr_json_int((int64_t)d->pages));
	tr_json_set(j, "bytes", tr_json_int((int64_t)d->bytes));
	cli_json_line(j);
}

static int compare(struct diff *d, struct tr_error *err)
{
	for (int i = LEFT; i <= RIGHT; i++)
		if (cli_replayed_start(&d->side[i], err) < 0)
			return -1;
	for (int i = LEFT; i <= RIGHT; i++)
		if (cli_replayed_begin(&d->side[i], err) < 0)
			return -1;
	if (!d->json)
		puts("@@ state @@");
	for (int i = LEFT; i <= RIGHT; i++)
		print_place(d, i);
	print_registers(d);
	print_mappings(d);
	if (compare_pages(d, err) < 0)
		return -1;
	print_totals(d);
	for (int i = LEFT; i <= RIGHT; i++)
		if (cli_output_ok() && cli_replayed_finish(&d->side[i], err) < 0)
			return -1;
	return 0;
}

int cli_state_diff(struct cli_replayed side[2], bool json, uint64_t most,
		   struct tr_error *err)
{
	struct diff d = {.side = side, .json = json, .most = most};
	int failed = compare(&d, err);

	cli_replayed_release(&side[LEFT]);
	cli_replayed_release(&side[RIGHT]);
	return failed;
}
