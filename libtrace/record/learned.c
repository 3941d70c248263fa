/*
 * What recordings learn of the code of files, kept for later ones: where its
 * nondeterministic instructions are, which sites have been patched, and what room
 * there is around those that could not.
 *
 * One file for each inode, in a directory of the user's, with the size and times
 * of the inode that it tells of.  st_ctime changes with every change of an inode
 * and no program can set it, so that one that is the same tells that the bytes
 * are.  In images that are made elsewhere (squashfs, erofs) it may say nothing: so
 * the file's first page counts, too, where linkers put the build id, which differs
 * with the contents.  What cannot be read, is damaged or is of another version
 * counts for nothing, and is replaced.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "libtrace/base/alloc.h"
#include "libtrace/base/io.h"
#include "libtrace/format/home.h"
#include "libtrace/format/page_list.h"
#include "libtrace/format/site_list.h"
#include "libtrace/record/recorder.h"

#define MAGIC "TRCODE02"
#define MAGIC_SIZE (sizeof MAGIC - 1)
#define CHECK_SIZE 8u
#define MAX_SIZE (16u << 20)
#define MAX_FILES 4096u

/* st_ctime has the resolution of the kernel's tick, at most 10 ms: of what was
 * just changed it does not tell the next change. */
#define SETTLED_NS INT64_C(100000000)

static int64_t ns_of(const struct timespec *t)
{
	return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

static bool is_settled(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return ns_of(&now) - ns_of(&st->st_ctim) > SETTLED_NS;
}

static uint64_t hash_first_page(const struct recorder *r, uint32_t file)
{
	TR_AUTOCLOSE int fd = tr_stored_open(r->dirfd, file);
	uint8_t page[4096];
	ssize_t n = fd < 0 ? 0 : tr_pread_full(fd, page, sizeof page, 0);

	return XXH3_64bits(page, n < 0 ? 0 : (size_t)n);
}

static void put_head(struct tr_buf *b, const struct learned *l)
{
	const struct stat *st = &l->st;

	tr_buf_put(b, MAGIC, MAGIC_SIZE);
	tr_buf_put_varint(b, st->st_dev);
	tr_buf_put_varint(b, st->st_ino);
	tr_buf_put_varint(b, (uint64_t)st->st_size);
	tr_buf_put_varint(b, (uint64_t)ns_of(&st->st_mtim));
	tr_buf_put_varint(b, (uint64_t)ns_of(&st->st_ctim));
	tr_buf_put_varint(b, l->first_page);
}

static void put_sites(struct tr_buf *b, const struct tr_sites *sites)
{
	tr_buf_put_varint(b, sites->undecided);
	tr_buf_put_varint(b, sites->undecided_cpuid);
	tr_buf_put_varint(b, sites->n);
	for (size_t i = 0; i < sites->n; i++) {
		const struct tr_site *s = &sites->s[i];

		tr_buf_put_varint(b, s->offset);
		tr_buf_put_varint(b, s->insn);
		tr_buf_put_varint(b, s->length);
		tr_buf_put_varint(b, s->first);
		tr_buf_put_varint(b, s->reg);
		tr_buf_put_varint(b, s->width);
	}
}

static bool get_byte(struct tr_span *s, uint8_t *byte)
{
	uint64_t v;

	if (!tr_span_varint(s, &v) || v > UINT8_MAX)
		return false;
	*byte = (uint8_t)v;
	return true;
}

static bool get_site(struct tr_span *s, struct tr_site *site)
{
	uint64_t insn;

	*site = (struct tr_site){0};
	if (!tr_span_varint(s, &site->offset) || !tr_span_varint(s, &insn))
		return false;
	site->insn = (enum tr_insn)insn;
	return get_byte(s, &site->length) && get_byte(s, &site->first) &&
	       get_byte(s, &site->reg) && get_byte(s, &site->width);
}

static bool get_sites(struct tr_span *s, struct tr_sites *sites)
{
	uint64_t undecided, cpuid, n;

	if (!tr_span_varint(s, &undecided) || !tr_span_varint(s, &cpuid) ||
	    !tr_span_varint(s, &n))
		return false;
	sites->undecided = undecided;
	sites->undecided_cpuid = cpuid;
	for (struct tr_site site; n > 0; n--) {
		if (!get_site(s, &site))
			return false;
		TR_GROW(sites->s, sites->n, sites->cap);
		sites->s[sites->n++] = site;
	}
	return true;
}

static void put_room(struct tr_buf *b, const struct tr_room_near *near)
{
	const struct tr_room *room = &near->room;

	tr_buf_put_varint(b, near->offset);
	tr_buf_put_varint(b, room->lead);
	tr_buf_put_varint(b, room->lead_is_one);
	tr_buf_put_varint(b, room->tail.start);
	tr_buf_put_varint(b, room->tail.end);
	tr_buf_put_varint(b, room->n);
	for (size_t i = 0; i < room->n; i++) {
		tr_buf_put_varint(b, room->gap[i].start);
		tr_buf_put_varint(b, room->gap[i].end);
	}
}

static bool get_gap(struct tr_span *s, struct tr_gap *gap)
{
	return tr_span_varint(s, &gap->start) && tr_span_varint(s, &gap->end);
}

static bool get_room(struct tr_span *s, uint64_t *offset, struct tr_room *room)
{
	uint8_t is_one;
	uint64_t n;

	*room = (struct tr_room){0};
	if (!tr_span_varint(s, offset) || !get_byte(s, &room->lead) ||
	    !get_byte(s, &is_one) || !get_gap(s, &room->tail) ||
	    !tr_span_varint(s, &n) || n > TR_GAPS_MAX)
		return false;
	room->lead_is_one = is_one;
	for (room->n = 0; room->n < n; room->n++)
		if (!get_gap(s, &room->gap[room->n]))
			return false;
	return true;
}

/* Of those sites that are not known, the others are patched without. */
static size_t put_rooms(struct tr_buf *b, const struct recorder *r,
			uint32_t file)
{
	const struct tr_room_cache *rc = &r->rooms;
	size_t n = 0;

	for (size_t i = 0; i < rc->n; i++) {
		if (rc->p[i].file != file ||
		    tr_known_has(&r->known, file, rc->p[i].offset))
			continue;
		put_room(b, &rc->p[i]);
		n++;
	}
	return n;
}

static bool take_rooms(struct recorder *r, uint32_t file, struct tr_span *s,
		       size_t *taken)
{
	struct tr_room room;
	uint64_t n, offset;

	if (!tr_span_varint(s, &n))
		return false;
	for (*taken = 0; *taken < n; ++*taken) {
		if (!get_room(s, &offset, &room))
			return false;
		tr_room_cache_add(&r->rooms, file, offset, &room);
	}
	return true;
}

static void name_of(const struct stat *st, char name[48])
{
	snprintf(name, 48, "%jx-%jx", (uintmax_t)st->st_dev,
		 (uintmax_t)st->st_ino);
}

/* What is kept of the inode, behind its head; empty when there is nothing. */
static struct tr_span read_entry(const struct recorder *r,
				 const struct learned *l, struct tr_buf *b)
{
	TR_AUTOBUF struct tr_buf head = {0};
	struct tr_error ignored;
	struct tr_span s = {0};
	char name[48];

	name_of(&l->st, name);
	put_head(&head, l);
	if (tr_read_file(r->learned_dir, name, MAX_SIZE, b, &ignored) < 0 ||
	    b->len < head.len + CHECK_SIZE ||
	    memcmp(b->data, head.data, head.len) != 0 ||
	    tr_get_le64(b->data + b->len - CHECK_SIZE) !=
		    XXH3_64bits(b->data, b->len - CHECK_SIZE))
		return s;
	return (struct tr_span){b->data + head.len,
				b->data + b->len - CHECK_SIZE};
}

static void take_known(const struct recorder *r, struct tr_span *s,
		       struct tr_buf *known)
{
	uint64_t next = 0, to = 0;
	struct tr_listed_site site;

	while (tr_site_list_get(s, &next, &site))
		if (rec_calls_do(r, site.insn))
			tr_site_list_put(known, &to, &site);
}

/* Would root make directories in a home of somebody's, as with sudo(8) that
 * keeps HOME?  Their owner could not use them. */
static bool is_anothers(const char *path)
{
	TR_AUTOFREE char *p = tr_strdup(path);
	struct stat st;
	char *slash;

	while (stat(p, &st) < 0 && (slash = strrchr(p, '/')) && slash > p)
		*slash = '\0';
	return geteuid() == 0 && stat(p, &st) == 0 && st.st_uid != 0;
}

void rec_learned_open(struct recorder *r)
{
	const char *path = r->options->learned;
	struct tr_error ignored;
	struct stat st;

	if (!path || is_anothers(path) ||
	    tr_make_dirs(path, 0700, &ignored) < 0)
		return;
	r->learned_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->learned_dir < 0 || (fstat(r->learned_dir, &st) == 0 &&
				   st.st_uid == geteuid()))
		return;
	close(r->learned_dir);
	r->learned_dir = -1;
}

void rec_learned_load(struct recorder *r, const struct tr_store_file *f,
		      struct tr_buf *known)
{
	TR_AUTOBUF struct tr_buf entry = {0};
	struct tr_sites sites = {0};
	struct learned *l;
	struct tr_span s;

	if (r->learned_dir < 0)
		return;
	TR_GROW(r->learned, r->nlearned, r->learned_cap);
	l = &r->learned[r->nlearned++];
	*l = (struct learned){.file = f->id, .st = f->st,
			      .settled = is_settled(&f->st)};
	if (!l->settled)
		return;
	l->first_page = hash_first_page(r, f->id);
	s = read_entry(r, l, &entry);
	if (!tr_span_left(&s))
		return;
	if (!get_sites(&s, &sites)) {
		tr_sites_release(&sites);
		return;
	}
	tr_site_cache_set(&r->sites, f->id, &sites);
	if (!r->intercept || !take_rooms(r, f->id, &s, &l->nrooms))
		return;
	l->found = true;
	take_known(r, &s, known);
	tr_known_load(&r->known, r->dirfd, f->id,
		      &(struct tr_bytes){known->data, known->len});
	for (size_t i = 0; i < r->known.n; i++)
		l->nknown += r->known.site[i].file == f->id;
}

/* Inodes come and go: when there are very many, all are forgotten. */
static void prune(int dirfd)
{
	DIR *d = fdopendir(fcntl(dirfd, F_DUPFD_CLOEXEC, 0));
	const struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n++;
	if (d && n > MAX_FILES) {
		rewinddir(d);
		while ((e = readdir(d)))
			unlinkat(dirfd, e->d_name, 0);
	}
	if (d)
		closedir(d);
}

static void save(struct recorder *r, const struct learned *l)
{
	const struct tr_sites *sites = tr_site_cache_get(&r->sites, l->file);
	TR_AUTOBUF struct tr_buf b = {0}, known = {0}, rooms = {0};
	size_t n = tr_known_list(&r->known, l->file, &known);
	size_t nrooms = put_rooms(&rooms, r, l->file);
	struct tr_error ignored;
	uint8_t check[CHECK_SIZE];
	char name[48];

	if (!sites || known.len > TR_MAX_LIST ||
	    (l->found && n == l->nknown && nrooms == l->nrooms))
		return;
	put_head(&b, l);
	put_sites(&b, sites);
	tr_buf_put_varint(&b, nrooms);
	tr_buf_put(&b, rooms.data, rooms.len);
	tr_buf_put(&b, known.data, known.len);
	tr_put_le64(check, XXH3_64bits(b.data, b.len));
	tr_buf_put(&b, check, sizeof check);
	name_of(&l->st, name);
	/* A recording is as good without. */
	if (tr_replace_file(r->learned_dir, name, b.data, b.len, false,
			    &ignored) < 0)
		return;
}

void rec_learned_save(struct recorder *r)
{
	/* A recording that leaves out some of the sites must not take them
	 * from those that do not. */
	bool all = r->intercept && r->cpu_level == TR_CPU_ALL, more = false;

	for (size_t i = 0; i < r->nlearned && all; i++) {
		if (r->learned[i].settled)
			save(r, &r->learned[i]);
		more |= !r->learned[i].found;
	}
	if (more)
		prune(r->learned_dir);
}

void rec_learned_release(struct recorder *r)
{
	free(r->learned);
	if (r->learned_dir >= 0)
		close(r->learned_dir);
}
