/* Known sites. */
#include "libtrace/tracee/known.h"

#include <stdlib.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/format/home.h"
#include "libtrace/format/page_list.h"
#include "libtrace/format/site_list.h"

void tr_known_release(struct tr_known *k)
{
	free(k->site);
	*k = (struct tr_known){0};
}

bool tr_known_has(const struct tr_known *k, uint32_t file, uint64_t offset)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->site[i].file == file && k->site[i].stub.at == offset)
			return true;
	return false;
}

void tr_known_add(struct tr_known *k, uint32_t file, const struct tr_stub *stub)
{
	if (tr_known_has(k, file, stub->at))
		return;
	TR_GROW(k->site, k->n, k->cap);
	k->site[k->n++] = (struct tr_known_site){file, *stub};
}

/* What is not in the file stays 0, as in memory. */
static void read_code(int fd, uint64_t offset, uint8_t *buf, size_t n)
{
	if (tr_pread_full(fd, buf, n, (off_t)offset) < 0)
		return;
}

void tr_known_read(struct tr_known *k, int fd, uint32_t file,
		   struct tr_stub stub)
{
	uint64_t lead = tr_stub_lead(&stub);

	if (stub.what.length > sizeof stub.insn)
		return;
	read_code(fd, stub.at, stub.insn, stub.what.length);
	read_code(fd, stub.way.hole, stub.hole, sizeof stub.hole);
	if (stub.way.via)
		read_code(fd, stub.way.via, stub.via, lead ? lead : TR_JUMP);
	tr_known_add(k, file, &stub);
}

void tr_known_load(struct tr_known *k, int dirfd, uint32_t file,
		   const struct tr_bytes *list)
{
	struct tr_span s = tr_span_of(list);
	struct tr_listed_site site;
	uint64_t next = 0;
	TR_AUTOCLOSE int fd = tr_stored_open(dirfd, file);

	while (tr_site_list_get(&s, &next, &site))
		tr_known_read(k, fd, file, (struct tr_stub){
			.at = site.at, .way = {site.via, site.hole},
			.what = {site.insn, site.length}});
}

static int by_place(const void *a, const void *b)
{
	const struct tr_listed_site *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

size_t tr_known_list(const struct tr_known *k, uint32_t file,
		     struct tr_buf *list)
{
	TR_AUTOFREE struct tr_listed_site *site =
		tr_alloc(k->n * sizeof *site);
	uint64_t next = 0;
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++) {
		const struct tr_stub *s = &k->site[i].stub;

		if (k->site[i].file == file)
			site[n++] = (struct tr_listed_site){
				s->at, s->what.insn, s->what.length,
				s->way.via, s->way.hole};
	}
	qsort(site, n, sizeof *site, by_place);
	for (size_t i = 0; i < n; i++)
		tr_site_list_put(list, &next, &site[i]);
	return n;
}
