/*
 * Events: what a trace consists of, in memory.
 *
 * An event is a header, scalar fields and a few structured fields, each
 * present or absent.  The tables below are the single list of event types and
 * fields: the codec, trace-dump's JSON, the manual and the tests use them.
 * The bytes on disk are specified in formats/trace-format.md.
 */
#ifndef TR_FORMAT_EVENT_H
#define TR_FORMAT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * X(NAME, code, "name", "meaning").  Types from 128 on are compatible: a
 * reader that does not know one skips it.
 */
#define TR_EVENT_TYPES(X)                                                      \
	X(IMAGE, 1, "image", "a task enters a new address space (execve)")     \
	X(START, 2, "start", "first event of a task made by fork or clone")    \
	X(SYSCALL, 3, "syscall", "a system call and its effects")              \
	X(ENTER, 4, "enter", "a system call begins; others run before it ends")\
	X(CLONE, 5, "clone", "a system call begins and has made a task")       \
	X(SIGNAL, 6, "signal", "a signal is delivered")                        \
	X(INSN, 7, "insn", "a trapped instruction and its result")             \
	X(EXIT, 8, "exit", "a task ends")                                      \
	X(MORE, 9, "more", "further effects of the event before it")           \
	X(FILE, 10, "file", "a file enters the store")                         \
	X(NOTE, 11, "note", "a degraded mode, or the point where replay ends") \
	X(DIGEST, 128, "digest", "SHA-256 of a stored file")                   \
	X(END, 12, "end", "the recording ended cleanly")                       \
	X(STATE, 13, "state", "digests of the task's whole state")             \
	X(STOP, 14, "stop", "a tracer in the recording holds the task")        \
	X(POKE, 15, "poke", "another task changes its memory or registers")    \
	X(ASYNC, 16, "async", "a point inside a computation")                  \
	X(BLOCK, 17, "block", "memory that events name; never shown itself")

enum tr_event_type {
#define X(NAME, code, name, meaning) TR_EV_##NAME = (code),
	TR_EVENT_TYPES(X)
#undef X
};

/*
 * Scalar fields. X(NAME, tag, "json_name", sign, form): sign S is stored as
 * zigzag and held as two's complement; form says how JSON shows it: D a
 * number, H a hex string.
 */
#define TR_SCALAR_FIELDS(X)                                                    \
	X(NR, 1, "nr", U, D)            /* syscall number */                   \
	X(RESULT, 2, "result", S, D)    /* what the call returned */           \
	X(DURATION, 3, "duration", U, D) /* ns from entry to exit */           \
	X(OUTPUT, 4, "output", U, D)    /* 1: program's stdout, 2: stderr */   \
	X(ENTERED, 5, "entered", U, D)  /* an enter or clone event precedes */ \
	X(ORIGIN, 6, "origin", U, D)    /* enum tr_origin */                   \
	X(PID, 7, "pid", U, D)          /* thread group id, recorder's view */ \
	X(TID, 8, "tid", U, D)                                                 \
	X(PARENT, 9, "parent", U, D)    /* task that made this one; 0: none */ \
	X(CHILD, 10, "child", U, D)     /* task made */                        \
	X(CHILD_STREAM, 11, "child_stream", U, D) /* its address space */      \
	X(CLONE_FLAGS, 12, "clone_flags", U, H)                                \
	X(SIGNO, 13, "signo", U, D)                                            \
	X(ACTION, 14, "action", U, D)   /* enum tr_sig_action */               \
	X(STATUS, 15, "status", U, D)   /* as wait(2) reports it */            \
	X(BRK_START, 16, "brk_start", U, H)                                    \
	X(BRK, 17, "brk", U, H)                                                \
	X(STACK_LIMIT, 18, "stack_limit", U, H) /* RLIMIT_STACK, soft */       \
	X(INSN, 19, "insn", U, D)       /* enum tr_insn */                     \
	X(LENGTH, 20, "length", U, D)   /* instruction length in bytes */      \
	X(FILE, 21, "file", U, D)       /* file id, from 1 */                  \
	X(METHOD, 22, "method", U, D)   /* enum tr_store_method */             \
	X(DEV, 23, "dev", U, H)                                                \
	X(INO, 24, "ino", U, D)                                                \
	X(MODE, 25, "mode", U, D)       /* st_mode */                          \
	X(SIZE, 26, "size", U, D)                                              \
	X(MTIME, 27, "mtime", S, D)     /* ns since the epoch */               \
	X(PARTS, 28, "parts", U, D)     /* `more` records that follow */       \
	X(CODE, 29, "code", U, D)       /* enum tr_note */                     \
	X(EVENTS, 30, "events", U, D)   /* number of the last event */         \
	X(TASKS, 31, "tasks", U, D)     /* tasks in the recording */           \
	X(STREAMS, 32, "streams", U, D) /* streams, the catalogue included */  \
	X(CPU, 33, "cpu", U, D)         /* core the task is pinned to */       \
	X(DOMAIN, 34, "domain", U, D)   /* clone: the child's; note: joined */ \
	X(MEMORY, 35, "memory", U, H)   /* digest of memory in older traces */ \
	X(REGISTERS, 36, "registers", U, H) /* and of the registers */         \
	X(OFFSET, 37, "offset", U, D)   /* where a call wrote in `file` */     \
	X(PLACE, 38, "place", U, D)     /* enum tr_place */                    \
	X(DEBUG_REGISTER, 39, "debug_register", U, D) /* poke: its number */   \
	X(VALUE, 40, "value", U, H)     /* and what it holds from now on; of   \
					   a call: where its site now jumps */ \
	X(ROOT, 41, "root", U, H)       /* digest of all memory */             \
	X(PAGES, 42, "pages", U, D)     /* 1: sha256 is that of pages */       \
	X(EXPOSED, 43, "exposed", U, D) /* memory was written as others ran */ \
	X(VECTOR, 44, "vector", U, H)   /* digest of the extended registers */ \
	X(CHANGED, 45, "changed", U, D) /* pages since the last state; of a    \
					   mapping: sites that jump */         \
	X(UNLISTED, 46, "unlisted", U, D) /* mappings left out of `map` */     \
	X(REASON, 47, "reason", U, D)   /* enum tr_async: why a point */       \
	X(VIA, 59, "via", U, H)         /* of `value`: by way of this jump */   \
	X(TRANSLATED, 61, "translated", U, D) /* code mapped later is data */

/* Structured fields: tag, JSON name. */
#define TR_STRUCT_FIELDS(X)                                                    \
	X(REGS, 48, "regs")             /* registers before the event */       \
	X(REGS_AFTER, 49, "regs_after") /* when not derivable: see format */   \
	X(XSTATE, 50, "xstate")         /* XSAVE image, NT_X86_XSTATE */       \
	X(SIGINFO, 51, "siginfo")       /* siginfo_t, 128 bytes */             \
	X(TEXT, 52, "text")             /* path or message, UTF-8 or bytes */  \
	X(SHA256, 53, "sha256")         /* 32 bytes */                         \
	X(MEM, 54, "mem")               /* memory written; repeats */          \
	X(MAP, 55, "map")               /* a mapping; repeats */               \
	X(ARG, 56, "arg")               /* memory read; repeats */             \
	X(DIGESTS, 57, "digests")       /* of each `map`, u64 */               \
	X(PAGE_HASHES, 58, "page_hashes") /* of pages that changed */          \
	X(BLOCKS, 60, "blocks")         /* `mem` stored elsewhere: blocks.h */ \
	X(KNOWN, 62, "known")           /* sites in a file's code */

enum tr_field {
#define X(NAME, tag, name, sign, form) TR_F_##NAME = (tag),
	TR_SCALAR_FIELDS(X)
#undef X
#define X(NAME, tag, name) TR_F_##NAME = (tag),
	TR_STRUCT_FIELDS(X)
#undef X
};

#define TR_NSCALARS 62 /* scalar tags are 1..47, 59 and 61 */

/* Who produced a syscall's result. */
enum tr_origin {
	TR_ORIGIN_KERNEL = 0,
	TR_ORIGIN_DENIED = 1,     /* the recorder answered with an errno */
	TR_ORIGIN_EMULATED = 2,   /* the recorder answered in the kernel's place */
	TR_ORIGIN_CAPTURED = 3,   /* unknown to the model; changed pages recorded */
	TR_ORIGIN_BUFFERED = 4,   /* the kernel, called by injected code */
};

enum tr_sig_action {
	TR_SIG_HANDLER = 1, /* a handler frame was pushed */
	TR_SIG_FATAL = 2,   /* the task dies of it */
	TR_SIG_NONE = 3,    /* ignored, or stopped the task */
};

/* How a task comes to where it is stopped, or a signal delivered. */
enum tr_place {
	TR_PLACE_FAULT = 1, /* its own instruction raises the signal there */
	TR_PLACE_STEP = 2,  /* it is one instruction further */
	TR_PLACE_HERE = 3,  /* it is there: where its event before left it */
};

/* Why a task was stopped inside a computation. */
enum tr_async {
	TR_ASYNC_SIGNAL = 1,  /* a signal waited for it */
	TR_ASYNC_PREEMPT = 2, /* other tasks did */
	TR_ASYNC_SAMPLE = 3,  /* nothing: at random */
	TR_ASYNC_SPIN = 4,    /* it waited for other tasks in a loop */
	TR_ASYNC_TRACER = 5,  /* its tracer stopped it */
};

/* Instructions whose result is recorded. */
#define TR_INSNS(X)                                                            \
	X(RDTSC, 1, "rdtsc") X(RDTSCP, 2, "rdtscp") X(CPUID, 3, "cpuid")       \
	X(RDRAND, 4, "rdrand") X(RDSEED, 5, "rdseed") X(RDPID, 6, "rdpid")   \
	X(XSAVEC, 7, "xsavec")

enum tr_insn {
#define X(NAME, code, name) TR_INSN_##NAME = (code),
	TR_INSNS(X)
#undef X
};

enum tr_store_method {
	TR_STORE_CLONE = 1, /* FICLONE */
	TR_STORE_LINK = 2,  /* hard link */
	TR_STORE_COPY = 3,
};

/*
 * Notes. X(NAME, code, "name", "meaning"). From a note with a code of 16 or
 * more on, the stream it is in cannot be replayed.
 */
#define TR_NOTES(X)                                                            \
	X(TSC_PATCHED, 1, "tsc-patched",                                       \
	  "RDTSC does not trap here: only its sites in mapped files are seen") \
	X(SHARED_WRITABLE, 2, "shared-writable",                               \
	  "a file is mapped shared and writable; writes from outside the "     \
	  "recording are not seen")                                            \
	X(FILE_CHANGED, 3, "file-changed",                                     \
	  "a stored file changed while it was recorded")                       \
	X(DOMAIN_JOINED, 4, "domain-joined",                                   \
	  "the domain in `domain` shares memory with the task's from here on") \
	X(TRACER_DENIED, 5, "tracer-denied",                                   \
	  "a request of a program's own tracer that was refused")              \
	X(UNMODELLED, 16, "unmodelled",                                        \
	  "an effect that the model does not know")                            \
	X(NOT_64BIT, 17, "not-64-bit", "a 32-bit program runs")                \
	X(ASYNC, 18, "async",                                                  \
	  "a signal or a preemption inside a computation")                     \
	X(LOST, 19, "lost", "events could not be written")

enum tr_note {
#define X(NAME, code, name, meaning) TR_NOTE_##NAME = (code),
	TR_NOTES(X)
#undef X
};
#define TR_NOTE_STOPS 16

/* The order is that of struct user_regs_struct in <sys/user.h>. */
#define TR_REGS(X)                                                             \
	X(r15) X(r14) X(r13) X(r12) X(rbp) X(rbx) X(r11) X(r10) X(r9) X(r8)    \
	X(rax) X(rcx) X(rdx) X(rsi) X(rdi) X(orig_rax) X(rip) X(cs) X(eflags)  \
	X(rsp) X(ss) X(fs_base) X(gs_base) X(ds) X(es) X(fs) X(gs)
#define TR_NREGS 27

struct tr_regs {
#define X(name) uint64_t name;
	TR_REGS(X)
#undef X
};

struct tr_bytes {
	const void *data; /* borrowed */
	size_t len;
};

/* Memory the event wrote. A page image uses the same. */
struct tr_mem {
	uint64_t addr;
	struct tr_bytes bytes;
};

/* A mapping made by the event, or one of an image. */
struct tr_map {
	uint64_t start, end; /* page aligned */
	uint32_t prot;       /* PROT_* */
	uint32_t flags;      /* MAP_SHARED or MAP_PRIVATE, MAP_GROWSDOWN, MAP_ANONYMOUS */
	uint32_t file;       /* id in the store, or 0 */
	uint64_t offset;     /* bytes into the file */
	struct tr_bytes name; /* as /proc/PID/maps shows it, may be empty */
};

/*
 * Memory the call read: a path or other string (whole, up to 4096 bytes), or
 * the start of a buffer.
 */
struct tr_arg {
	uint8_t index;     /* argument number, 0..5 */
	uint8_t is_string; /* NUL-terminated in memory; bytes without the NUL */
	uint64_t addr;
	uint64_t len;      /* whole length in memory, without a NUL */
	uint64_t hash;     /* XXH3-64 of all len bytes */
	struct tr_bytes bytes; /* the first bytes of it */
};
#define TR_ARG_PREFIX_MAX 64
#define TR_ARG_STRING_MAX 4096

struct tr_event {
	enum tr_event_type type;
	uint64_t number;  /* global order, from 1; `more` repeats its event's */
	uint32_t stream;  /* 0: the catalogue; else an address space */
	uint32_t task;    /* dense id from 1; 0 in the catalogue */
	uint64_t time;    /* ns since the recording began */
	uint64_t has;     /* bit per tag, scalar and structured */
	uint64_t v[TR_NSCALARS]; /* scalars by tag; signed ones cast */
	struct tr_regs regs, regs_after;
	struct tr_bytes xstate, siginfo, text, sha256;
	struct tr_bytes digests, page_hashes; /* see page_list.h */
	struct tr_bytes blocks; /* see blocks.h */
	struct tr_bytes known;  /* see site_list.h */
	struct tr_mem *mem; /* arrays: owned by whoever built the event */
	struct tr_map *map;
	struct tr_arg *arg;
	size_t nmem, nmap, narg;
};

static inline bool tr_event_has(const struct tr_event *ev, enum tr_field f)
{
	return ev->has >> f & 1;
}

static inline void tr_event_set(struct tr_event *ev, enum tr_field f,
				uint64_t value)
{
	ev->has |= (uint64_t)1 << f;
	ev->v[f] = value;
}

static inline uint64_t tr_event_get(const struct tr_event *ev, enum tr_field f)
{
	return ev->v[f];
}

/* Mark a structured field present. */
static inline void tr_event_mark(struct tr_event *ev, enum tr_field f)
{
	ev->has |= (uint64_t)1 << f;
}

/* "syscall", "image", ...; NULL for an unknown code. */
const char *tr_event_type_name(unsigned type);
/* The type of that name, or 0. */
unsigned tr_event_type_by_name(const char *name);
const char *tr_insn_name(uint64_t insn);      /* "rdtsc", ... or "?" */
const char *tr_note_name(uint64_t code);      /* "unmodelled", ... or "?" */
const char *tr_method_name(uint64_t method);  /* "clone", "link", "copy" */

/* Limits of the format: see formats/trace-format.md, "Limits". */
#define TR_MAX_RECORD (2u << 20)  /* bytes of one encoded record */
#define TR_MAX_CHUNK_RAW (4u << 20) /* bytes of one chunk, inflated */
#define TR_MEM_PIECE (256u << 10) /* a mem field holds at most this */
#define TR_MAX_TEXT 65536u
#define TR_MAX_XSTATE 65536u
#define TR_MAX_LIST 65536u /* bytes of a list field */
#define TR_MAX_PARTS (1u << 24)

#endif
