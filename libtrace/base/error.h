/*
 * The error convention of libtrace.
 *
 * A function that can fail returns int (0 or a non-negative result, -1 on
 * failure) or a pointer (NULL on failure), takes `struct tr_error *err` as its
 * last parameter and fills it exactly when it fails.  `err` is never NULL.
 * The text is one line without the tool's name and without a newline: what
 * failed, on which file, where (byte offset or event), and what to do if that
 * helps.  Callers pass errors up unchanged, or prefix them with
 * tr_error_prefix().  Memory exhaustion is not an error value: see alloc.h.
 */
#ifndef TR_BASE_ERROR_H
#define TR_BASE_ERROR_H

#include <stdarg.h>

#define TR_MUST_CHECK __attribute__((warn_unused_result))
#define TR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum tr_code {
	TR_OK = 0,
	TR_ESYS,         /* a system call failed; sys_errno says why */
	TR_ENOTRACE,     /* the path is not a trace */
	TR_EVERSION,     /* a format version this library does not read */
	TR_EFEATURE,     /* an incompatible feature this library does not know */
	TR_ECORRUPT,     /* bytes that contradict the format or a checksum */
	TR_EINCOMPLETE,  /* the trace ends before the recording did */
	TR_EDIVERGED,    /* replay and recording disagree */
	TR_EUNSUPPORTED, /* this machine, kernel or program cannot be served */
	TR_EINVAL,       /* the caller asked for something impossible */
	TR_EEXIST,       /* refuses to overwrite */
	TR_EHOSTILE,     /* an archive tries to leave its target */
	TR_ENOEXEC,      /* the program cannot be executed */
	TR_ENOPROG,      /* the program was not found */
};

struct tr_error {
	enum tr_code code;
	int sys_errno;
	char text[768];
};

/* Fill err and return -1, so that callers write `return tr_fail(...)`. */
int tr_fail(struct tr_error *err, enum tr_code code, const char *fmt, ...)
	TR_PRINTF(3, 4);
/* As tr_fail with TR_ESYS; appends ": " and strerror(errno). */
int tr_fail_errno(struct tr_error *err, const char *fmt, ...) TR_PRINTF(2, 3);
/* Put "prefix: " before the text already in err; returns -1. */
int tr_error_prefix(struct tr_error *err, const char *fmt, ...) TR_PRINTF(2, 3);
/* The code's stable name, as used in JSON ("corrupt", "not-a-trace", ...). */
const char *tr_code_name(enum tr_code code);

#endif
