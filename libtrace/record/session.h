/* The trace directory around a recording: made at its start, sealed at its
 * end. */
#ifndef TR_RECORD_SESSION_H
#define TR_RECORD_SESSION_H

#include "libtrace/record/recorder.h"

/* Create the directory, manifest, writer and store. On failure nothing is
 * left behind. */
int rec_session_open(struct recorder *r, struct tr_error *err) TR_MUST_CHECK;
/* The last events, the index, the final manifest. */
int rec_session_close(struct recorder *r, struct tr_error *err) TR_MUST_CHECK;
/* Remove what rec_session_open made: the program could not be started. */
void rec_session_discard(struct recorder *r);

#endif
