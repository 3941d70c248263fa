/* Limits of events, the same for the encoder and the decoder. */
#include "libtrace/format/limits.h"

#include "libtrace/format/blocks.h"
#include "libtrace/format/page_list.h"
#include "libtrace/format/site_list.h"

#define PAGE_MASK ((uint64_t)4095)
#define BIT(n) ((uint64_t)1 << (n))

/* Fields held in 32 bits by those who use them. */
#define NARROW                                                                 \
	(BIT(TR_F_PARENT) | BIT(TR_F_CHILD) | BIT(TR_F_CHILD_STREAM) |         \
	 BIT(TR_F_FILE))

static const char *bad_scalar(const struct tr_event *ev)
{
	for (uint64_t m = ev->has & NARROW; m; m &= m - 1)
		if (ev->v[__builtin_ctzll(m)] > UINT32_MAX)
			return "an id is larger than 32 bits";
	if (tr_event_has(ev, TR_F_PARTS) && ev->v[TR_F_PARTS] > TR_MAX_PARTS)
		return "too many parts";
	return NULL;
}

static bool are_pages(const struct tr_bytes *b)
{
	struct tr_span s = tr_span_of(b);
	struct tr_page_hash page;
	uint64_t next = 0;

	while (tr_page_list_get(&s, &next, &page))
		;
	return b->len <= TR_MAX_LIST && tr_span_left(&s) == 0;
}

static bool are_sites(const struct tr_bytes *b)
{
	struct tr_span s = tr_span_of(b);
	struct tr_listed_site site;
	uint64_t next = 0;

	while (tr_site_list_get(&s, &next, &site))
		;
	return b->len <= TR_MAX_LIST && tr_span_left(&s) == 0;
}

/* What is in blocks has no bytes of its own, and is as large as a record may be
 * at most. */
static bool are_blocks(const struct tr_event *ev)
{
	struct tr_span s = tr_span_of(&ev->blocks);
	struct tr_block_use use;
	size_t next = 0, total = 0;

	while (tr_block_list_get(&s, &next, &use)) {
		total += use.len;
		if (use.index >= ev->nmem || ev->mem[use.index].bytes.len ||
		    use.len > UINT64_MAX - ev->mem[use.index].addr ||
		    total > TR_MAX_RECORD)
			return false;
	}
	return ev->blocks.len <= TR_MAX_LIST && tr_span_left(&s) == 0;
}

static const char *bad_bytes(const struct tr_event *ev)
{
	if (tr_event_has(ev, TR_F_XSTATE) && ev->xstate.len > TR_MAX_XSTATE)
		return "xstate too large";
	if (tr_event_has(ev, TR_F_TEXT) && ev->text.len > TR_MAX_TEXT)
		return "text too long";
	if (tr_event_has(ev, TR_F_SIGINFO) && ev->siginfo.len != 128)
		return "siginfo is not of 128 bytes";
	if (tr_event_has(ev, TR_F_SHA256) && ev->sha256.len != 32)
		return "sha256 is not of 32 bytes";
	if (tr_event_has(ev, TR_F_DIGESTS) &&
	    (ev->digests.len > TR_MAX_LIST || ev->digests.len % 8 != 0))
		return "digests not whole or too many";
	if (tr_event_has(ev, TR_F_PAGE_HASHES) && !are_pages(&ev->page_hashes))
		return "pages not whole or too many";
	if (tr_event_has(ev, TR_F_BLOCKS) && !are_blocks(ev))
		return "blocks without their memory, or too many";
	if (tr_event_has(ev, TR_F_KNOWN) && !are_sites(&ev->known))
		return "known sites not whole or too many";
	return NULL;
}

static const char *bad_mem(const struct tr_mem *m)
{
	if (m->bytes.len > TR_MEM_PIECE)
		return "memory piece too large";
	if (m->bytes.len > UINT64_MAX - m->addr)
		return "memory wraps around";
	return NULL;
}

static const char *bad_map(const struct tr_map *m)
{
	if ((m->start | m->end) & PAGE_MASK)
		return "mapping not page aligned";
	if (m->end <= m->start)
		return "mapping ends before it starts";
	if (m->name.len > TR_MAX_TEXT)
		return "mapping name too long";
	return NULL;
}

static const char *bad_arg(const struct tr_arg *a)
{
	if (a->index > 5)
		return "argument number too large";
	if (a->is_string > 1)
		return "argument kind not known";
	if (a->bytes.len >
	    (a->is_string ? TR_ARG_STRING_MAX : TR_ARG_PREFIX_MAX))
		return "argument bytes too many";
	if (a->bytes.len > a->len)
		return "argument shorter than its bytes";
	return NULL;
}

static const char *bad_lists(const struct tr_event *ev)
{
	const char *why = NULL;

	for (size_t i = 0; i < ev->nmem && !why; i++)
		why = bad_mem(&ev->mem[i]);
	for (size_t i = 0; i < ev->nmap && !why; i++)
		why = bad_map(&ev->map[i]);
	for (size_t i = 0; i < ev->narg && !why; i++)
		why = bad_arg(&ev->arg[i]);
	return why;
}

const char *tr_out_of_limits(const struct tr_event *ev)
{
	const char *why;

	if ((ev->type == TR_EV_BLOCK) != (ev->stream == TR_BLOCK_STREAM))
		return "a block outside of its stream, or no block in it";
	if (ev->type == TR_EV_BLOCK && ev->nmem != 1)
		return "a block that is not one piece of memory";
	if (ev->type >= TR_FIRST_COMPAT_TYPE &&
	    ev->has & (BIT(TR_F_REGS) | BIT(TR_F_REGS_AFTER)))
		return "registers in an event that readers may skip";
	why = bad_scalar(ev);
	if (!why)
		why = bad_bytes(ev);
	return why ? why : bad_lists(ev);
}
