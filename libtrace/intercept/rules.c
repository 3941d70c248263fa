/* Rules for the injected code, from the syscall model. */
#include "libtrace/intercept/rules.h"

#include <cpuid.h>
#include <sys/syscall.h>

#include "libtrace/model/syscalls.h"

static uint8_t count_type(enum tr_arg_type type)
{
	switch (type) {
	case TR_ARG_INT:
		return TR_COUNT_INT;
	case TR_ARG_UINT:
		return TR_COUNT_UINT;
	default:
		return TR_COUNT_LONG;
	}
}

static bool is_count(enum tr_arg_type type)
{
	return type == TR_ARG_INT || type == TR_ARG_UINT || type == TR_ARG_SIZE;
}

/* The size of a buffer; false when the injected code could not tell it. */
static bool size_rule(const struct tr_sys *sys, unsigned i,
		      struct tr_rule_mem *m)
{
	const struct tr_size_rule *size = &sys->arg[i].size;

	if (size->scale > UINT16_MAX)
		return false;
	m->scale = (uint16_t)size->scale;
	switch (size->kind) {
	case TR_SIZE_CONST:
		m->size = TR_RULE_CONST;
		return true;
	case TR_SIZE_ARG:
		m->size = TR_RULE_ARG;
		m->count = size->arg;
		break;
	case TR_SIZE_RESULT:
		/* Without a stated limit it is the buffer's size, which all
		 * calls take next. */
		m->size = TR_RULE_RESULT;
		m->count = size->limit ? (uint8_t)(size->limit - 1)
				       : (uint8_t)(i + 1);
		break;
	default:
		return false;
	}
	if (m->count >= sys->nargs || !is_count(sys->arg[m->count].type))
		return false;
	m->count_type = count_type(sys->arg[m->count].type);
	return true;
}

static bool buffer_rule(const struct tr_sys *sys, unsigned i,
			struct tr_rule *rule)
{
	const struct tr_sys_arg *a = &sys->arg[i];
	struct tr_rule_mem m = {.arg = (uint8_t)i};

	/* What fcntl and futex point to depends on the command:
	 * tr_call_is_simple lets those pass that point to nothing. */
	if (a->size.kind == TR_SIZE_CODE && sys->nr != SYS_ioctl)
		return sys->nr == SYS_fcntl || sys->nr == SYS_futex;
	if (rule->nmem == TR_RULE_MEMS)
		return false;
	if (sys->nr == SYS_ioctl) {
		m.what = TR_RULE_OUT;
		m.size = TR_RULE_COMMAND;
		rule->mem[rule->nmem++] = m;
		return true;
	}
	m.what = (uint8_t)((a->dir & TR_DIR_IN ? TR_RULE_IN : 0) |
			   (a->dir & TR_DIR_OUT ? TR_RULE_OUT : 0));
	/* Memory that is only written may be unreadable when the call fails. */
	if (a->even_on_error && a->dir != TR_DIR_INOUT)
		return false;
	if (a->even_on_error)
		m.what |= TR_RULE_ALWAYS;
	if (a->size.kind == TR_SIZE_DEREF32) {
		m.what = TR_RULE_NULL_ONLY;
		m.size = TR_RULE_CONST;
	} else if (!size_rule(sys, i, &m)) {
		return false;
	}
	rule->mem[rule->nmem++] = m;
	return true;
}

static bool path_rule(unsigned i, struct tr_rule *rule)
{
	if (rule->nmem == TR_RULE_MEMS)
		return false;
	rule->mem[rule->nmem++] = (struct tr_rule_mem){
		.arg = (uint8_t)i, .what = TR_RULE_IN | TR_RULE_STRING};
	return true;
}

static bool make_rule(const struct tr_sys *sys, struct tr_rule *rule)
{
	*rule = (struct tr_rule){0};
	for (unsigned i = 0; i < sys->nargs; i++) {
		switch (sys->arg[i].type) {
		case TR_ARG_PATH:
			if (!path_rule(i, rule))
				return false;
			break;
		case TR_ARG_BUF:
			if (!buffer_rule(sys, i, rule))
				return false;
			break;
		case TR_ARG_STRV:
		case TR_ARG_IOVEC:
		case TR_ARG_MSG:
			return false;
		default:
			break;
		}
	}
	/* Not those commands of theirs that tr_call_is_simple lets pass. */
	if (tr_sys_may_block((uint64_t)sys->nr) && sys->nr != SYS_futex &&
	    sys->nr != SYS_ioctl)
		rule->flags |= TR_RULE_BLOCKS;
	if (tr_sys_write_fd((uint64_t)sys->nr) == 0)
		rule->flags |= TR_RULE_WRITES_FD;
	if (sys->nr == SYS_close)
		rule->flags |= TR_RULE_FORGETS_FD0;
	if (sys->nr == SYS_dup2 || sys->nr == SYS_dup3)
		rule->flags |= TR_RULE_FORGETS_FD1;
	return true;
}

/* Intel SDM, CPUID, leaf 0DH: sizes, and in ECX bit 1 whether a part is
 * aligned in the compacted format. */
static void fill_parts(struct tr_calls_control *control)
{
	unsigned a, b, c, d;

	for (unsigned i = 2; i < TR_XSAVE_PARTS; i++)
		if (__get_cpuid_count(0xd, i, &a, &b, &c, &d))
			control->part_size[i] = (a & ~1u) | (c >> 1 & 1);
}

void tr_rules_fill(struct tr_calls_control *control)
{
	unsigned n = 0;

	fill_parts(control);

	for (unsigned nr = 0; nr < TR_RULES_NR && n < TR_RULES_MAX; nr++) {
		const struct tr_sys *sys = tr_sys_lookup(nr);

		if (sys && sys->quick && make_rule(sys, &control->rule[n]))
			control->rule_of[nr] = (uint8_t)++n;
	}
}

const struct tr_rule *tr_rule_find(const struct tr_calls_control *control,
				   uint64_t nr)
{
	unsigned i = nr < TR_RULES_NR ? control->rule_of[nr] : 0;

	return i ? &control->rule[i - 1] : NULL;
}
