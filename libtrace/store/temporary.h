/* Places for what is needed only as long as this process runs. */
#ifndef TR_STORE_TEMPORARY_H
#define TR_STORE_TEMPORARY_H

#include "libtrace/base/error.h"

/*
 * An empty file without a name, open for reading and writing, in the directory
 * that TMPDIR names, else in /var/tmp: it may become large.
 */
int tr_temporary_file(struct tr_error *err) TR_MUST_CHECK;

/* A directory, private to this user.  Zeroed there is none. */
struct tr_temporary {
	char *path;
	int keeper; /* while this is open, the directory stays */
};

/*
 * Make one.  However this process ends, also by SIGKILL, the directory and the
 * trace directories in it go: another process waits for that.
 */
int tr_temporary_make(struct tr_temporary *t, struct tr_error *err)
	TR_MUST_CHECK;
void tr_temporary_remove(struct tr_temporary *t);

#endif
