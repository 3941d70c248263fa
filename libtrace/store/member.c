/* The names a packed trace may hold: parsing and making them. */
#include "libtrace/store/member.h"

#include <stdio.h>
#include <string.h>

bool tr_member_is_dir(const struct tr_member *m)
{
	return m->kind == TR_MEMBER_TRACE || m->kind == TR_MEMBER_CHUNKS ||
	       m->kind == TR_MEMBER_FILES;
}

bool tr_trace_name_ok(const char *name, size_t n)
{
	if (n == 0 || n > TR_TRACE_NAME_MAX || name[0] == '.')
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c < 0x20 || c == 0x7f || c == '/')
			return false;
	}
	return true;
}

/* A number that printing gives back: one spelling for each. */
static bool parse_number(const char *s, int width, uint32_t *number)
{
	char again[16];
	uint64_t v = 0;

	if (*s == '\0' || strlen(s) > 10)
		return false;
	for (const char *p = s; *p; p++) {
		if (*p < '0' || *p > '9')
			return false;
		v = v * 10 + (uint64_t)(*p - '0');
	}
	if (v > UINT32_MAX)
		return false;
	*number = (uint32_t)v;
	snprintf(again, sizeof again, "%0*u", width, *number);
	return strcmp(s, again) == 0;
}

bool tr_chunk_name_parse(const char *s, uint32_t *number)
{
	return parse_number(s, 6, number);
}

bool tr_file_name_parse(const char *s, uint32_t *number)
{
	return parse_number(s, 1, number) && *number > 0;
}

static bool parse_rest(const char *rest, struct tr_member *m)
{
	static const struct {
		const char *name;
		enum tr_member_kind kind;
	} fixed[] = {
		{"", TR_MEMBER_TRACE},
		{"manifest.json", TR_MEMBER_MANIFEST},
		{"index", TR_MEMBER_INDEX},
		{"chunks", TR_MEMBER_CHUNKS},
		{"chunks/", TR_MEMBER_CHUNKS},
		{"files", TR_MEMBER_FILES},
		{"files/", TR_MEMBER_FILES},
	};

	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
		m->kind = fixed[i].kind;
		if (strcmp(rest, fixed[i].name) == 0)
			return true;
	}
	m->kind = TR_MEMBER_CHUNK;
	if (strncmp(rest, "chunks/", 7) == 0)
		return tr_chunk_name_parse(rest + 7, &m->number);
	m->kind = TR_MEMBER_FILE;
	return strncmp(rest, "files/", 6) == 0 &&
	       tr_file_name_parse(rest + 6, &m->number);
}

bool tr_member_parse(const char *path, struct tr_member *m)
{
	const char *slash = strchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : strlen(path);

	memset(m, 0, sizeof *m);
	if (!tr_trace_name_ok(path, n))
		return false;
	memcpy(m->trace, path, n);
	return parse_rest(slash ? slash + 1 : "", m);
}

void tr_member_rest(const struct tr_member *m, char out[32])
{
	static const char *const fixed[] = {
		[TR_MEMBER_TRACE] = "",
		[TR_MEMBER_MANIFEST] = "manifest.json",
		[TR_MEMBER_INDEX] = "index",
		[TR_MEMBER_CHUNKS] = "chunks/",
		[TR_MEMBER_FILES] = "files/",
	};

	if (m->kind == TR_MEMBER_CHUNK)
		snprintf(out, 32, "chunks/%06u", m->number);
	else if (m->kind == TR_MEMBER_FILE)
		snprintf(out, 32, "files/%u", m->number);
	else
		snprintf(out, 32, "%s", fixed[m->kind]);
}

void tr_member_path(const struct tr_member *m, char out[TR_MEMBER_PATH_MAX])
{
	char rest[32];

	tr_member_rest(m, rest);
	snprintf(out, TR_MEMBER_PATH_MAX, "%s/%s", m->trace, rest);
}
