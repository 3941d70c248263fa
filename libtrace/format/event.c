/* Names of event types, notes and store methods. */
#include "libtrace/format/event.h"

#include <string.h>

static const struct {
	unsigned code;
	const char *name;
} types[] = {
#define X(NAME, code, name, meaning) {code, name},
	TR_EVENT_TYPES(X)
#undef X
};

#define NTYPES (sizeof types / sizeof *types)

const char *tr_event_type_name(unsigned type)
{
	for (size_t i = 0; i < NTYPES; i++)
		if (types[i].code == type)
			return types[i].name;
	return NULL;
}

unsigned tr_event_type_by_name(const char *name)
{
	for (size_t i = 0; i < NTYPES; i++)
		if (strcmp(types[i].name, name) == 0)
			return types[i].code;
	return 0;
}

const char *tr_insn_name(uint64_t insn)
{
	switch (insn) {
#define X(NAME, number, name)                                                  \
	case TR_INSN_##NAME:                                                   \
		return name;
	TR_INSNS(X)
#undef X
	default:
		return "?";
	}
}

const char *tr_note_name(uint64_t code)
{
	switch (code) {
#define X(NAME, number, name, meaning)                                         \
	case TR_NOTE_##NAME:                                                   \
		return name;
	TR_NOTES(X)
#undef X
	default:
		return "?";
	}
}

const char *tr_method_name(uint64_t method)
{
	switch (method) {
	case TR_STORE_CLONE:
		return "clone";
	case TR_STORE_LINK:
		return "link";
	case TR_STORE_COPY:
		return "copy";
	}
	return "?";
}
