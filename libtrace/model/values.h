/*
 * Numbers with names, and structures of the kernel's interface, shown through
 * a sink.  Internal to libtrace/model.
 */
#ifndef TR_MODEL_VALUES_H
#define TR_MODEL_VALUES_H

#include "libtrace/model/sink.h"
#include "libtrace/model/syscalls.h"

/* "O_RDONLY|O_CLOEXEC"; what has no name in hexadecimal. */
void tr_show_flags(struct tr_sink *s, const struct tr_flag_set *set,
		   uint32_t v);
/* The same for the set called `name`. */
void tr_show_named_flags(struct tr_sink *s, const char *name, uint32_t v);
void tr_show_signal(struct tr_sink *s, int sig);
/* A status of wait(2): {"exit_code":N}, {"signal":...,"core":...}, ... */
void tr_show_status(struct tr_sink *s, uint32_t status);
/* siginfo_t without si_signo, as far as the n bytes go. */
void tr_show_siginfo(struct tr_sink *s, const uint8_t *p, size_t n);

/*
 * The structure, or array of structures, that formats/syscalls.tbl calls
 * `name`: n bytes of `whole` are at p.  False, having shown nothing, when it
 * is not known how or bytes are missing.
 */
bool tr_show_struct(struct tr_sink *s, const char *name, const uint8_t *p,
		    size_t n, uint64_t whole);

#endif
