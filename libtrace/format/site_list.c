/* Lists of sites in a file's code. */
#include "libtrace/format/site_list.h"

#define OFFSET_MAX ((uint64_t)1 << 62)
#define LENGTH_MAX 15u

void tr_site_list_put(struct tr_buf *b, uint64_t *next,
		      const struct tr_listed_site *site)
{
	uint64_t via = site->via ? site->via - site->at : 0;

	tr_buf_put_varint(b, site->at - *next);
	tr_buf_put_varint(b, site->insn);
	tr_buf_put_varint(b, site->length);
	tr_buf_put_varint(b, tr_zigzag((int64_t)via));
	tr_buf_put_varint(b, tr_zigzag((int64_t)(site->hole - site->at)));
	*next = site->at + 1;
}

static bool is_insn(uint64_t insn)
{
	switch (insn) {
#define X(NAME, code, name) case code:
	TR_INSNS(X)
#undef X
	case 0:
		return true;
	default:
		return false;
	}
}

bool tr_site_list_get(struct tr_span *s, uint64_t *next,
		      struct tr_listed_site *site)
{
	uint64_t distance, insn, length, via, hole;
	struct tr_span in = *s;

	if (tr_span_left(s) == 0 || !tr_span_varint(&in, &distance) ||
	    !tr_span_varint(&in, &insn) || !tr_span_varint(&in, &length) ||
	    !tr_span_varint(&in, &via) || !tr_span_varint(&in, &hole) ||
	    distance >= OFFSET_MAX - *next || !is_insn(insn) ||
	    length == 0 || length > LENGTH_MAX)
		return false;
	site->at = *next + distance;
	site->insn = (enum tr_insn)insn;
	site->length = (uint8_t)length;
	site->via = via ? site->at + (uint64_t)tr_unzigzag(via) : 0;
	site->hole = site->at + (uint64_t)tr_unzigzag(hole);
	if (site->via >= OFFSET_MAX || site->hole >= OFFSET_MAX ||
	    (via && !site->via))
		return false;
	*next = site->at + 1;
	*s = in;
	return true;
}
