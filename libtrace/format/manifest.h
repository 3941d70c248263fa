/*
 * manifest.json: what was recorded, where and by what, and whether the
 * recording ended cleanly.  Written at the start with complete = false and
 * replaced atomically at the end.
 */
#ifndef TR_FORMAT_MANIFEST_H
#define TR_FORMAT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libtrace/base/error.h"

#define TR_FORMAT_VERSION 1
/* XSAVEC instructions trap, and are made to give the same results. */
#define TR_FEATURE_XSAVEC "xsavec"
/* Events may have TR_F_VIA. */
#define TR_FEATURE_VIA "via"
/* Images may have TR_F_TRANSLATED. */
#define TR_FEATURE_TRANSLATED "translated"
/* Files may have TR_F_KNOWN. */
#define TR_FEATURE_KNOWN "known"
/* Memory of events may be in the stream of blocks (blocks.h). */
#define TR_FEATURE_BLOCKS "blocks"

/* A stored file's digest that no event tells. */
struct tr_manifest_digest {
	uint32_t file;
	uint8_t sha256[32];
};

struct tr_manifest {
	int version;
	/* Feature names by compatibility class, NULL-terminated, never NULL. */
	char **incompat, **compat;
	char uuid[37];
	char *tool;              /* "trace-record 0.1.0" */
	char *host, *kernel, *machine;
	char *cpu_model;
	char *cpu_flags;         /* as /proc/cpuinfo lists them */
	uint64_t xcr0;           /* XSAVE features enabled */
	char **argv, **envp;
	char *cwd;
	int64_t start_ns;        /* CLOCK_REALTIME */
	uint64_t duration_ns;    /* 0 until complete */
	char **labels;           /* "key=value" */
	bool complete;
	int status;              /* root task's wait status, when complete */
	uint64_t events, tasks, streams, files; /* totals, when complete */
	char *stopped;           /* why it is not replayable to the end, or NULL */
	uint64_t stopped_at;     /* event from which */
	int64_t expires_ns;      /* CLOCK_REALTIME; 0: never */
	bool packed;             /* no stored file is shared with others */
	bool redacted;           /* contents were taken out; no stored files */
	char *portable;          /* CPU level the program was held to, or NULL */
	struct tr_manifest_digest *digests; /* owned */
	size_t ndigests;
};

void tr_manifest_release(struct tr_manifest *m);
int tr_manifest_write(int dirfd, const struct tr_manifest *m,
		      struct tr_error *err) TR_MUST_CHECK;
/* TR_ENOTRACE when there is none, TR_EVERSION/TR_EFEATURE when from the
 * future, TR_ECORRUPT when a byte of it is wrong. */
int tr_manifest_read(int dirfd, struct tr_manifest *m, struct tr_error *err)
	TR_MUST_CHECK;
struct tr_home;
int tr_manifest_read_at(const struct tr_home *home, struct tr_manifest *m,
			struct tr_error *err) TR_MUST_CHECK;

#endif
