/* Putting one file into a directory by the cheapest safe method. */
#ifndef TR_STORE_PUT_H
#define TR_STORE_PUT_H

#include <stdint.h>
#include <sys/stat.h>

#include "libtrace/base/error.h"
#include "libtrace/format/event.h"

/*
 * Store what fd is open on as the new file `id` (decimal) of directory
 * files_fd.  fd may be open in any mode; its offset is left alone.  On success
 * *st describes the original and *stored the stored file, both after storing;
 * on failure nothing is left behind.
 */
int tr_store_put(int files_fd, uint32_t id, int fd,
		 enum tr_store_method *method, struct stat *st,
		 struct stat *stored, struct tr_error *err) TR_MUST_CHECK;

/*
 * Give directory files_fd the new file `name` with the contents of fd, by
 * clone or copy: nobody else's, whatever the original is.
 */
int tr_store_private(int files_fd, const char *name, int fd,
		     enum tr_store_method *method, struct tr_error *err)
	TR_MUST_CHECK;

#endif
