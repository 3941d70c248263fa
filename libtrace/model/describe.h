/*
 * Events for people and for pipes: strace-like text and JSON objects.  Both
 * are driven by the syscall table and the event field table.
 */
#ifndef TR_MODEL_DESCRIBE_H
#define TR_MODEL_DESCRIBE_H

#include "libtrace/base/buf.h"
#include "libtrace/base/json.h"
#include "libtrace/format/event.h"

/*
 * One line without newline and without event number, task and time:
 *   openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3
 *   --- SIGCHLD {si_code=CLD_EXITED, si_pid=12, si_status=0} (handler) ---
 *   +++ exited with 0 +++
 * `verbose` adds registers, mappings and effects as indented further lines.
 */
void tr_describe_text(const struct tr_event *ev, bool verbose, struct tr_buf *out);

/*
 * {"type":"syscall","event":12,"task":1,"stream":1,"time":123456,
 *  "name":"openat","nr":257,"args":{"dfd":"AT_FDCWD","filename":"/etc/passwd",
 *  "flags":"O_RDONLY|O_CLOEXEC","mode":0},"result":3,"duration":4100}
 * errors add "errno":"ENOENT".  Schema: formats/events.schema.json.
 * `verbose` adds regs, mem, map and arg arrays in full.
 */
struct tr_json *tr_describe_json(const struct tr_event *ev, bool verbose);

#endif
