/*
 * Comparing two executions: where in memory two states differ, as far as they
 * tell the digests of mappings and the hashes of changed pages.
 */
#include <stdio.h>
#include <string.h>

#include "libtrace/model/compare_impl.h"
#include "libtrace/model/describe.h"

static const char *text_of(const struct tr_json *j, const char *key)
{
	const char *s = "";

	tr_json_get_string(tr_json_get(j, key), &s);
	return s;
}

/* The element of the list that begins at the same address, or NULL. */
static const struct tr_json *same_place(const struct tr_json *list,
					const char *key,
					const struct tr_json *element)
{
	for (size_t i = 0; i < tr_json_length(list); i++) {
		const struct tr_json *j = tr_json_at(list, i);

		if (strcmp(text_of(j, key), text_of(element, key)) == 0)
			return j;
	}
	return NULL;
}

/*
 * The first element of either list whose value is not the same in the other.
 * Both are in ascending order and seldom differ before what is looked for.
 */
static const struct tr_json *first_change(const struct tr_json *l,
					  const struct tr_json *r,
					  const char *place, const char *value)
{
	const struct tr_json *lists[2] = {l, r};

	for (size_t i = 0; i < tr_json_length(l) || i < tr_json_length(r); i++)
		for (int side = 0; side < 2; side++) {
			const struct tr_json *e = tr_json_at(lists[side], i);
			const struct tr_json *other = e ? same_place(
				lists[!side], place, e) : NULL;

			if (e && (!other || strcmp(text_of(e, value),
						   text_of(other, value)) != 0))
				return e;
		}
	return NULL;
}

/* The name of the mapping that holds the address, or "". */
static const char *mapping_name(const struct tr_json *state, uint64_t addr)
{
	const struct tr_json *maps = tr_json_get(state, "mappings");
	uint64_t start, end;

	for (size_t i = 0; i < tr_json_length(maps); i++) {
		const struct tr_json *m = tr_json_at(maps, i);

		if (tr_json_get_hex(tr_json_get(m, "start"), &start) &&
		    tr_json_get_hex(tr_json_get(m, "end"), &end) &&
		    start <= addr && addr < end)
			return text_of(m, "name");
	}
	return "";
}

static void append(struct tr_difference *d, const char *before,
		   const char *text)
{
	size_t n = strlen(d->what);

	snprintf(d->what + n, sizeof d->what - n, "%s%s", before, text);
}

static struct tr_json *state_json(const struct tr_compare_view *v,
				  struct tr_json **owned)
{
	*owned = v->json[0] ? NULL : tr_describe_json(v->event, false);
	return v->json[0] ? v->json[0] : *owned;
}

void tr_compare_name_memory(const struct tr_compare_view *left,
			    const struct tr_compare_view *right,
			    struct tr_difference *d)
{
	struct tr_json *own[2];
	const struct tr_json *l = state_json(left, &own[0]);
	const struct tr_json *r = state_json(right, &own[1]);
	const struct tr_json *map = first_change(tr_json_get(l, "mappings"),
						 tr_json_get(r, "mappings"),
						 "start", "digest");
	const struct tr_json *page = first_change(tr_json_get(l, "pages"),
						  tr_json_get(r, "pages"),
						  "addr", "hash");

	if (map) {
		append(d, "; mapping ", text_of(map, "start"));
		append(d, "-", text_of(map, "end"));
		append(d, " ", text_of(map, "name"));
	}
	if (page) {
		uint64_t addr = 0;

		tr_json_get_hex(tr_json_get(page, "addr"), &addr);
		append(d, "; page ", text_of(page, "addr"));
		append(d, " ", mapping_name(l, addr));
	}
	for (int i = 0; i < 2; i++)
		if (own[i])
			tr_json_free(own[i]);
}
