/* What ddfuzz and its servers say to each other. The Rust side is crates/ddfuzz-exec/src/protocol.rs; both
 * change together, and the version in the hello keeps an old server from being misread. */
#ifndef DDFUZZ_PROTOCOL_H
#define DDFUZZ_PROTOCOL_H

#include <stdint.h>

#define DDFUZZ_MAGIC 0x44446675u
#define DDFUZZ_VERSION 4u

/* File descriptors that a server is born with. They are high, so that a target that counts its
 * descriptors from 3 sees what it sees elsewhere. */
enum {
    FD_FILTERS = 186,  /* of a sandbox: memfd of filters of system calls, each behind its length */
    FD_RULES = 187,    /* of a sandbox: a Landlock ruleset */
    FD_TERMINAL = 188, /* of a target at a terminal: see terminal.h; 189 is snapshot.h's */
    FD_REQUEST = 190,  /* read end: struct request */
    FD_REPLY = 191,    /* write end: struct hello once, then struct reply */
    FD_INPUT = 192,    /* memfd with the input, opened read-only */
    FD_PAGE = 193,     /* memfd of struct page */
    FD_SUPERVISOR_PIPE = 194, /* the socket of the supervisors: its end of file means that ddfuzz is gone */
    FD_TURN = 196,     /* read end, of a spare child: see spare.h; 195 is observe.h's */
    FD_GIVE_TURN = 197,
    FD_FIRST = FD_REQUEST,
    FD_LAST = FD_SUPERVISOR_PIPE
};

/* Why a server cannot serve; `detail` holds the errno where there is one. */
enum trouble {
    TROUBLE_NONE = 0,
    TROUBLE_EXEC = 1,        /* the program could not be executed */
    TROUBLE_THREADS = 2,     /* it had threads before main */
    TROUBLE_SETUP = 3,       /* limits, identity or directory could not be set */
    TROUBLE_CHILDREN = 4,    /* it had child processes before main */
    TROUBLE_DESCRIPTORS = 5, /* it closed descriptors of ours before main */
};

struct hello {
    uint32_t magic;
    uint32_t version;
    int32_t pid;
    uint32_t trouble;
    int32_t detail;
    uint32_t reserved;
};

struct request {
    uint64_t seq;   /* counts the runs of this server, from 1: the first of this request */
    uint64_t count; /* bytes of the input; in a loop, inputs, each with an entry in the page */
    uint64_t flags; /* of enum request_flags */
};

enum request_flags {
    REQUEST_RANDOM_ADDRESSES = 1, /* of a run that is to be traced */
    REQUEST_COUNTERS = 2,         /* in a loop: keep the counters of each run */
    REQUEST_NOVEL = 4,            /* in a loop: keep those of each run that reaches something new */
    REQUEST_COMPARISONS = 8,      /* in a loop: tell what is compared */
    REQUEST_LAST = 32,            /* in a loop: the process ends behind it, the next is a new one */
    REQUEST_TRACED = 16           /* of a fork server: the run waits to be traced */
};

struct reply {
    uint64_t seq;       /* the last run that is answered for */
    int32_t status;     /* as wait(2) gives it; the pid where cpu_us is CPU_READY */
    int32_t exec_errno; /* not 0: the program could not be executed */
    uint64_t cpu_us;    /* user and system time of the run; 0 in a loop */
};

/* Says that a child to be traced waits for the byte that lets it go on. */
#define CPU_READY UINT64_MAX

/* The beginning of the memory that is shared with ddfuzz while a run is under way. */
struct page {
    volatile uint64_t started;   /* seq of the last run that was taken */
    volatile uint64_t ended;     /* seq of the last run answered */
    volatile int32_t exec_errno; /* why the last run could not begin, or 0 */
    volatile int32_t forked;     /* whether the last run had descendants */
    volatile int32_t crashed;    /* of what signal one died whose end the target took, or 0 */
    volatile int32_t child;      /* in a loop: the process that runs the inputs */
    volatile uint64_t counters;  /* in a loop: where it has its counters, or 0 */
};

/* In a loop, more follows: from ENTRIES on one entry for each input of a request; from COUNTERS on
 * what all runs so far have reached (a byte for each counter, a bit for each range of its values);
 * behind that, up to the end of the memory, slots for the counters of single runs. Both kinds are
 * as long as there are counters, and begin at multiples of 64 bytes. */
enum { ENTRIES = 4096, MOST_INPUTS = 128, COUNTERS = 8192 };

struct entry {
    uint64_t offset, length; /* where in FD_INPUT the input stands, in bytes */
    int32_t status;          /* as wait(2) gives it, of a run that came back */
    uint32_t slot;           /* where its counters are kept, from 1; 0: nowhere */
    uint64_t cpu_us;         /* its CPU time where REQUEST_COUNTERS is set, else 0 */
};

#endif
