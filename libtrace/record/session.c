/* The trace directory around a recording. */
#include "libtrace/record/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/state/cpu.h"

extern char **environ;

/* Memory of a page and more is stored once, however often it is read. */
#define BLOCK_SIZE 4096u

static void make_uuid(char out[37])
{
	uint8_t b[16] = {0};

	if (getrandom(b, sizeof b, 0) != sizeof b)
		memcpy(b, &(uint64_t){tr_now_ns()}, 8);
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40); /* version 4, RFC 4122 */
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
		 "%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4],
		 b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
		 b[14], b[15]);
}

static char **copy_strings(const char *const *strings)
{
	size_t n = 0;
	char **copy;

	while (strings && strings[n])
		n++;
	copy = tr_alloc((n + 1) * sizeof *copy);
	for (size_t i = 0; i < n; i++)
		copy[i] = tr_strdup(strings[i]);
	return copy;
}

static void fill_manifest(const struct recorder *r, struct tr_manifest *m)
{
	const char *const features[] = {TR_FEATURE_XSAVEC, TR_FEATURE_VIA,
					TR_FEATURE_BLOCKS, TR_FEATURE_TRANSLATED,
					TR_FEATURE_KNOWN, NULL};
	const struct tr_record_options *o = r->options;
	struct utsname u;
	struct timespec now;
	struct tr_cpu cpu;

	uname(&u);
	clock_gettime(CLOCK_REALTIME, &now);
	tr_cpu_read(&cpu); /* its strings become the manifest's */
	*m = (struct tr_manifest){
		.version = TR_FORMAT_VERSION,
		.incompat = copy_strings(features),
		.compat = copy_strings(NULL),
		.tool = tr_strdup(o->tool),
		.host = tr_strdup(u.nodename),
		.kernel = tr_printf("%s %s %s", u.sysname, u.release, u.version),
		.machine = tr_strdup(u.machine),
		.cpu_model = cpu.model,
		.cpu_flags = cpu.flags,
		.xcr0 = cpu.xcr0,
		.argv = copy_strings(o->argv),
		.envp = copy_strings((const char *const *)environ),
		.cwd = getcwd(NULL, 0),
		.start_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
		.labels = copy_strings(o->labels),
		.expires_ns = o->expires_ns,
		.portable = o->portable ? tr_strdup(o->portable) : NULL,
	};
	if (!m->cwd)
		m->cwd = tr_strdup("");
	make_uuid(m->uuid);
}

static int open_parts(struct recorder *r, struct tr_error *err)
{
	r->dirfd = open(r->options->directory,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return tr_fail_errno(err, "%s", r->options->directory);
	/* Says to trace-pack that the manifest is going to be replaced; the
	 * trace is as good without. */
	flock(r->dirfd, LOCK_EX | LOCK_NB);
	r->sites.settles = true;
	fill_manifest(r, &r->manifest);
	if (tr_manifest_write(r->dirfd, &r->manifest, err) < 0)
		return -1;
	r->store = tr_store_open(r->dirfd, err);
	if (!r->store)
		return -1;
	r->writer = tr_writer_open_with(
		r->dirfd, &(struct tr_writer_options){.block_size = BLOCK_SIZE},
		err);
	if (!r->writer)
		return -1;
	r->sites.dirfd = r->rooms.dirfd = r->dirfd;
	rec_learned_open(r);
	r->control = tr_alloc(sizeof *r->control);
	tr_rules_fill(r->control);
	if (r->intercept)
		r->log = tr_alloc_buffer(TR_INJECT_LOG_SIZE);
	return 0;
}

int rec_session_open(struct recorder *r, struct tr_error *err)
{
	const char *dir = r->options->directory;

	r->dirfd = r->learned_dir = -1;
	/* The program's memory and input are in there: nobody else's to read. */
	if (mkdir(dir, 0700) < 0) {
		if (errno == EEXIST)
			return tr_fail(err, TR_EEXIST,
				       "%s: exists already; choose another "
				       "directory", dir);
		return tr_fail_errno(err, "%s", dir);
	}
	if (open_parts(r, err) == 0)
		return 0;
	rec_session_discard(r);
	return -1;
}

static void release(struct recorder *r)
{
	if (r->store)
		tr_store_close(r->store);
	r->store = NULL;
	tr_manifest_release(&r->manifest);
	tr_site_cache_release(&r->sites);
	tr_room_cache_release(&r->rooms);
	tr_known_release(&r->known);
	rec_learned_release(r);
	free(r->log);
	free(r->control);
	tr_buf_release(&r->scratch);
	free(r->pieces);
	free(r->cpus);
	free(r->early);
	free(r->deaths);
	free(r->shared);
	tr_table_release(&r->written);
	if (r->dirfd >= 0)
		close(r->dirfd);
	r->dirfd = -1;
}

void rec_session_discard(struct recorder *r)
{
	if (r->writer)
		tr_writer_abandon(r->writer);
	r->writer = NULL;
	if (r->dirfd >= 0) {
		unlinkat(r->dirfd, "chunks/000000", 0);
		unlinkat(r->dirfd, "chunks", AT_REMOVEDIR);
		unlinkat(r->dirfd, "files", AT_REMOVEDIR);
		unlinkat(r->dirfd, "manifest.json", 0);
	}
	release(r);
	rmdir(r->options->directory);
}

static void emit_end(struct recorder *r)
{
	struct tr_event ev = {.type = TR_EV_END};

	tr_event_set(&ev, TR_F_STATUS, (uint64_t)r->root_status);
	tr_event_set(&ev, TR_F_EVENTS, r->number + 1);
	tr_event_set(&ev, TR_F_TASKS, r->next_task - 1);
	tr_event_set(&ev, TR_F_STREAMS, r->next_stream);
	rec_emit(r, &ev);
}

static int seal(struct recorder *r, struct tr_error *err)
{
	struct tr_writer_stats stats;
	struct tr_writer *w;

	if (!r->writer)
		return tr_fail(err, TR_ESYS, "%s", r->stopped);
	rec_digests(r, true);
	emit_end(r);
	w = r->writer; /* emit_end may have failed */
	r->writer = NULL;
	if (!w)
		return tr_fail(err, TR_ESYS, "%s", r->stopped);
	if (tr_writer_close(w, &stats, err) < 0) {
		snprintf(r->stopped, sizeof r->stopped, "events lost: %.230s",
			 err->text);
		return -1;
	}
	return 0;
}

int rec_session_close(struct recorder *r, struct tr_error *err)
{
	struct tr_manifest *m = &r->manifest;
	int sealed = seal(r, err);

	m->duration_ns = tr_now_ns() - r->start_ns;
	m->complete = sealed == 0 && !r->lost;
	m->status = r->root_status;
	m->events = r->number;
	m->tasks = r->next_task - 1;
	m->streams = r->next_stream;
	m->files = r->files;
	if (r->stopped[0]) {
		m->stopped = tr_strdup(r->stopped);
		m->stopped_at = r->stopped_at;
	}
	if (tr_manifest_write(r->dirfd, m, err) < 0)
		sealed = -1;
	rec_learned_save(r);
	release(r);
	return sealed;
}
