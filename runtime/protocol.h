/* What ddfuzz and its servers say to each other. The Rust side is src/exec/protocol.rs; both
 * change together, and the version in the hello keeps an old server from being misread. */
#ifndef DDFUZZ_PROTOCOL_H
#define DDFUZZ_PROTOCOL_H

#include <stdint.h>

#define DDFUZZ_MAGIC 0x44446675u
#define DDFUZZ_VERSION 2u

/* File descriptors that a server is born with. They are high, so that a target that counts its
 * descriptors from 3 sees what it sees elsewhere. */
enum {
    FD_REQUEST = 190,  /* read end: struct request */
    FD_REPLY = 191,    /* write end: struct hello once, then struct reply */
    FD_INPUT = 192,    /* memfd with the input, opened read-only */
    FD_PAGE = 193,     /* memfd of struct page */
    FD_LIFELINE = 194, /* the keepers' socket: its end of file means that ddfuzz is gone */
    FD_FIRST = FD_REQUEST,
    FD_LAST = FD_LIFELINE
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
    uint64_t seq;    /* counts the runs of this server, from 1 */
    uint64_t length; /* bytes of the input */
    uint64_t flags;  /* of enum request_flags */
};

enum request_flags { REQUEST_RANDOM_ADDRESSES = 1 };

struct reply {
    uint64_t seq;
    int32_t status;     /* as wait(2) gives it; the pid where cpu_us is CPU_READY */
    int32_t exec_errno; /* not 0: the program could not be executed */
    uint64_t cpu_us;    /* user and system time of the run; 0 in a loop */
};

/* Says that a child to be traced waits for the byte that lets it go on. */
#define CPU_READY UINT64_MAX

/* Shared with ddfuzz while a run is under way. */
struct page {
    volatile uint64_t started;   /* seq of the last request that was taken */
    volatile uint64_t ended;     /* seq of the last run answered */
    volatile int32_t exec_errno; /* why the last run could not begin, or 0 */
    volatile int32_t forked;     /* whether the last run had descendants */
    volatile int32_t crashed;    /* of what signal one died whose end the target took, or 0 */
};

#endif
