/* View: the files a trace has stored. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/output.h"
#include "cmd/cli/views.h"
#include "libtrace/base/alloc.h"

/*
 * A file's digest is a later event than the file, because it is computed in
 * the background: entries wait for the end.
 */
struct file {
	uint64_t event, id, method, dev, ino, mode, size;
	int64_t mtime;
	char *path;
	size_t path_len;
	bool has_digest, pages;
	uint8_t sha256[32];
};

struct state {
	bool json;
	struct file *files;
	size_t n, cap;
};

static void *files_open(bool json)
{
	struct state *s = tr_alloc(sizeof *s);

	s->json = json;
	return s;
}

static void add_file(struct state *s, const struct tr_event *ev)
{
	struct file *f;

	TR_GROW(s->files, s->n, s->cap);
	f = &s->files[s->n++];
	*f = (struct file){
		.event = ev->number,
		.id = tr_event_get(ev, TR_F_FILE),
		.method = tr_event_get(ev, TR_F_METHOD),
		.dev = tr_event_get(ev, TR_F_DEV),
		.ino = tr_event_get(ev, TR_F_INO),
		.mode = tr_event_get(ev, TR_F_MODE),
		.size = tr_event_get(ev, TR_F_SIZE),
		.mtime = (int64_t)tr_event_get(ev, TR_F_MTIME),
		.path = tr_memdup(ev->text.data, ev->text.len),
		.path_len = ev->text.len,
	};
}

static void set_digest(struct state *s, uint64_t id, const uint8_t *sha256,
		       bool pages)
{
	/* Digests arrive in the order of files, soon after them. */
	for (size_t i = s->n; i-- > 0;) {
		if (s->files[i].id != id)
			continue;
		if (s->files[i].has_digest)
			return;
		memcpy(s->files[i].sha256, sha256, sizeof s->files->sha256);
		s->files[i].has_digest = true;
		s->files[i].pages = pages;
		return;
	}
}

static void add_digest(struct state *s, const struct tr_event *ev)
{
	if (ev->sha256.len == sizeof s->files->sha256)
		set_digest(s, tr_event_get(ev, TR_F_FILE), ev->sha256.data,
			   tr_event_get(ev, TR_F_PAGES) == 1);
}

static void files_add(void *state, const struct tr_event *ev)
{
	if (ev->type == TR_EV_FILE)
		add_file(state, ev);
	else if (ev->type == TR_EV_DIGEST)
		add_digest(state, ev);
}

static void file_json(const struct file *f)
{
	struct tr_json *j = tr_json_object();
	const char *method = tr_method_name(f->method);

	tr_json_set(j, "type", tr_json_string("file"));
	tr_json_set(j, "event", tr_json_int((int64_t)f->event));
	tr_json_set(j, "file", tr_json_int((int64_t)f->id));
	tr_json_set(j, "path", tr_json_bytes(f->path, f->path_len));
	tr_json_set(j, "method", tr_json_string(method ? method : "?"));
	tr_json_set(j, "dev", tr_json_hex(f->dev));
	tr_json_set(j, "ino", tr_json_int((int64_t)f->ino));
	tr_json_set(j, "mode", tr_json_int((int64_t)f->mode));
	tr_json_set(j, "size", tr_json_int((int64_t)f->size));
	tr_json_set(j, "mtime", tr_json_int(f->mtime));
	if (f->pages)
		tr_json_set(j, "pages_sha256",
			    tr_json_hex_bytes(f->sha256, sizeof f->sha256));
	tr_json_set(j, "sha256", f->has_digest && !f->pages
		    ? tr_json_hex_bytes(f->sha256, sizeof f->sha256)
		    : tr_json_null());
	cli_json_line(j);
}

static void file_text(const struct file *f)
{
	const char *method = tr_method_name(f->method);

	printf("%5" PRIu64 " %-5s %12" PRIu64 "  ", f->id,
	       method ? method : "?", f->size);
	for (size_t i = 0; f->has_digest && i < sizeof f->sha256; i++)
		printf("%02x", f->sha256[i]);
	if (!f->has_digest)
		printf("%-64s", "(no digest)");
	fputs("  ", stdout);
	cli_put_escaped(f->path, f->path_len);
	putchar('\n');
}

static void files_close(void *state, const struct tr_reader *reader)
{
	const struct tr_manifest *m = tr_reader_manifest(reader);
	struct state *s = state;

	for (size_t i = 0; i < m->ndigests; i++)
		set_digest(s, m->digests[i].file, m->digests[i].sha256, false);
	for (size_t i = 0; i < s->n; i++) {
		if (s->json)
			file_json(&s->files[i]);
		else
			file_text(&s->files[i]);
		free(s->files[i].path);
	}
	free(s->files);
	free(s);
}

const struct cli_view cli_view_files = {files_open, files_add, files_close};
