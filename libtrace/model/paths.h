/*
 * What descriptors stand for, from the calls that made them: a path, or a name
 * such as "pipe:[12]", where 12 is the event that made the pipe.
 *
 * Nothing is known of descriptors that the first program inherited, nor of
 * those that came through a socket.  Relative paths are put behind that of
 * the directory they are relative to, and are not resolved further.
 */
#ifndef TR_MODEL_PATHS_H
#define TR_MODEL_PATHS_H

#include "libtrace/format/event.h"

struct tr_paths;

/* cwd: the first program's working directory. */
struct tr_paths *tr_paths_new(const char *cwd);
void tr_paths_free(struct tr_paths *p);

/*
 * To be called for every event, in global order.  What the descriptor stands
 * for that the call is about: its first argument that is one, or the one it
 * has made.  NULL when there is none or nothing is known; good until the next
 * call.
 */
const char *tr_paths_event(struct tr_paths *p, const struct tr_event *ev);

#endif
