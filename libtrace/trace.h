/*
 * libtrace: recording, reading, checking, comparing, packing and replaying
 * executions.  This is the public interface; the headers it includes are
 * self-contained and installed with it.  Conventions: base/error.h.
 */
#ifndef TR_TRACE_H
#define TR_TRACE_H

#include "libtrace/base/error.h"
#include "libtrace/base/json.h"
#include "libtrace/format/check.h"
#include "libtrace/format/event.h"
#include "libtrace/format/manifest.h"
#include "libtrace/format/reader.h"
#include "libtrace/model/canon.h"
#include "libtrace/model/compare.h"
#include "libtrace/model/describe.h"
#include "libtrace/model/paths.h"
#include "libtrace/model/redact.h"
#include "libtrace/model/syscalls.h"
#include "libtrace/record/record.h"
#include "libtrace/replay/inspect.h"
#include "libtrace/replay/replay.h"
#include "libtrace/store/archive.h"
#include "libtrace/store/have.h"
#include "libtrace/store/open.h"
#include "libtrace/store/prune.h"

#endif
